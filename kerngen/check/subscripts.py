"""Subscripts and the ranges of indices."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kerngen.check import faults_indices
from kerngen.check.lengths import check_length
from kerngen.check.remedies import conversion
from kerngen.check.scope import (
    FaultySymbol,
    IndexSymbol,
    TensorSymbol,
    ValueSymbol,
    closest,
    one_line,
)
from kerngen.check.text import collapse
from kerngen.check.traverse import bare_subscripts, used_in_subscripts, walk_syntax
from kerngen.check.unknown import report_unknown
from kerngen.ir.affine import (
    AffineForm,
    affine_form,
    literal_extremes,
    stays_inside,
)
from kerngen.ir.nodes import (
    Affine,
    Clamped,
    DimValue,
    Index,
    IndexValue,
    Subscript,
    Tensor,
)
from kerngen.ir.types import Scalar
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions import Expressions

_INDEX_NAMES = "ijklpqrstuvwabcdefghmnoxyz"


def example_read(tensor: Tensor) -> str:
    """Return how an element of a tensor is written: `x[i, j]`."""
    names = ", ".join(_INDEX_NAMES[n % 26] for n in range(tensor.rank))
    return f"{tensor.name}[{names}]" if names else tensor.name


# Binding


@contextmanager
def bind_indices(
    ex: Expressions, binders: tuple[ast.Binder, ...], body: ast.Expr
) -> Generator[tuple[Index, ...] | None]:
    """Introduce indices over given ranges, or the axes that they subscript in `body`.

    Yields None where a range is unknown.  An index that seems to subscript something,
    but in a faulty way, is reported after the body, if the body wasn't.
    """
    known: list[Index] = []
    doubtful: list[ast.Identifier] = []
    faults_before = len(ex.env.faults)
    for binder in binders:
        symbol = _ranged(ex, binder, body)
        if isinstance(symbol, IndexSymbol):
            known.append(symbol.index)
        elif symbol is None:
            doubtful.append(binder.name)
        introduce(ex, binder.name, symbol or FaultySymbol("an index", binder.name.span))
    yield tuple(known) if len(known) == len(binders) else None
    if len(ex.env.faults) == faults_before:
        for name in doubtful:
            _report_no_range(ex, name)


def introduce(
    ex: Expressions, name: ast.Identifier, symbol: IndexSymbol | FaultySymbol
) -> None:
    """Declare an index; where its name is taken, its uses are not looked at."""
    ex.env.indices.setdefault(name.name, name.span)
    if not ex.scope.declare(name, symbol):
        ex.scope.put(name.name, FaultySymbol("an index", name.span))


def _ranged(
    ex: Expressions, binder: ast.Binder, body: ast.Expr
) -> IndexSymbol | FaultySymbol | None:
    """Return an index with its range; None if another fault should explain it."""
    name = binder.name
    if binder.bound is not None:
        place = f"The range of '{name.name}'"
        extent = check_length(
            ex.env, ex.scope, binder.bound, place, f"{name.name}_range"
        )
        if extent is None:
            return FaultySymbol("an index", name.span)
        index, origin = Index(name.name, extent), binder.bound.span
        return IndexSymbol(index, name.span, origin, is_given=True)
    for tensor_name, axis, subscript in bare_subscripts(body):
        if subscript.name == name.name:
            symbol = ex.scope.get(tensor_name)
            if isinstance(symbol, TensorSymbol) and axis < symbol.tensor.rank:
                index = Index(name.name, symbol.tensor.extents[axis])
                return IndexSymbol(index, name.span, subscript.span)
            return FaultySymbol("an index", name.span)
    if used_in_subscripts(name.name, body) or _calls_a_tensor(ex, body):
        return None
    _report_no_range(ex, name)
    return FaultySymbol("an index", name.span)


def _calls_a_tensor(ex: Expressions, body: ast.Expr) -> bool:
    """Whether a tensor is read like a function, `x(i)`: that is told by itself."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(ex.scope.get(part.function.name), TensorSymbol)
        for part in walk_syntax(body)
    )


def _report_no_range(ex: Expressions, name: ast.Identifier) -> None:
    ex.env.faults.add(faults_indices.RangeNotFound(span=name.span, name=name.name))


# Reads


def check_subscripts(
    ex: Expressions, symbol: TensorSymbol, span: Span, subscripts: tuple[ast.Expr, ...]
) -> tuple[Subscript, ...] | None:
    """Return the subscripts of a read."""
    tensor = symbol.tensor
    if not subscripts and tensor.rank > 0 and ex.env.current.left_is_faulty:
        return None
    if len(subscripts) != tensor.rank:
        report_count(ex, symbol, span, len(subscripts))
        return None
    places = [
        _check_subscript(ex, symbol, axis, subscript)
        for axis, subscript in enumerate(subscripts)
    ]
    known = tuple(place for place in places if place is not None)
    return known if len(known) == tensor.rank else None


