"""Bare indices against axes: an index over `m` does not subscript an axis of length `n`."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Final

from kerngen.check.faults.indices import DimMismatch, RangeTooLong
from kerngen.check.scope import IndexSymbol
from kerngen.ir.analysis.affine import subscript_form
from kerngen.ir.nodes import Extent, Index, IndexValue
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions
    from kerngen.check.expressions.subscripts import Subscripted

_MOST_AXES: Final = 6
"""Of more, the orders are not tried."""


def check_axes(
    ex: Expressions, tensor: Subscripted, subscripts: tuple[ast.Expr, ...]
) -> None:
    """Check the bare indices of a read; those that are only swapped are one fault."""
    found = [_bare_index(ex, subscript) for subscript in subscripts]
    faults = [
        _with_fitting(ex, fault)
        for axis, (index, node) in enumerate(zip(found, subscripts, strict=True))
        if index and (fault := _axis_fault(ex, index, tensor, axis, node.span))
    ]
    mismatches = [f for f in faults if isinstance(f, DimMismatch)]
    indices = [index for index in found if index]
    if mismatches and len(indices) == len(subscripts):
        own = [
            i for i, node in zip(indices, subscripts, strict=True) if _is_own(i, node)
        ]
        if order := _right_order(tensor, indices, own):
            names = ", ".join(index.index.name for index in order)
            remedy = f"Write '{tensor.name}[{names}]'."
            faults = [replace(mismatches[0], remedy=remedy)]
            for index in own:
                ex.scope.poison(index.index.name, "an index", index.span)
    for fault in faults:
        ex.env.faults.add(fault)


def _with_fitting(ex: Expressions, fault: Diagnostic) -> Diagnostic:
    """Return a mismatch with the index that would fit the axis, if one is in reach."""
    if not isinstance(fault, DimMismatch):
        return fault
    for symbol in map(ex.scope.get, ex.scope.names()):
        dim = fault.other_dim
        if isinstance(symbol, IndexSymbol) and symbol.index.extent == dim:
            fits = f"'{symbol.index.name}' ranges over '{dim}'"
            remedy = f"{fits}: use it, or one dim for both if they are always equal."
            return replace(fault, remedy=remedy)
    return fault


def _bare_index(ex: Expressions, node: ast.Expr) -> IndexSymbol | None:
    symbol = ex.scope.get(node.name) if isinstance(node, ast.Name) else None
    return symbol if isinstance(symbol, IndexSymbol) else None


def _is_own(index: IndexSymbol, node: ast.Expr) -> bool:
    """Whether an index has its range from this very subscript."""
    return index.origin == node.span


def _right_order(
    tensor: Subscripted, indices: list[IndexSymbol], own: list[IndexSymbol]
) -> tuple[IndexSymbol, ...] | None:
    """Return the order in which the indices fit the axes, if there is one."""
    if len(indices) > _MOST_AXES:
        return None
    for order in permutations(indices):
        pairs = zip(order, tensor.extents, strict=True)
        if all(index in own or index.index.extent == axis for index, axis in pairs):
            return order
    return None


def _axis_fault(
    ex: Expressions, symbol: IndexSymbol, tensor: Subscripted, axis: int, span: Span
) -> Diagnostic | None:
    """Return the fault of an index that leaves its axis, as names and literals prove it.

    Where a length is arithmetic, a literal or a given range, the host checks the rest.
    """
    index = symbol.index
    extent = tensor.extents[axis]
    declared = tensor.axes[axis] if tensor.axes else None
    computed = {dim.name for dim in ex.env.derived}
    plain = not symbol.is_given and computed.isdisjoint((index.extent, extent))
    match index.extent, extent:
        case str(dim), str(other_dim) if dim != other_dim and plain:
            if _is_proved(ex, index, extent):
                return None
            return DimMismatch(
                span=span,
                other=symbol.origin,
                declared=declared,
                index=index.name,
                dim=dim,
                axis=axis,
                tensor=tensor.name,
                other_dim=other_dim,
            )
        case length, int(available) if _is_longer(length, available, plain=plain):
            return RangeTooLong(
                span=span,
                other=symbol.origin,
                declared=declared,
                index=index.name,
                length=length,
                axis=axis,
                tensor=tensor.name,
                available=available,
            )
        case _:
            return None


def _is_proved(ex: Expressions, index: Index, extent: Extent) -> bool:
    """Whether a 'require' has the index inside of an axis of another length."""
    form = subscript_form(IndexValue(index))
    return form is not None and ex.env.known.keeps_inside(form, extent)


def _is_longer(length: Extent, available: int, *, plain: bool) -> bool:
    """Whether a range is longer than an axis; that of a dim is, if the axis has but one.

    It could be 1 in a call: but then there was no need for the dim.
    """
    if isinstance(length, int):
        return length > available
    return plain and available == 1
