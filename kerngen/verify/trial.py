"""One call, run in one way between guard zones, and compared with its expected results."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np

from kerngen.ir.nodes import Role, Tensor
from kerngen.runtime import (
    AliasError,
    Context,
    DeviceLost,
    FeatureError,
    LimitError,
    OutOfMemoryError,
    UniformRangeError,
    ValidationError,
)
from kerngen.runtime import Tensor as DeviceTensor
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.calls.ranges import shape_of
from kerngen.runtime.values.packing import is_packed
from kerngen.verify.calls.draw import twins
from kerngen.verify.calls.sizes import Fitting, Sizes
from kerngen.verify.contents import leaves
from kerngen.verify.fault import LOST, Fault, Tally, WrongError, compare
from kerngen.verify.guarded import PATTERNS, Guarded
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.programs import Subject, meaning
from kerngen.verify.meaning.values import Array
from kerngen.verify.ways import Way

AnyTensor: TypeAlias = DeviceTensor[Any, Any]

UNAVAILABLE: Final = (LimitError, FeatureError, OutOfMemoryError)
"""Errors about what an adapter can't do, which is no fault of a kernel."""
_ALIGNED: Final = 64
"""In one buffer, tensors start at multiples of this many elements.

Offsets are then multiples of 256 bytes for f32, where they can be bound without a copy.
"""


@final
@dataclass(frozen=True)
class Given:
    """The arguments of a call, and the layout of its tensors in memory.

    `arrangement` is one of `draw.ARRANGEMENTS`. `turn` is the number of the guard pattern;
    calls of even turns run twice. By differences it is the seed of the call.
    """

    sizes: Sizes
    arrays: tuple[Array, ...]
    scalars: tuple[Any, ...]
    arrangement: str = "apart"
    turn: int = 0
    overlapping: tuple[int, int] | None = None
    """Two of the kernel's tensors for which one is passed: the call must be refused."""


@final
@dataclass(frozen=True)
class Trial:
    """Tries calls of one kernel in one way."""

    guarded: Guarded
    fitting: Fitting
    tally: Tally

    @property
    def subject(self) -> Subject:
        """The kernel."""
        return self.fitting.subject

    def check(self, given: Given) -> None:
        """Run a call and compare its results; raise WrongError if one is wrong.

        Errors of the runtime about calls that it refuses are raised unchanged.
        """
        first = self.run(given, PATTERNS[given.turn])
        want = self._expected(given, first)
        self.compare(want, first)
        if given.turn % 2 == 0:
            self._check_again(given, first, want)
        self.tally.cases += 1

    def _check_again(
        self, given: Given, first: Sequence[Array], want: list[list[BoundedArray]]
    ) -> None:
        """Run a call with another guard pattern, and compare bits with the first run.

        Elements without a bound may differ: WGSL leaves their values open each time.
        """
        again = self.run(given, PATTERNS[given.turn - 1])
        for n, tensor in enumerate(written(self.subject)):
            pairs = zip(
                leaves(tensor.memory, first[n]),
                leaves(tensor.memory, again[n]),
                want[n],
                strict=True,
            )
            for (path, _, one), (_, _, other), number in pairs:
                differ = (bits(one) != bits(other)) & np.isfinite(number.error)
                if differ.any():
                    found = np.unravel_index(int(np.argmax(differ)), one.shape)
                    place = tuple(map(int, found))
                    at = f"[{', '.join(map(str, place))}]" if place else ""
                    text = (
                        f"{tensor.name}{path}{at} is {one[place]}, and {other[place]} "
                        f"when it runs again beside other memory"
                    )
                    raise WrongError(Fault("bits", text, n, path, place))

    def meaning(self, given: Given) -> list[list[BoundedArray]]:
        """Return the expected results of a call."""
        lengths = self.fitting.lengths(given.sizes)
        assert lengths is not None
        return meaning(self.subject, lengths, given.arrays, given.scalars)

    def _expected(
        self, given: Given, results: Sequence[Array]
    ) -> list[list[BoundedArray]]:
        """Return the expected results of a call, unknown where `flash` may give NaN.

        Its tiles weigh values that a condition leaves out by 0, which is NaN if they are not
        finite; with `rows(4)` they leave them out.
        """
        want = self.meaning(given)
        name = self.fitting.way.strategy.name
        in_tiles = name.startswith("flash") and "rows4" not in name
        if not in_tiles or all(np.isfinite(array).all() for array in given.arrays):
            return want
        return [
            [
                replace(each, error=np.where(np.isnan(part), np.inf, each.error))
                for each, (_, _, part) in zip(
                    want[n], leaves(tensor.memory, results[n]), strict=True
                )
            ]
            for n, tensor in enumerate(written(self.subject))
        ]

    def compare(self, want: list[list[BoundedArray]], got: Sequence[Array]) -> None:
        """Compare results with the expected ones; raise WrongError if they differ."""
        for n, tensor in enumerate(written(self.subject)):
            compare(tensor.name, tensor.memory, want[n], got[n], self.tally, n)

    def run(self, given: Given, pattern: Any) -> list[Array]:
        """Return the results of a call between guard zones that are filled with a pattern.

        Raises `WrongError` if the call changes a guard zone, which is a write out of
        bounds.
        """
        with self._raising():
            with self.guarded.under(pattern):
                results = launch(
                    self.guarded.ctx, self.fitting, self.fitting.way, given
                )
            fault = self.guarded.fault(by_words=writes_words(self.subject))
        if fault:
            raise WrongError(Fault("outside", fault))
        return results

    def refer(self, given: Given) -> None:
        """Compare the NumPy reference's results with the expected ones."""
        with self._raising():
            results = refer(self.fitting.kernel, given)
        self.compare(self.meaning(given), results)
        self.tally.cases += 1

    @contextmanager
    def _raising(self) -> Generator[None]:
        """Report an exception of the call in the block as a fault of the kernel.

        The arguments are right, so that nothing should be raised.
        """
        try:
            yield
        except (WrongError, UniformRangeError, *UNAVAILABLE):
            raise
        except DeviceLost as error:
            self.guarded.lost = True
            raise WrongError(Fault(LOST, f"The device is lost: {error}")) from error
        except ValidationError as error:
            raise WrongError(Fault("refused", str(error))) from error
        except Exception as error:
            text = f"the call raises {type(error).__name__}: {error}"
            raise WrongError(Fault("raised", text)) from error


