"""Subscripts and the ranges of indices."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kerngen.check import faults_indices, faults_unsupported
from kerngen.check.remedies import conversion
from kerngen.check.scope import (
    FaultySymbol,
    IndexSymbol,
    TensorSymbol,
    ValueSymbol,
    closest,
    one_line,
)
from kerngen.check.traverse import bare_subscripts, used_in_subscripts
from kerngen.check.unknown import report_unknown
from kerngen.ir.nodes import (
    Binary,
    Cast,
    Constant,
    ConstRef,
    DimValue,
    Expr,
    Index,
    IndexValue,
    Load,
    RangeCheck,
    Role,
    Tensor,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
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
    """Introduce indices that range over the axes that they subscript in `body`.

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
        ex.env.faults.add(
            faults_unsupported.GivenRangeUnsupported(
                span=name.span.to(binder.bound.span), name=name.name
            )
        )
        return FaultySymbol("an index", name.span)
    for tensor_name, axis, subscript in bare_subscripts(body):
        if subscript.name == name.name:
            symbol = ex.scope.get(tensor_name)
            if isinstance(symbol, TensorSymbol) and axis < symbol.tensor.rank:
                index = Index(name.name, symbol.tensor.extents[axis])
                return IndexSymbol(index, name.span, subscript.span)
            return None
    if used_in_subscripts(name.name, body):
        return None
    _report_no_range(ex, name)
    return FaultySymbol("an index", name.span)


def _report_no_range(ex: Expressions, name: ast.Identifier) -> None:
    ex.env.faults.add(faults_indices.RangeNotFound(span=name.span, name=name.name))


# Reads


def check_subscripts(
    ex: Expressions, symbol: TensorSymbol, span: Span, subscripts: tuple[ast.Expr, ...]
) -> tuple[Expr, ...] | None:
    """Return the subscripts of a read."""
    tensor = symbol.tensor
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
) -> Expr | None:
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
    if any(isinstance(part, Load) for part in walk(value)):
        return value
    _report_unsupported(ex, node.span, value)
    return None


def check_axis(
    ex: Expressions, symbol: IndexSymbol, tensor: Tensor, axis: int, span: Span
) -> None:
    """Check that the range of an index lies inside an axis that it subscripts."""
    index, extent = symbol.index, tensor.extents[axis]
    match index.extent, extent:
        case str(dim), str(other_dim) if dim != other_dim:
            ex.env.faults.add(
                faults_indices.DimMismatch(
                    span=span,
                    other=symbol.origin,
                    index=index.name,
                    dim=dim,
                    axis=axis + 1,
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
                    axis=axis + 1,
                    tensor=tensor.name,
                    available=available,
                )
            )
        case (str(), int()) | (int(), str()):
            check = _host_check(ex, index, tensor, axis)
            if check not in ex.env.checks:
                ex.env.checks.append(check)
        case _:
            pass


def _host_check(ex: Expressions, index: Index, tensor: Tensor, axis: int) -> RangeCheck:
    """Return a check that the host can make: a let has its lengths from a tensor."""
    extent = tensor.extents[axis]
    if tensor.role is Role.LET:
        tensor, axis = next(
            (other, place)
            for other in ex.env.tensors
            for place, length in enumerate(other.extents)
            if length == extent
        )
    return RangeCheck(index, tensor.name, axis, extent)


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
    else:
        remedy = f"To sum over it, write 'sum[{name}] ...'."
    env.faults.add(
        faults_indices.UnboundIndex(span=node.span, name=name, remedy=remedy)
    )


# What is not supported yet


def _report_unsupported(ex: Expressions, span: Span, value: Expr) -> None:
    text = one_line(span.text)
    leaves = list(walk(value))
    indices = {leaf.index.name: None for leaf in leaves if isinstance(leaf, IndexValue)}
    if indices and _is_affine(value):
        names = " and ".join(f"'{name}'" for name in indices)
        ex.env.faults.add(
            faults_unsupported.AffineSubscriptUnsupported(
                span=span, text=text, names=names
            )
        )
    elif indices:
        ex.env.faults.add(
            faults_unsupported.ComputedSubscriptUnsupported(span=span, text=text)
        )
    elif any(isinstance(leaf, DimValue | UniformValue) for leaf in leaves):
        ex.env.faults.add(
            faults_unsupported.ScalarSubscriptUnsupported(span=span, text=text)
        )
    else:
        ex.env.faults.add(
            faults_unsupported.ConstantSubscriptUnsupported(span=span, text=text)
        )


def _is_affine(expr: Expr) -> bool:
    """Whether an integer expression is affine in the indices."""
    match expr:
        case IndexValue():
            return True
        case Unary(op="-", operand=operand) | Cast(operand=operand):
            return _is_affine(operand)
        case Binary(op="+" | "-", left=left, right=right):
            return _is_affine(left) and _is_affine(right)
        case Binary(op="*", left=left, right=right):
            one_is_fixed = _is_fixed(left) or _is_fixed(right)
            return one_is_fixed and _is_affine(left) and _is_affine(right)
        case _:
            return _is_fixed(expr)


def _is_fixed(expr: Expr) -> bool:
    """Whether no index occurs in an expression."""
    leaf = isinstance(expr, Constant | ConstRef | DimValue | UniformValue)
    return leaf or not any(isinstance(part, IndexValue) for part in walk(expr))