def report_count(ex: Expressions, symbol: TensorSymbol, span: Span, count: int) -> None:
    """Record a wrong number of subscripts."""
    ex.env.faults.add(
        faults_indices.SubscriptCount(
            span=span,
            other=symbol.span,
            tensor=symbol.tensor.name,
            rank=symbol.tensor.rank,
            count=count,
            example=example_read(symbol.tensor),
        )
    )


def _check_subscript(
    ex: Expressions, tensor: TensorSymbol, axis: int, node: ast.Expr
) -> Subscript | None:
    if isinstance(node, ast.Name):
        symbol = ex.scope.get(node.name)
        if isinstance(symbol, IndexSymbol):
            check_axis(ex, symbol, tensor.tensor, axis, node.span)
            return IndexValue(symbol.index)
        if symbol is None:
            _report_unbound(ex, node)
            return None
        if isinstance(symbol, ValueSymbol) and isinstance(symbol.value, DimValue):
            fault = faults_indices.DimAsIndex(span=node.span, name=node.name)
            ex.env.faults.add(fault)
            return None
    value = ex.check(node)
    if value is None:
        return None
    if not value.type.is_integer:
        ex.env.faults.add(
            faults_indices.SubscriptType(
                span=node.span,
                actual=value.type.spelling,
                remedy=conversion(node, value.type, Scalar.I32),
            )
        )
        return None
    form = affine_form(value)
    if form is None:
        return Clamped(value)
    inside = stays_inside(form, tensor.tensor.extents[axis])
    if ex.in_branch and not inside:
        return Clamped(value)
    if inside is False:
        _report_outside(ex, node, form, tensor.tensor, axis)
        return None
    return Affine(value, one_line(collapse(node.span.text), limit=80))


def _report_outside(
    ex: Expressions, node: ast.Expr, form: AffineForm, tensor: Tensor, axis: int
) -> None:
    least, greatest = literal_extremes(form) or (0, 0)
    extent = tensor.extents[axis]
    reaches = f"goes from {least} to {greatest}," if form.terms else "lies"
    remedy = "Choose inside of 'if ... { ... } else { ... }': there it is clamped."
    if not form.terms:
        last = f"'{extent} - 1'" if isinstance(extent, str) else str(extent - 1)
        remedy = f"Elements are numbered from 0; the last one is {last}."
    ex.env.faults.add(
        faults_indices.SubscriptOutside(
            span=node.span,
            text=one_line(node.span.text),
            reaches=reaches,
            axis=axis,
            tensor=tensor.name,
            length=str(extent),
            remedy=remedy,
        )
    )


def check_axis(
    ex: Expressions, symbol: IndexSymbol, tensor: Tensor, axis: int, span: Span
) -> None:
    """Check what names and literals say: an index stays in an axis it subscripts.

    Where a length is arithmetic, a literal or a given range, the host checks the rest.
    """
    index, extent = symbol.index, tensor.extents[axis]
    computed = {dim.name for dim in ex.env.derived}
    plain = not symbol.is_given and computed.isdisjoint((index.extent, extent))
    match index.extent, extent:
        case str(dim), str(other_dim) if dim != other_dim and plain:
            ex.env.faults.add(
                faults_indices.DimMismatch(
                    span=span,
                    other=symbol.origin,
                    index=index.name,
                    dim=dim,
                    axis=axis,
                    tensor=tensor.name,
                    other_dim=other_dim,
                )
            )
        case int(length), int(available) if length > available:
            ex.env.faults.add(
                faults_indices.RangeTooLong(
                    span=span,
                    other=symbol.origin,
                    index=index.name,
                    length=length,
                    axis=axis,
                    tensor=tensor.name,
                    available=available,
                )
            )
        case _:
            pass


def _report_unbound(ex: Expressions, node: ast.Name) -> None:
    """Record a subscript that nothing binds; once per statement."""
    name, env = node.name, ex.env
    if name in env.later:
        report_unknown(env, ex.scope, node)
        return
    current = env.current
    if current.left_is_faulty or name in current.unbound or name in env.reported:
        return
    current.unbound.add(name)
    suggestion = closest(name, ex.scope.names()) if len(name) > 2 else ""
    if name in current.bound:
        remedy = (
            "It is bound by a reduction that ends before this; put the reduction's "
            "body in parentheses."
        )
    elif suggestion:
        remedy = f"Did you mean '{suggestion}'?"
    elif current.in_let:
        remedy = (
            f"For one value per '{name}', write 'let {current.target}[{name}] = ...'; "
            f"to sum over it, 'sum[{name}] ...'."
        )
    else:
        remedy = f"To sum over it, write 'sum[{name}] ...'."
    env.faults.add(
        faults_indices.UnboundIndex(span=node.span, name=name, remedy=remedy)
    )