def bits(numbers: Array) -> Array:
    """Return an array's bits as integers."""
    return (
        np.ascontiguousarray(numbers)
        .view(f"u{numbers.dtype.itemsize}")
        .reshape(numbers.shape)
    )


def written(subject: Subject) -> Iterator[Tensor]:
    """Yield the tensors that a call changes, then its outputs."""
    for role in (Role.UPDATE, Role.OUTPUT):
        yield from (each for each in subject.kernel.tensors if each.role is role)


def writes_words(subject: Subject) -> bool:
    """Whether a call writes 8- or 4-bit integers: it writes whole 32-bit words of them."""
    return any(tensor.narrow is not None for tensor in written(subject))


def launch(ctx: Context, fitting: Fitting, way: Way, given: Given) -> list[Array]:
    """Run a call on a device, and return the changed tensors, then the outputs."""
    kernel = way.kernel
    tensors = device_tensors(ctx, fitting, given)
    out: tuple[AnyTensor | None, ...] = kernel.no_out
    if given.arrangement == "given":
        lengths = fitting.lengths(given.sizes)
        assert lengths is not None
        out = tuple(
            ctx.empty(shape_of(spec.axes, lengths), spec.element)
            for spec in kernel.outputs
        )
    if given.overlapping:
        return _overlapping(ctx, kernel, tensors, given)
    made = kernel.launch(ctx, tuple(tensors), given.scalars, out)
    pairs = zip(kernel.inputs, tensors, strict=True)
    changed = [tensor for spec, tensor in pairs if spec.access == "update"]
    return [tensor.numpy() for tensor in (*changed, *made)]


def _overlapping(
    ctx: Context, kernel: Kernel, tensors: list[AnyTensor], given: Given
) -> list[Array]:
    """Pass one tensor as two arguments, one of which is written; it must be refused."""
    assert given.overlapping is not None
    first, second = given.overlapping
    out: list[AnyTensor | None] = [*kernel.no_out]
    if second < len(tensors):
        tensors[second] = tensors[first]
    else:
        out[second - len(tensors)] = tensors[first]
    one, other = kernel.tensors[first].name, kernel.tensors[second].name
    try:
        kernel.launch(ctx, tuple(tensors), given.scalars, tuple(out))
    except AliasError:
        return []
    text = f"'{one}' and '{other}' are one tensor, and the call did not refuse that"
    raise WrongError(Fault("overlap", text))


def device_tensors(ctx: Context, fitting: Fitting, given: Given) -> list[AnyTensor]:
    """Return the inputs of a call as tensors, in their layout in memory."""
    specs = fitting.kernel.inputs
    if given.arrangement == "together":
        return _together(ctx, fitting, given)
    made = [
        ctx.tensor(array, spec.element)
        for array, spec in zip(given.arrays, specs, strict=True)
    ]
    if given.arrangement == "the same":
        for first, second in twins(fitting, given.arrays):
            made[second] = made[first]
    return made


def _together(ctx: Context, fitting: Fitting, given: Given) -> list[AnyTensor]:
    """Return the inputs, those of one element type as views of one buffer.

    Integers of 8 and 4 bits have buffers of their own: no view ends within a byte.
    """
    specs = fitting.kernel.inputs
    made: dict[int, AnyTensor] = {
        n: ctx.tensor(given.arrays[n], spec.element)
        for n, spec in enumerate(specs)
        if is_packed(spec.element)
    }
    for element in dict.fromkeys(spec.element for spec in specs):
        own = [n for n, spec in enumerate(specs) if spec.element is element]
        if is_packed(element):
            continue
        inner = getattr(element, "shape", ())
        flat = [given.arrays[n].reshape(-1, *inner) for n in own]
        starts: list[int] = []
        pieces: list[Array] = []
        end = 0
        for piece in flat:
            gap = -end % _ALIGNED
            pieces += [np.zeros((gap, *inner), piece.dtype), piece]
            starts.append(end + gap)
            end += gap + len(piece)
        whole = ctx.tensor(np.concatenate(pieces), element)
        for n, start, piece in zip(own, starts, flat, strict=True):
            shape = given.arrays[n].shape
            outer = shape[: len(shape) - len(inner)]
            made[n] = whole[start : start + len(piece)].reshape(outer)
    return [made[n] for n in range(len(specs))]


def refer(kernel: Kernel, given: Given) -> list[Array]:
    """Run a call by the NumPy reference, and return its results."""
    arrays = [array.copy() for array in given.arrays]
    names = (spec.name for spec in kernel.scalars)
    result: Any = kernel.reference(
        *arrays, **dict(zip(names, given.scalars, strict=True))
    )
    pairs = zip(kernel.inputs, arrays, strict=True)
    changed = [array for spec, array in pairs if spec.access == "update"]
    outputs: list[Any] = []
    if result is not None:
        outputs = [*result] if isinstance(result, tuple) else [result]
    return [np.asarray(each) for each in (*changed, *outputs)]
