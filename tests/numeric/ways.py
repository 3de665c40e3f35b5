"""Ways to run a kernel: one stage by one schedule's one variant, the rest as usual."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.plan.hostmath import ceil_div
from kerngen.plan.tree import Case as PlanCase
from kerngen.plan.tree import choices_in, dispatches_in, stages_of
from kerngen.runtime import Context, f16
from kerngen.runtime.calls.kernel import Kernel
from kerngen.verify import ways as verified
from tests.budget import tonight
from tests.planting import file_of

from .approx import Arithmetic
from .cases import Arrays, Case, Scalars, standard_kernels
from .domains import Dims
from .tolerance import SUMMATIONS, Summation, expect, shader_arithmetic

STEPS = (1, 4, 16, 128)
MOST = (5000, 4096, 2048, 1024, 512, 128, 32, 16, 8, 4)
"""Sizes that are multiples of a step and not above a limit suit most variants.

The least suits rows along two dims, of 16 elements in all.
"""

SMALL_BYTES = 32768
"""The workgroup memory of Mesa's lavapipe, on which tests run: few ways need more."""

TRIES = 200
"""How many scalars are drawn: of nine strides and pads, one suits a product of matrices.  With 60,
one of a thousand ways found none."""

NEAR = 200
FEW = 6

_NUMBER = re.compile(r"\d+")


def some(
    several: Iterable[Way], most: int, every: int = 1, but: tuple[str, ...] = ()
) -> Iterator[Any]:
    """Mark as nightly all ways but a few by each strategy and variant, or by each `every`th.

    Those whose strategy and variant begin with one of `but`, which take long to compile,
    are all marked.

    Schedules of a strategy that differ by their options count together, and variants that
    differ by a number.  The few are spread over the kernels; of neighbours the one with
    the fewest stages is taken, and of these the one with the shortest shaders.

    What those tests hold depends on how a strategy writes shaders, little on the kernel:
    at night a seventh of the ways has its turn.
    """
    listed = list(several)
    kinds: dict[str, list[Way]] = {}
    for way in listed:
        kind = _NUMBER.sub("", " ".join(way.kind))
        if not kind.startswith(but):
            kinds.setdefault(kind, []).append(way)
    kept = {
        min(part, key=_expense)
        for kind in [*kinds.values()][::every]
        for part in _parts(kind, most)
    }
    turn = {*tonight(listed)}
    for way in listed:
        if way in kept or way in turn:
            marks = [] if way in kept else [pytest.mark.nightly]
            yield pytest.param(way, marks=marks, id=str(way))


def _expense(way: Way) -> tuple[int, int]:
    """Return how many stages a kernel has, and how long the shaders of the way are."""
    shaders = {dispatch.wgsl for dispatch in dispatches_in(way.way.variant.body)}
    kernel = way.case.kernel
    length = sum(_length(kernel, file_of(shader)) for shader in shaders)
    return len(stages_of(kernel.body)), length


@cache
def _length(kernel: Kernel, file: str) -> int:
    return len((kernel.folder / file).read_text("utf-8"))


