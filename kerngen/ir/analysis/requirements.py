"""Facts from the `require`s of a kernel, and the subscripts that they keep inside axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from typing import final

from kerngen.ir.analysis.affine import AffineForm
from kerngen.ir.analysis.extremes import MOST_INDICES
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.nodes import DerivedDim, Expr, Extent, Index, Kernel, Requirement
from kerngen.ir.sizes import Condition, SizeMaker
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


@final
@dataclass(frozen=True)
class Known:
    """The facts about lengths and scalars that hold in every call of a kernel.

    - `requires`: the kernel's `require` conditions
    - `dims`, `unsigned`: the names of lengths and of u32 scalars, which are not negative
    - `derived`: the lengths that the host computes
    - `hosts`: the expressions of the kernel's hosts, by name
    """

    requires: Sequence[Requirement] = ()
    dims: Iterable[str] = ()
    unsigned: Iterable[str] = ()
    derived: Sequence[DerivedDim] = ()
    hosts: Mapping[str, Expr] = field(default_factory=dict[str, Expr])

    @cached_property
    def _maker(self) -> SizeMaker:
        """One maker for all, so that different expressions have different symbols."""
        return SizeMaker(self.hosts, str)

    @cached_property
    def facts(self) -> Facts:
        """The requirements as facts for proofs, with the names of what is never negative."""
        guards = tuple(self.guard(each.condition) for each in self.requires)
        return Facts(guards, frozenset((*self.dims, *self.unsigned)))

    def guard(self, condition: Condition) -> Guard:
        """Convert a bool expression of the IR to a guard of the plan; a guard is kept."""
        return self._maker.guard(condition)

    def size(self, value: Expr) -> Size:
        """Convert an integer expression of the IR to a size of the plan."""
        return self._maker.size(value)

    def keeps_inside(self, form: AffineForm, extent: Extent) -> bool:
        """Whether the requirements prove that a subscript is inside its axis in every call.

        `extent` is the axis's length.  The proof is over integers without bounds.  It holds in
        32 bits, too: a sum inside of the axis is exact there, even if parts of it wrap, and
        quotients are computed as the shader does.
        """
        if not self.requires or len(form.terms) > MOST_INDICES:
            return False
        ranged = [self._length(index.extent) for index in form.terms]
        # Each index ranges over 1 or more: over an empty range nothing is read.
        facts = self.facts.with_more(Compare(">=", each, Literal(1)) for each in ranged)
        last = add(self._length(extent), -1)
        return all(
            facts.is_natural(corner) and facts.is_at_most(corner, last)
            for corner in self._corners(form)
        )

    def _corners(self, form: AffineForm) -> Iterator[Size]:
        """Yield the value of a form for all choices of an end of each index's range.

        The greatest and the least value are among them, whatever the coefficients' signs.
        """
        # Quotients in the offset and coefficients are of 32-bit integers.
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
        """Return a length as a size; a derived one by the sizes that it is derived from."""
        if isinstance(extent, int):
            return Literal(extent)
        values = (dim.value for dim in self.derived if dim.name == extent)
        return next(map(self._maker.size, values), Symbol(extent))


@cached_on_instance
def facts_of(kernel: Kernel) -> Facts:
    """Return the facts that follow from a kernel's requirements, for proofs about every call.

    Each length that the host derives is equal to its expression.  A kernel without
    requirements has no facts, not even these.
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
    """Return the facts about every call of a kernel: its requirements, lengths and scalars."""
    return Known(
        kernel.requires,
        kernel.dims,
        [p.name for p in kernel.parameters if p.memory.spelling == "u32"],
        kernel.derived,
        {host.name: host.value for host in kernel.hosts},
    )
