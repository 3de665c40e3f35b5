"""Checking subscripts of reads: their number, and whether they stay inside axes."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Final, Literal

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions, complete
from kerngen.check.expressions.negatives import warn_of_negatives
from kerngen.check.hints.conversions import conversion
from kerngen.check.hints.subscripts import (
    Side,
    choice_at_border,
    completed,
    last_element,
    reaches,
)
from kerngen.check.hints.unknown import report_unknown
from kerngen.check.scope import IndexSymbol, Subscripted, ends_axis
from kerngen.ir.analysis.affine import affine_form, subscript_form
from kerngen.ir.analysis.extremes import stays_inside
from kerngen.ir.nodes import Affine, Clamped, Extent, IndexValue, Subscript
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast


def check_subscripts(
    ex: Expressions, tensor: Subscripted, span: Span, subscripts: tuple[ast.Expr, ...]
) -> tuple[Subscript, ...] | None:
    """Check the subscripts of a read; return them, or None after a fault."""
    if len(subscripts) != tensor.rank:
        example, new = completed(ex, tensor, subscripts)
        report_count(ex, tensor, span, len(subscripts), example, new)
        return None
    check_axes(ex, tensor, subscripts)
    pairs = zip(tensor.extents, subscripts, strict=True)
    places: tuple[Subscript, ...] | None = complete(
        [check_subscript(ex, extent, node) for extent, node in pairs]
    )
    if places is None or is_out_of_bounds(ex, tensor, places, span, subscripts):
        return None
    return places


def report_dim(
    ex: Expressions, node: ast.Name, case: Literal["index", "last"] = "index"
) -> None:
    """Report a dim used as a subscript: an index, or the last element, was meant."""
    dim = ex.scope.get(node.name)
    fault = diag.DimAsIndex(
        span=node.span, declared=dim.span if dim else None, case=case
    )
    ex.env.faults.add(fault)
    ex.scope.poison_dims()


def report_count(
    ex: Expressions,
    tensor: Subscripted,
    span: Span,
    count: int,
    example: str,
    new: str = "",
) -> None:
    """Report a wrong number of subscripts, once per tensor; `new` is an undeclared index.

    Only the first one of a count is reported: the author may have another declaration of the
    tensor in mind, and then all reads are wrong in the same way.
    """
    met = f"{tensor.name}[{count}]"
    if met in ex.env.reported:
        return
    ex.env.reported.add(met)
    ex.env.faults.add(
        diag.SubscriptCount(
            span=span,
            other=tensor.span,
            tensor=tensor.name,
            rank=tensor.rank,
            count=count,
            example=example,
            new=new,
        )
    )


def check_subscript(
    ex: Expressions, extent: Extent, node: ast.Expr
) -> Subscript | None:
    """Check a subscript of an axis: a bare index, an affine one, or one to clamp."""
    if isinstance(node, ast.Name):
        symbol = ex.scope.get(node.name)
        if isinstance(symbol, IndexSymbol):
            return IndexValue(symbol.index)
        if symbol is None:
            _report_unbound(ex, node)
            return None
        if ends_axis(symbol, extent):
            report_dim(ex, node, "last")
            return None
    value = ex.check(node, Scalar.I32)
    if value is None:
        return None
    if not value.type.is_integer:
        ex.env.faults.add(
            diag.SubscriptType(
                span=node.span,
                actual=value.type.spelling,
                remedy=conversion(node, value.type, Scalar.I32),
            )
        )
        return None
    warn_of_negatives(ex, node)
    form = affine_form(value)
    if form is None:
        return Clamped(value)
    # In a branch, an affine subscript that is not proved to stay inside is clamped, as the
    # condition may guard it; elsewhere the host checks it at the call.
    proved = stays_inside(form, extent) or ex.env.known.keeps_inside(form, extent)
    if ex.in_branch and not proved:
        return Clamped(value)
    return Affine(value, node.span.one_line(limit=80))


def _report_unbound(ex: Expressions, node: ast.Name) -> None:
    """Record a subscript that nothing binds; once per statement."""
    name, env = node.name, ex.env
    if name in env.later:
        report_unknown(ex, node)
        return
    current = env.current
    if name in env.reported:
        return
    # Short names are all alike; an index without a range is probably the one that was meant.
    suggestion = closest(name, ex.scope.names()) if len(name) > 2 else ""
    suggestion = suggestion or next(iter(env.unranged), "")
    case: Literal["ended", "end", "slip", "let", "sum"]
    if current.binds(name, node.span):
        env.drop_range_fault(name)
        case = "ended"
    elif name == "end":
        case = "end"
    elif suggestion:
        env.drop_range_fault(suggestion)
        case = "slip"
    else:
        case = "let" if current.in_let else "sum"
    env.faults.add(
        diag.UnboundIndex(
            span=node.span, case=case, suggestion=suggestion, target=current.target
        )
    )
    ex.scope.poison(name, "an index", node.span)


_MOST_AXES: Final = 6
"""With more indices, no other orders are tried: of 6 there are 720."""


def check_axes(
    ex: Expressions, tensor: Subscripted, subscripts: tuple[ast.Expr, ...]
) -> None:
    """Check the axes that bare indices subscript; swapped indices are one fault."""
    symbols = map(ex.scope.of, subscripts)
    found = [s if isinstance(s, IndexSymbol) else None for s in symbols]
    faults = [
        _with_fitting(ex, fault)
        for axis, (index, node) in enumerate(zip(found, subscripts, strict=True))
        if index and (fault := _axis_fault(ex, index, tensor, axis, node.span))
    ]
    mismatches = [f for f in faults if isinstance(f, diag.DimMismatch)]
    indices = [index for index in found if index]
    if mismatches and len(indices) == len(subscripts):
        # Those that have their ranges from this very read.
        pairs = zip(indices, subscripts, strict=True)
        own = [index for index, node in pairs if index.origin == node.span]
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
    if not isinstance(fault, diag.DimMismatch):
        return fault
    for symbol in map(ex.scope.get, ex.scope.names()):
        dim = fault.other_dim
        if isinstance(symbol, IndexSymbol) and symbol.index.extent == dim:
            fits = f"'{symbol.index.name}' ranges over '{dim}'"
            remedy = f"{fits}: use it, or one dim for both if they are always equal."
            return replace(fault, remedy=remedy)
    return fault


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
    """Return the fault of an index that leaves its axis, if dims' names or literals prove it.

    For a computed length, a literal or a given range nothing is proven here: the host checks
    it at the call.
    """
    index = symbol.index
    extent = tensor.extents[axis]
    declared = tensor.axes[axis] if tensor.axes else None
    computed = {dim.name for dim in ex.env.derived}
    plain = not symbol.is_given and computed.isdisjoint((index.extent, extent))
    match index.extent, extent:
        case str(dim), str(other_dim) if dim != other_dim and plain:
            form = subscript_form(IndexValue(index))
            if form is not None and ex.env.known.keeps_inside(form, extent):
                return None
            return diag.DimMismatch(
                span=span,
                other=symbol.origin,
                declared=declared,
                dim=dim,
                axis=axis,
                tensor=tensor.name,
                other_dim=other_dim,
            )
        case length, int(available) if _is_longer(length, available, plain=plain):
            return diag.RangeTooLong(
                span=span,
                other=symbol.origin,
                declared=declared,
                length=length,
                axis=axis,
                tensor=tensor.name,
                available=available,
            )
        case _:
            return None


def _is_longer(length: Extent, available: int, *, plain: bool) -> bool:
    """Whether a range is longer than an axis.

    The range of a dim counts as longer than an axis of length 1: the dim could be 1 in a call,
    but if it always were, it would not be a dim.
    """
    if isinstance(length, int):
        return length > available
    return plain and available == 1


def is_out_of_bounds(
    ex: Expressions,
    tensor: Subscripted,
    places: tuple[Subscript, ...],
    span: Span,
    nodes: tuple[ast.Expr, ...],
) -> bool:
    """Whether an affine subscript leaves its axis for all lengths; reports it if so.

    A subscript with an index is reported once for a tensor and statement. Recurrences
    are left out: `statements.recurrences` checks their borders.
    """
    if ex.env.current.in_let and tensor.name == ex.env.current.target:
        return False
    sides = [
        Side(tensor, axis, place.value, node)
        for axis, (place, node) in enumerate(zip(places, nodes, strict=True))
        if isinstance(place, Affine)
    ]
    outside = [side for side in sides if stays_inside(side.form, side.extent) is False]
    moving = [side for side in outside if side.form.terms]
    if moving:
        ex.scope.poison(tensor.name, "a tensor", tensor.span)
        read = span.one_line(limit=80)
        _report_outside(ex, moving[0], choice_at_border(ex.env, moving[0], sides, read))
    for side in outside:
        if not side.form.terms:
            _report_outside(ex, side, last_element(ex.env, side))
    return bool(outside)


def _report_outside(ex: Expressions, side: Side, remedy: str) -> None:
    ex.env.faults.add(
        diag.SubscriptOutside(
            span=side.node.span,
            reaches=reaches(ex.env, side.form, side.extent),
            axis=side.axis,
            tensor=side.tensor.name,
            length=ex.env.length_text(side.extent),
            remedy=remedy,
        )
    )
