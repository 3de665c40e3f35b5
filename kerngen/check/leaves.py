"""Names, members and the elements of tensors."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, assert_never

from kerngen.check import faults_indices, faults_names, faults_types
from kerngen.check.faults_statements import (
    AS_IF_AT_ONCE,
    WRITE_FIRST,
    FunctionReads,
    ReadBeforeWrite,
)
from kerngen.check.places import Place, check_chain, value_of
from kerngen.check.scope import (
    FaultySymbol,
    IndexSymbol,
    ParameterSymbol,
    Symbol,
    TensorSymbol,
    ValueSymbol,
    one_line,
)
from kerngen.check.subscripts import check_subscripts, example_read, free_names
from kerngen.check.unknown import report_unknown
from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Expr, IndexValue, Load
from kerngen.ir.operators import is_composite
from kerngen.ir.types import Scalar
from kerngen.source.text import Span
from kerngen.syntax import ast, foreign
from kerngen.syntax.faults_foreign import SeparateSubscripts

if TYPE_CHECKING:
    from kerngen.check.expressions import Expressions


def check_name(ex: Expressions, node: ast.Name) -> Expr | None:
    """Return what a bare name stands for."""
    symbol = ex.scope.get(node.name)
    match symbol:
        case None:
            report_unknown(ex.env, ex.scope, node)
            return None
        case ValueSymbol(value=value):
            return value
        case IndexSymbol(index=index):
            return IndexValue(index)
        case TensorSymbol() if ex.env.place == "constant":
            refuse(ex, node, "a tensor")
            return None
        case TensorSymbol():
            found = read_element(ex, symbol, node)
            return value_of(ex, found, node) if isinstance(found, Place) else found
        case ParameterSymbol(memory=memory):
            return value_of(ex, Place(symbol, memory), node)
        case FaultySymbol():
            return None
        case _:
            assert_never(symbol)


def report_member(ex: Expressions, node: ast.Member) -> None:
    """Record a member of what has none."""
    base = node.base
    symbol = ex.scope.get(base.name) if isinstance(base, ast.Name) else None
    ex.env.faults.add(
        faults_names.MemberOfScalar(
            span=node.member.span,
            declared=symbol.span if symbol else None,
            base=one_line(base.span.text),
            kind=symbol.kind if symbol else "a value",
            remedy=_member_remedy(ex, symbol, node.member.name),
        )
    )


def report_module(ex: Expressions, node: ast.Member, module: str) -> None:
    """Record a member of a module of another language: `math.pi`."""
    member = node.member.name
    instead = foreign.VALUES.get(
        member, f"'{member}' alone, if it is one of your values"
    )
    ex.env.faults.add(
        faults_names.UnknownName(
            span=node.span, name=f"{module}.{member}", remedy=f"Write {instead}."
        )
    )


def _member_remedy(ex: Expressions, symbol: Symbol | None, member: str) -> str:
    """Return what may be meant by a member of a tensor: its shape, or its transpose."""
    if not isinstance(symbol, TensorSymbol):
        return "A value is one number: leave the member out."
    element = symbol.tensor.element
    if isinstance(element, Struct) and element.member(member) is not None:
        read = example_read(ex.env, ex.scope, symbol.tensor)
        return f"Subscript the tensor first: '{read}.{member}'."
    if member == "T":
        free = islice(free_names(ex.env, ex.scope), symbol.tensor.rank)
        indices = ", ".join(reversed([*free]))
        return f"Swap the subscripts: '{symbol.tensor.name}[{indices}]'."
    dims = [extent for extent in symbol.tensor.extents if isinstance(extent, str)]
    length = f"The length of an axis is its dim: '{dims[0]}'. " if dims else ""
    return f"{length}Elements are read as '{example_read(ex.env, ex.scope, symbol.tensor)}'."


# Tensors


def check_element(ex: Expressions, node: ast.Subscript) -> Expr | None:
    """Return an element of a tensor or of an array, or a part of a vector or matrix."""
    base = node.base
    symbol = ex.scope.get(base.name) if isinstance(base, ast.Name) else None
    has_parts = isinstance(symbol, ValueSymbol) and is_composite(symbol.value.type)
    if isinstance(base, ast.Name) and ex.env.place != "kernel" and not has_parts:
        if not isinstance(symbol, FaultySymbol):
            refuse(ex, node, "a tensor")
        return None
    if isinstance(base, ast.Name) and symbol is None:
        for subscript in node.subscripts:
            if not isinstance(subscript, ast.Name):
                ex.check(subscript)
        report_unknown(ex.env, ex.scope, base)
        return None
    return check_chain(ex, node)


def read_element(
    ex: Expressions, symbol: TensorSymbol, node: ast.Expr
) -> Place | Expr | None:
    """Return an element of a tensor; of one with parts, a place."""
    subscripts = node.subscripts if isinstance(node, ast.Subscript) else ()
    if isinstance(symbol.tensor.element, Scalar):
        return _read(ex, symbol, node, subscripts)
    places = check_subscripts(ex, symbol, node.span, subscripts)
    if places is None:
        return None
    _note_own(ex, Load(symbol.tensor, places), node.span)
    return Place(symbol, symbol.tensor.memory, places)


def root_of(ex: Expressions, node: ast.Name) -> Place | Expr | None:
    """Return what a chain of members starts at."""
    match symbol := ex.scope.get(node.name):
        case ParameterSymbol(memory=memory):
            return Place(symbol, memory)
        case TensorSymbol() if isinstance(symbol.tensor.element, Struct):
            return read_element(ex, symbol, node)
        case _:
            return ex.check(node)


def report_subscripts(ex: Expressions, node: ast.Subscript) -> None:
    """Record subscripts of what has no parts."""
    base = node.base
    if isinstance(base, ast.Subscript):
        _report_separate(ex, node)
        return
    symbol = ex.scope.get(base.name) if isinstance(base, ast.Name) else None
    _report_not_subscriptable(ex, node, symbol)


def _report_separate(ex: Expressions, node: ast.Subscript) -> None:
    """Record subscripts in brackets of their own: `x[i][j]`."""
    subscripts: list[str] = []
    base: ast.Expr = node
    while isinstance(base, ast.Subscript):
        subscripts[:0] = [one_line(part.span.text) for part in base.subscripts]
        base = base.base
    joined = f"{one_line(base.span.text)}[{', '.join(subscripts)}]"
    ex.env.faults.add(SeparateSubscripts(span=node.span, joined=joined))


def _report_not_subscriptable(
    ex: Expressions, node: ast.Subscript, symbol: Symbol | None
) -> None:
    remedy = (
        "Only tensors, lets with indices, arrays, vectors and matrices have elements."
    )
    if isinstance(symbol, ValueSymbol | IndexSymbol):
        remedy = "It is one number: read it by its bare name."
    ex.env.faults.add(
        faults_indices.NotSubscriptable(
            span=node.span,
            declared=symbol.span if symbol else None,
            text=one_line(node.base.span.text),
            kind=symbol.kind if symbol else "a value",
            remedy=remedy,
        )
    )


def _read(
    ex: Expressions,
    symbol: TensorSymbol,
    node: ast.Expr,
    subscripts: tuple[ast.Expr, ...],
) -> Expr | None:
    """Check a read of one element."""
    tensor = symbol.tensor
    if ex.env.unwritten(tensor, tensor.memory):
        is_other = any(not isinstance(subscript, ast.Name) for subscript in subscripts)
        itself = is_other and tensor.name == ex.env.current.target
        fault = ReadBeforeWrite(
            span=node.span,
            other=symbol.span,
            name=tensor.name,
            remedy=AS_IF_AT_ONCE if itself else WRITE_FIRST,
        )
        ex.env.faults.add(fault)
        return None
    places = check_subscripts(ex, symbol, node.span, subscripts)
    if places is None:
        return None
    _note_own(ex, Load(tensor, places), node.span)
    return Load(tensor, places)


def _note_own(ex: Expressions, load: Load, span: Span) -> None:
    """Remember where a let reads itself."""
    current = ex.env.current
    if current.in_let and load.tensor.name == current.target:
        current.own_reads.setdefault(load, span)


def refuse(ex: Expressions, node: ast.Expr, what: str) -> None:
    """Record the use of something that only the body of a kernel has."""
    if ex.env.place == "function":
        ex.env.faults.add(FunctionReads(span=node.span, what=what))
        return
    ex.env.faults.add(
        faults_types.NotConstant(
            span=node.span,
            place="A constant expression",
            name=one_line(node.span.text),
        )
    )
