"""Lengths of calls: which to try, and how to adjust lengths that a kernel refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from kerngen.ir.nodes import Extent, Statement
from kerngen.plan import size as host
from kerngen.plan.hostmath import ceil_div
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.calls.ranges import check_gathers, check_ranges, derive, shape_of
from kerngen.runtime.errors import ArgumentError, ShapeError
from kerngen.verify.meaning.places import chains
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.ways import Way

Sizes: TypeAlias = tuple[tuple[str, int], ...]
"""The lengths of a call by dim, and its integer scalars that decide lengths."""

MOST_WORK: Final = 1 << 16
"""Points of a domain, times the terms of the sums in it, that the oracle computes at most."""
LONGEST: Final = 5000
"""The longest axis that is drawn."""
_AWKWARD: Final = (0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 67, 131)
"""Lengths to try with any schedule: empty and short axes, powers of two, primes."""
_STEPS: Final = (1, 4, 128)
"""Lengths are rounded up to multiples of these, as aligned variants take no others."""
_MOST: Final = (LONGEST, 1024, 256, 64, 16, 8)
"""Caps on lengths, one after the other, until the call costs less than MOST_WORK."""
_LADDER: Final = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 18, 20, 32, 64)
"""Lengths, and factors of lengths, for random sizes where no cap helps."""
_SMALL: Final = (0, 1, 2, 3, 4)
"""Values of integer scalars that decide lengths, such as a stride."""
_TRIES: Final = 400
"""Random sizes that are tried at last."""


def longest(sizes: Sizes) -> int:
    """Return the greatest length of a call, or 1 if it has none."""
    return max((1, *(length for _, length in sizes)))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Fitting:
    """Chooses lengths of calls that run a kernel in a certain way."""

    subject: Subject
    way: Way
    _mended: dict[Sizes, Sizes | None] = field(default_factory=dict[Sizes, Any])

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel's runtime form."""
        return self.way.original

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers to choose: dims, then scalars that set lengths."""
        return self.kernel.size_names

    @cached_property
    def domains(self) -> tuple[tuple[Statement, tuple[Extent, ...]], ...]:
        """The extents of each statement's indices, those of reductions in it included."""
        return tuple(
            (statement, (*(index.extent for index in statement.indices), *chain))
            for statement in self.subject.kernel.body
            for chain in chains(statement.value) or ((),)
        )

    @cached_property
    def telling(self) -> tuple[int, ...]:
        """Lengths at which schedules change, and their neighbours.

        They are the numbers in the strategy's name and the size of its workgroups.
        """
        text = f"{self.way.strategy.name}_{self.way.strategy.needs.invocations}"
        edges = {int(digits) for digits in re.findall(r"\d+", text)} | {64, 256}
        near = {n + by for n in edges for by in (-1, 0, 1) if n > 1}
        return tuple(sorted({*_AWKWARD, *(n for n in near if n <= 1025)}))

    def lengths(self, sizes: Sizes) -> dict[str, int] | None:
        """Return all lengths of a call, or None if the kernel refuses it."""
        lengths = dict(sizes)
        try:
            derive(self.kernel, lengths)
            check_ranges(self.kernel, lengths)
            check_gathers(self.kernel, lengths)
        except (ShapeError, ArgumentError, ArithmeticError):
            return None
        return lengths

    def suits(self, sizes: Sizes) -> bool:
        """Whether a call with these sizes runs in the wanted way, and can be checked."""
        lengths = self.lengths(sizes)
        if lengths is None or not self.way.takes(lengths):
            return False
        return self.cost(lengths) <= MOST_WORK

    def cost(self, lengths: Mapping[str, int]) -> int:
        """Return the number of elements or terms of the most expensive statement."""

        def length(extent: str | int) -> int:
            return extent if isinstance(extent, int) else lengths[extent]

        body = (prod(map(length, domain)) for _, domain in self.domains)
        tensors = (prod(shape_of(t.axes, lengths)) for t in self.kernel.tensors)
        return max((*body, *tensors), default=1)

    def near(self, sizes: Sizes) -> Sizes | None:
        """Return the most similar sizes that suit, or None."""
        if sizes not in self._mended:
            wanted = self.way.variant.when
            tried = chain(self.candidates(sizes), self.candidates(sizes, wanted))
            self._mended[sizes] = next(filter(self.suits, tried), None)
        return self._mended[sizes]

    def candidates(
        self, sizes: Sizes, wanted: host.Guard = host.ALWAYS
    ) -> Iterator[Sizes]:
        """Yield sizes that meet the requirements and `wanted`, the most similar first."""
        return (
            tuple(meeting(self.kernel, dict(each), wanted).items())
            for each in self._near(sizes)
        )

    def _near(self, sizes: Sizes) -> Iterator[Sizes]:
        """Yield the sizes, then capped and rounded ones, then partly random ones."""
        yield sizes
        dims, under = self.kernel.dims, dict(sizes)
        for most in _MOST:
            under = {n: min(v, most) if n in dims else v for n, v in sizes}
            for step in _STEPS:
                for least in (0, 1):
                    yield tuple(
                        (n, max(ceil_div(v, step), least) * step if n in dims else v)
                        for n, v in under.items()
                    )
        rng = np.random.default_rng(0)
        for turn in range(_TRIES):
            yield tuple(
                (name, value if rng.random() < 0.5 else self._any(rng, name, turn))
                for name, value in under.items()
            )

    def _any(self, rng: np.random.Generator, name: str, turn: int) -> int:
        if name not in self.kernel.dims:
            return int(rng.choice(_SMALL))
        return int(rng.choice(_LADDER) * (1 if turn % 2 else rng.integers(1, 9)))


