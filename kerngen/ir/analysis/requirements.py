"""Facts from the `require`s of a kernel: conditions, and subscripts inside axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from typing import Final, final

from kerngen.ir.analysis.affine import AffineForm
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.nodes import DerivedDim, Expr, Extent, Index, Kernel, Requirement
from kerngen.ir.sizes import SizeMaker
from kerngen.plan.facts import Facts
from kerngen.plan.size import (
    Compare,
    Guard,
    Literal,
    Size,
    Symbol,
    add,
    multiply,
)

_MOST_INDICES: Final = 6
"""Of more indices, the corners are not all looked at."""


@final
@dataclass(frozen=True)
class Known:
    """The facts about lengths and scalars that hold in every call of a kernel.

    `dims` and `unsigned` are never negative; `hosts` are the values of integer hosts.
    """

    requires: Sequence[Requirement] = ()
    dims: Iterable[str] = ()
    unsigned: Iterable[str] = ()
    derived: Sequence[DerivedDim] = ()
    hosts: Mapping[str, Expr] = field(default_factory=dict[str, Expr])

    @cached_property
    def _maker(self) -> SizeMaker:
        """One for all, so that what it can't express has a name of its own each."""
        return SizeMaker(self.hosts, str)

    @cached_property
    def facts(self) -> Facts:
        """The requirements as facts of the plan."""
        guards = tuple(self.guard(each.condition) for each in self.requires)
        return Facts(guards, frozenset((*self.dims, *self.unsigned)))

    def guard(self, condition: Expr) -> Guard:
        """Return a condition as a guard of the plan."""
        return self._maker.guard(condition)

    def size(self, value: Expr) -> Size:
        """Return a length as a size of the plan."""
        return self._maker.size(value)

    def keeps_inside(self, form: AffineForm, extent: Extent) -> bool:
        """Whether the requirements keep a subscript inside its axis in every call.

        A sum inside of the axis is exact in 32 bits, even if steps to it wrap;
        quotients are computed as the kernel does.
        """
        if not self.requires or len(form.terms) > _MOST_INDICES:
            return False
        ranged = [self._length(index.extent) for index in form.terms]
        # Over an empty range nothing is read.
        facts = self.facts.with_more(Compare(">=", each, Literal(1)) for each in ranged)
        last = add(self._length(extent), -1)
        return all(
            facts.is_natural(corner) and facts.is_at_most(corner, last)
            for corner in self._corners(form)
        )

    def _corners(self, form: AffineForm) -> Iterator[Size]:
        """Yield the value of a form where each index is at an end of its range.

        It is greatest and least at two of these, whatever the signs of coefficients.
        """
        wrapping = replace(self._maker, wraps=True)
        offset = wrapping.size(form.offset)
        ends = [
            (Literal(0), multiply(wrapping.size(c), self._last(index)))
            for index, c in form.terms.items()
        ]
        for places in product(*ends):
            yield reduce(add, places, offset)

    def _last(self, index: Index) -> Size:
        return add(self._length(index.extent), -1)

    def _length(self, extent: Extent) -> Size:
        """Return a length; one that the host derives is what it is derived from."""
        if isinstance(extent, int):
            return Literal(extent)
        values = (dim.value for dim in self.derived if dim.name == extent)
        return next(map(self._maker.size, values), Symbol(extent))


@cached_on_instance
def facts_of(kernel: Kernel) -> Facts:
    """Return the facts that hold in every call of a kernel, from its requirements.

    They include the lengths that the host derives; a kernel without requirements has
    none.
    """
    if not kernel.requires:
        return Facts()
    known = known_of(kernel)
    derived = (
        Compare("==", Symbol(dim.name), known.size(dim.value)) for dim in kernel.derived
    )
    facts = known.facts.with_more(derived)
    return Facts(facts.guards, facts.natural | {dim.name for dim in kernel.derived})


@cached_on_instance
def known_of(kernel: Kernel) -> Known:
    """Return the facts about every call of a kernel."""
    return Known(
        kernel.requires,
        kernel.dims,
        [p.name for p in kernel.parameters if p.memory.spelling == "u32"],
        kernel.derived,
        {host.name: host.value for host in kernel.hosts},
    )