def _parts(several: Sequence[Way], most: int) -> Iterator[Sequence[Way]]:
    """Cut a list in parts of about the same length, none of them empty."""
    number = min(len(several), most)
    cuts = [at * len(several) // number for at in range(number + 1)]
    return (several[start:stop] for start, stop in pairwise(cuts))


@final
@dataclass(frozen=True, eq=False)
class Way:
    """A way to run the kernel of a case."""

    case: Case
    way: verified.Way

    def __str__(self) -> str:
        """Kernel, stage, strategy and variant."""
        names = self.way.stage, self.way.strategy.name, self.way.variant.name
        return f"{self.case}.{' '.join(names)}"

    @property
    def kind(self) -> tuple[str, str]:
        """Strategy, whatever its options, and variant."""
        return self.way.strategy.name.split("_")[0], self.way.variant.name

    @property
    def kernel(self) -> Kernel:
        """The kernel, with no choice left but among the variants of other stages."""
        return self.way.kernel

    @property
    def strategies(self) -> tuple[PlanCase, ...]:
        """What runs, in order."""
        choices = (choice for choice in choices_in(self.way.body) if choice.stages)
        cases = chain.from_iterable(choice.cases for choice in choices)
        return tuple(case for case in cases if case.name)

    @property
    def halves(self) -> bool:
        """Whether the kernel needs an adapter that knows f16."""
        return any(spec.element is f16 for spec in self.case.kernel.tensors)

    @property
    def workgroup_bytes(self) -> int:
        """The workgroup memory that the kernel needs this way."""
        return max((s.needs.workgroup_bytes for s in self.strategies), default=0)

    @property
    def summations(self) -> tuple[Summation, ...]:
        """How each stage sums."""
        outputs = [spec for spec in self.case.kernel.tensors if spec.access != "read"]
        whole = any(not spec.axes for spec in outputs)
        strategies = (s.name.split("_")[0] for s in self.strategies)
        return tuple(SUMMATIONS[strategy, whole] for strategy in strategies)

    @property
    def longest(self) -> int:
        """The longest axis for which the bounds still see a single term."""
        return min((s.longest for s in self.summations if s.longest), default=5000)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the deepest stage."""
        return shader_arithmetic(lambda n: max(s.depth(n) for s in self.summations))

    def draw(self, rng: np.random.Generator, sizes: Dims) -> tuple[Arrays, Scalars]:
        """Arguments of about these sizes, such that the variant takes them."""
        for _ in range(TRIES):
            scalars = self.case.scalars(rng)
            dims = next(self._suiting(sizes, scalars), None)
            if dims is not None:
                return self.case.arrays(rng, dims), scalars
        raise AssertionError(f"{self}: nothing like {sizes} suits it")

    def suit(self, sizes: Dims) -> Dims:
        """The sizes, changed until the variant takes them, whatever the scalars."""
        return next(self._suiting(sizes, {}))

    def _suiting(self, sizes: Dims, scalars: Mapping[str, float]) -> Iterator[Dims]:
        """Sizes cut to what bounds allow, and changed until the variant takes them."""
        cut = {dim: min(size, self.longest) for dim, size in sizes.items()}
        for near in _nearby(cut):
            dims = self.case.fit(near, scalars)
            if self.takes(dims, scalars):
                yield dims

    def takes(self, dims: Dims, scalars: Mapping[str, float]) -> bool:
        """Whether the variant is for sizes such as these."""
        return self.way.takes(self.case.lengths(dims, scalars))

    def run(
        self, ctx: Context, arrays: Arrays, scalars: Mapping[str, float]
    ) -> tuple[NDArray[Any], ...]:
        """What the device gives: the changed tensors, then the outputs."""
        return run_kernel(ctx, self.kernel, arrays, scalars)

    def check(
        self,
        actual: Iterable[NDArray[Any]],
        arrays: Arrays,
        scalars: Scalars,
        where: str = "",
    ) -> None:
        """Hold what the device gave to the kernel's oracle."""
        expected = expect(self.case.oracle, self.arithmetic, arrays, scalars)
        for want, got in zip(expected, actual, strict=True):
            want.check(got, f"{self} {where}")


def run_kernel(
    ctx: Context, kernel: Kernel, arrays: Arrays, scalars: Mapping[str, float]
) -> tuple[NDArray[Any], ...]:
    """What the device gives: the changed tensors, then the outputs."""
    elements = {spec.name: spec.element for spec in kernel.tensors}
    tensors = {
        name: ctx.tensor(array, elements[name]) for name, array in arrays.items()
    }
    outputs = kernel.launch(
        ctx, tuple(tensors.values()), tuple(scalars.values()), kernel.no_out
    )
    changed = [tensors[spec.name] for spec in kernel.tensors if spec.access == "update"]
    return tuple(tensor.numpy() for tensor in (*changed, *outputs))


def folded(size: int, most: int) -> int:
    """A size not above the limit, nor 0 if it was not; what is stays as varied."""
    return size if size <= most else (size - 1) % most + 1


def _nearby(sizes: Dims) -> Iterator[Dims]:
    """Sizes below some limit, rounded up to some step, then with 1 in two dims, then others.

    The others are any near them, and small ones.
    """
    for most in MOST:
        under = {dim: folded(size, most) for dim, size in sizes.items()}
        for step in STEPS:
            for least in (0, 1):
                yield {
                    d: max(ceil_div(n, step), least) * step for d, n in under.items()
                }
    for length in (16, 20, 32, 36):
        for ones in combinations(sizes, 2):  # as of kernels of 1 x 1
            yield dict.fromkeys(sizes, length) | dict.fromkeys(ones, 1)
    rng = np.random.default_rng(0)
    for _ in range(NEAR):
        yield {d: int(rng.integers(n + 20)) for d, n in sizes.items()}
    for _ in range(NEAR):  # few elements in all, along three dims and more
        yield {d: int(rng.integers(1, FEW)) for d in sizes}


def ways(case: Case) -> Iterator[Way]:
    """Every way to run a kernel."""
    for way in verified.ways(case.kernel):
        yield Way(case, way)


@cache
def all_ways() -> tuple[Way, ...]:
    """Every way to run every standard kernel but for `large_ways`: over 4,000."""
    return tuple(way for way in _every_way() if way.workgroup_bytes <= SMALL_BYTES)


@cache
def large_ways() -> tuple[Way, ...]:
    """The ways that need more workgroup memory than small adapters have."""
    return tuple(way for way in _every_way() if way.workgroup_bytes > SMALL_BYTES)


@cache
def _every_way() -> tuple[Way, ...]:
    return tuple(way for case in standard_kernels() for way in ways(case))


def run_reference(
    case: Case, arrays: Arrays, scalars: Mapping[str, float]
) -> tuple[NDArray[Any], ...]:
    """What the generated reference gives: the changed arrays, then the outputs."""
    own = {name: array.copy() for name, array in arrays.items()}
    result: Any = case.kernel.reference(*own.values(), **scalars)
    specs = case.kernel.tensors
    written = sum(spec.access == "write" for spec in specs)
    outputs: list[Any] = [result] if written == 1 else [*result] if written else []
    changed = [own[spec.name] for spec in specs if spec.access == "update"]
    return tuple(map(np.asarray, (*changed, *outputs)))