# Lengths that meet the `require`s of a kernel, and what a variant asks for: that of
# convolutions without windows wants `stride == 1 and pad == 0 and r == 1 and s == 1`, which
# drawn numbers seldom are.
#
# Each condition that does not hold is met in the simplest way:
#
#     d % 8 == 0    d = 21 → 16          s < t    s = 9, t = 5 → s = 4
#
# All together they may still not hold: then these are no lengths of a call, and others are
# tried.


_ROUNDS: Final = 2
"""Passes over the conditions: one may undo what met another before it."""

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_ABOVE: Final = {"<": -1, "<=": 0, "==": 0, ">": 1, ">=": 0}
"""The offset to the right side at which a comparison holds: `s < t` does for `s = t - 1`."""


def meeting(
    kernel: Kernel, sizes: Mapping[str, int], wanted: host.Guard = host.ALWAYS
) -> dict[str, int]:
    """Return sizes close to these that meet the requirements, as far as possible.

    So they do the parts of `wanted` that depend on sizes alone.
    """
    values = dict(sizes)
    required = () if kernel.computed else (x.condition for x in kernel.requires)
    conditions = (*required, wanted)
    for _ in range(_ROUNDS):
        for each in conditions:
            _meet(each, values)
    return {n: max(v, 0) if n in kernel.dims else v for n, v in values.items()}


def _meet(guard: host.Guard, values: dict[str, int]) -> None:
    """Change a length for each part of a condition that does not hold.

    A part that reads lengths which follow from others is left alone.
    """
    if isinstance(guard, host.All):
        for each in guard.guards:
            _meet(each, values)
    elif values.keys() >= {*host.symbols(guard)} and not host.holds(guard, values):
        _change(guard, values)


def _change(guard: host.Guard, values: dict[str, int]) -> None:
    """Change one length so that a condition holds; one of another form is left alone."""
    match guard:
        case host.Compare(
            "==",
            host.Apply("%", (host.Symbol(name), host.Literal(by))),
            host.Literal(rest),
        ):
            values[name] = values[name] // by * by + rest
        case host.Compare(op, host.Symbol(name), right) if op in _ABOVE:
            values[name] = host.evaluate(right, values) + _ABOVE[op]
        case host.Compare(op, left, host.Symbol(name)) if op in _FLIPPED:
            values[name] = host.evaluate(left, values) + _ABOVE[_FLIPPED[op]]
        case host.AnyOf((first, *_)):
            _meet(first, values)
        case _:
            return
