"""Members and subscripts of what has no parts, and what to write instead."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from kerngen.check.faults.indices import NotSubscriptable
from kerngen.check.faults.names import MemberOfScalar, UnknownName
from kerngen.check.hints.examples import example_read, free_names
from kerngen.check.scope import IndexSymbol, Symbol, TensorSymbol, ValueSymbol, one_line
from kerngen.ir.memory import Struct
from kerngen.syntax import ast
from kerngen.syntax.faults_foreign import SeparateSubscripts
from kerngen.syntax.mistakes import foreign

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions


def report_member(ex: Expressions, node: ast.Member) -> None:
    """Record a member of what has none."""
    base = node.base
    symbol = ex.scope.get(base.name) if isinstance(base, ast.Name) else None
    ex.env.faults.add(
        MemberOfScalar(
            span=node.member.span,
            declared=symbol.span if symbol else None,
            base=one_line(base.span.text),
            kind=symbol.kind if symbol else "a value",
            remedy=_member_remedy(ex, symbol, node.member.name),
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


def report_module(ex: Expressions, node: ast.Member, module: str) -> None:
    """Record a member of a module of another language: `math.pi`."""
    member = node.member.name
    instead = foreign.VALUES.get(
        member, f"'{member}' alone, if it is one of your values"
    )
    ex.env.faults.add(
        UnknownName(
            span=node.span, name=f"{module}.{member}", remedy=f"Write {instead}."
        )
    )


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
        NotSubscriptable(
            span=node.span,
            declared=symbol.span if symbol else None,
            text=one_line(node.base.span.text),
            kind=symbol.kind if symbol else "a value",
            remedy=remedy,
        )
    )
