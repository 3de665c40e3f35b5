"""Factors that read one element at bare indices: their address grows by a fixed step.

The address of `a[i, p]` is computed once before a loop over p, and each turn adds the same
number to it:

    let a_from = i * u.k + a_p;
    for (...) { a_load = a[a_from + following]; ... }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import final

from kerngen.ir.nodes import Cast, Expr, Extent, Index, IndexValue, Load
from kerngen.ir.types import Scalar
from kerngen.schedule.lowering.addresses import row_major, vector_address
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.values import LANES
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """A read of one element of a tensor with the axes `extents`; its subscripts are `indices`.

    An address is the number of an element, or with four `lanes` the number of a vector of four.
    """

    indices: tuple[Index, ...]
    extents: tuple[Extent, ...]

    def address(
        self, shader: ShaderBuilder, at: Mapping[Index, t.Expr], lanes: int
    ) -> t.Expr:
        """Return the address of the element that is read at the index values `at`."""
        form = vector_address if lanes == LANES else row_major
        return form(shader, self.extents, [at[index] for index in self.indices])

    def step(
        self, shader: ShaderBuilder, index: Index, count: t.Expr, lanes: int
    ) -> t.Expr:
        """Return how much the address grows when `index` grows by `count`."""
        inner = self.extents[self.indices.index(index) + 1 :]
        if not inner:
            return count // lanes
        *middle, last = map(shader.extent, inner)
        return prod([count, *middle, last // lanes], start=t.ONE)

    def last(self, shader: ShaderBuilder) -> t.Expr:
        """Return the address of the tensor's last element."""
        size = prod(map(shader.extent, self.extents), start=t.ONE)
        return t.Binary("-", size, t.ONE)


@final
@dataclass(frozen=True, slots=True)
class FlatTerms:
    """A read whose last subscripts are the reduction's indices: its terms are contiguous.

    Term number `term` of `k[f, q, u, v]`, summed over q, u and v, is at the address
    `f * terms + term`: the values of q, u and v are not needed, whose computation from the
    number would take divisions.
    """

    indices: tuple[Index, ...]
    outer: tuple[Extent, ...]

    def address(
        self,
        shader: ShaderBuilder,
        at: Mapping[Index, t.Expr],
        terms: t.Expr,
        term: t.Expr,
    ) -> t.Expr:
        """Return the address of term number `term` of a result that has `terms` terms."""
        places = [at[index] for index in self.indices[: len(self.outer)]]
        if not places:
            return term
        return row_major(shader, self.outer, places) * terms + term


def flat_terms(factor: Expr, over: tuple[Index, ...]) -> FlatTerms | None:
    """Return a factor's read if its terms over the indices `over` are contiguous, in order.

    None if they are not, or if the factor is not the read of a scalar.
    """
    load = factor
    while isinstance(load, Cast):
        load = load.operand
    if not isinstance(load, Load) or not isinstance(load.tensor.element, Scalar):
        return None
    indices = tuple(s.index for s in load.subscripts if isinstance(s, IndexValue))
    rank = len(load.subscripts) - len(over)
    extents = tuple(index.extent for index in over)
    # The reduction's indices in their order, over whole axes: else terms have gaps.
    whole = indices[rank:] == over and load.tensor.extents[rank:] == extents
    if rank < 0 or not whole or len(set(indices)) < len(load.subscripts):
        return None
    return FlatTerms(indices, load.tensor.extents[:rank])


def linear_read(
    factor: Expr, outer: Index, over: tuple[Index, ...], axis: Index
) -> Linear | None:
    """Return a factor's read if it is of one element at bare indices, with `axis` the last.

    It must depend on `outer` and on the reduction's only index, in `over`.  None if it does not
    fit, or if the reduction has several indices.
    """
    if len(over) > 1:
        return None
    load = factor
    while isinstance(load, Cast):
        load = load.operand
    if not isinstance(load, Load) or not isinstance(load.tensor.element, Scalar):
        return None
    indices = tuple(s.index for s in load.subscripts if isinstance(s, IndexValue))
    if indices[-1:] != (axis,) or len(set(indices)) < len(load.subscripts):
        return None
    depends = {outer, *over} <= set(indices)
    return Linear(indices, load.tensor.extents) if depends else None
