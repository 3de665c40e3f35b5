"""Random syntax trees, and their text written by rules of its own.

`write_expression` puts parentheses around every operand that is an operation, so it
depends on no precedence; what it writes must parse to the tree that it was given.
"""

from __future__ import annotations

from typing import Any, TypeVar, assert_never

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kerngen.source.text import Source, Span
from kerngen.syntax import ast

NOWHERE = Span(Source("nowhere", ""), 0, 0)

KEYWORDS = set(
    "use const struct fn kernel schedule when mut let host if else true false "
    "or and not sum prod max min".split()
)

words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(
    lambda word: word not in KEYWORDS
)


_Node = TypeVar("_Node", bound=ast.Node)


def _nodes(kind: type[_Node], *parts: SearchStrategy[Any]) -> SearchStrategy[_Node]:
    return st.builds(kind, *parts, span=st.just(NOWHERE))


identifiers = _nodes(ast.Identifier, words)
names = _nodes(ast.Name, words)
numbers = _nodes(
    ast.Number, st.integers(0, 10**9) | st.floats(0, 1e30, allow_subnormal=False)
)
booleans = _nodes(ast.Boolean, st.booleans())
binary_ops = st.sampled_from("or and == != < <= > >= | ^ & << >> + - * / %".split())


def _deeper(inner: SearchStrategy[ast.Expr]) -> SearchStrategy[ast.Expr]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    binders = st.lists(
        _nodes(ast.Binder, identifiers, st.none() | inner), min_size=1, max_size=3
    ).map(tuple)
    kinds = st.sampled_from(["sum", "prod", "max", "min", "argmax", "argmin"])
    callees = identifiers | _nodes(ast.Identifier, kinds)
    arguments = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        _nodes(ast.Call, callees, arguments),
        _nodes(ast.Subscript, inner, some),
        _nodes(ast.Member, inner, identifiers),
        _nodes(ast.Unary, st.sampled_from(["-", "~", "not"]), inner),
        _nodes(ast.Binary, inner, binary_ops, inner),
        _nodes(ast.Conditional, inner, inner, inner),
        _nodes(ast.Reduction, kinds, binders, st.none() | inner, inner),
    )


expressions: SearchStrategy[ast.Expr] = st.recursive(
    numbers | booleans | names, _deeper, max_leaves=12
)


def write_expression(expr: ast.Expr) -> str:
    """The text of an expression, safe to stand in any place of the grammar."""
    match expr:
        case ast.Number(value=value):
            return _write_number(value)
        case ast.Boolean(value=value):
            return "true" if value else "false"
        case ast.Name(name=name):
            return name
        case ast.Call(function=function, arguments=arguments):
            return f"{function.name}({_write_list(arguments)})"
        case ast.Subscript(base=base, subscripts=subscripts):
            return f"({write_expression(base)})[{_write_list(subscripts)}]"
        case ast.Member(base=base, member=member):
            return f"({write_expression(base)}).{member.name}"
        case ast.Unary(op=op, operand=operand):
            return f"({op} ({write_expression(operand)}))"
        case ast.Binary(op=op, left=left, right=right):
            return f"(({write_expression(left)}) {op} ({write_expression(right)}))"
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            test, yes, no = map(write_expression, (condition, then, otherwise))
            return f"(if {test} {{ {yes} }} else {{ {no} }})"
        case ast.Reduction(kind, binders, condition, body):
            indices = ", ".join(map(_write_binder, binders))
            when = f" when {write_expression(condition)}" if condition else ""
            return f"({kind}[{indices}{when}] ({write_expression(body)}))"
        case _:
            assert_never(expr)


def _write_number(value: float) -> str:
    """`repr`, but `1e+30` and `1e-08` are fine as they stand."""
    return repr(value)


def _write_list(expressions: tuple[ast.Expr, ...]) -> str:
    return ", ".join(map(write_expression, expressions))


def _write_binder(binder: ast.Binder) -> str:
    if binder.bound is None:
        return binder.name.name
    return f"{binder.name.name} < ({write_expression(binder.bound)})"
