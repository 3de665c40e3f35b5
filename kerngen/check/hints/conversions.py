"""Hints that convert an expression to another type: `f32(i)` where an f32 is wanted."""

from __future__ import annotations

from typing import Final

from kerngen.ir.operators import is_composite
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.source.text import Span
from kerngen.syntax import ast


def conversion(node: ast.Expr, actual: ValueType, wanted: ValueType) -> str:
    """Return the hint that turns an expression of one type into another."""
    text = node.span.one_line()
    if is_composite(actual) or is_composite(wanted):
        return composite_conversion(text, actual, wanted)
    if actual is Scalar.BOOL:
        zero, one = ("0.0", "1.0") if wanted is Scalar.F32 else ("0", "1")
        if isinstance(node, ast.Boolean):
            return f"Write '{one if node.value else zero}'."
        if counted := _as_count(node, one, zero):
            return counted
        return f"Choose between numbers: 'if {text} {{ {one} }} else {{ {zero} }}'."
    if wanted is Scalar.BOOL:
        return f"Compare it with something: '{text} != 0'."
    whole = whole_literal(node)
    if whole is not None and wanted.is_integer:
        return f"Write '{whole}'."
    return f"Convert it: '{wanted.spelling}({text})'."


def _as_count(node: ast.Expr, one: str, zero: str) -> str:
    """Return the hint for `sum[j] x[j] > 0`, if `sum[j when x[j] > 0] 1` was meant, else ""."""
    if not (isinstance(node, ast.Binary) and isinstance(node.left, ast.Reduction)):
        return ""
    added = node.left
    text, begin = node.span.text, node.span.start
    if added.kind != "sum" or not text.startswith("sum"):
        return ""
    binder = added.binders[-1]
    last = added.condition or binder.bound or binder.name
    at = begin + text.index("]", last.span.end - begin)
    head = Span(node.span.source, begin, at).one_line()
    body = Span(node.span.source, at + 1, node.span.end).one_line()
    word = "and" if added.condition else "when"
    return (
        f"The 'sum' ends before the '{node.op}'. To count, write "
        f"'{head} {word} {body}] {one}'; to compare the sum, "
        f"'if {node.span.one_line()} {{ {one} }} else {{ {zero} }}'."
    )


def whole_literal(node: ast.Expr) -> int | None:
    """Return the integer that a float literal such as `2.0` equals, or None."""
    if isinstance(node, ast.Number) and isinstance(node.value, float):
        return int(node.value) if node.value.is_integer() else None
    return None


def unification(
    left: tuple[ast.Expr, ValueType],
    right: tuple[ast.Expr, ValueType],
    want: Scalar | None = None,
) -> str:
    """Return the hint that gives two operands one type: `want`, if one of them has it."""
    (a, a_type), (b, b_type) = left, right
    if is_composite(a_type) or is_composite(b_type):
        return conversion(b, b_type, a_type) or conversion(a, a_type, b_type)
    if Scalar.BOOL in (a_type, b_type):
        node, wanted = (a, b_type) if a_type is Scalar.BOOL else (b, a_type)
        return conversion(node, Scalar.BOOL, wanted)
    for (node, _), (_, other) in ((left, right), (right, left)):
        fits = other.is_integer and want is not Scalar.F32
        if fits and whole_literal(node) is not None:
            return f"Write '{whole_literal(node)}'."
    if want is not None and want.is_integer and want in (a_type, b_type):
        node = b if a_type is want else a
        if not isinstance(node, ast.Number):
            text = node.span.one_line()
            return f"Convert one side: '{want.spelling}({text})'."
    if Scalar.F32 in (a_type, b_type):
        node = b if a_type is Scalar.F32 else a
        return _as_float(node)
    node = a if a_type is Scalar.U32 else b
    return f"Convert one side: 'i32({node.span.one_line()})'."


def _as_float(node: ast.Expr) -> str:
    """Return the hint to convert an integer to a float; of a quotient, both its sides."""
    if isinstance(node, ast.Binary) and node.op == "/":
        left, right = (_float_text(side) for side in (node.left, node.right))
        return (
            "Convert before dividing, because '/' of integers drops the fraction: "
            f"'{left} / {right}'."
        )
    return f"Convert one side: '{_float_text(node)}'."


def _float_text(node: ast.Expr) -> str:
    text = node.span.one_line()
    is_whole_tensor = isinstance(node, ast.Number) and isinstance(node.value, int)
    return f"{text}.0" if is_whole_tensor else f"f32({text})"


def operand_hint(
    op: ast.BinaryOp, text: str, left: ValueType, other: tuple[Span, ValueType]
) -> str:
    """Return the hint for an operator that is not defined for a vector or matrix."""
    right = other[1]
    if op in ast.COMPARISONS:
        return f"Compare their components, as in '{text}.x {op} ...'."
    if isinstance(left, Matrix) and op == "/":
        return f"Multiply by the reciprocal: '{text} * (1.0 / ...)'."
    if op in ast.SHIFTS:
        return "Shift counts are a vector of u32, as wide as the left side."
    if isinstance(left, Matrix) and op == "*":
        return (
            f"A {left.spelling} has {left.columns} columns of {left.rows} components: "
            f"it takes a vec{left.columns}f, or a matrix with {left.columns} rows."
        )
    if scalar_of(left) is not scalar_of(right) and isinstance(right, Vector):
        wanted = Vector(scalar_of(left), right.width)
        return f"Convert one side: '{wanted.spelling}({other[0].one_line()})'."
    if isinstance(left, Vector) and isinstance(right, Vector):
        letters = "xyzw"[: min(left.width, right.width)]
        texts = (text, left), (other[0].one_line(), right)
        (short, narrow), (long, wide) = sorted(texts, key=lambda side: side[1].width)
        zeros = ", 0.0" if wide.scalar is Scalar.F32 else ", 0"
        widened = f"{wide.spelling}({short}{zeros * (wide.width - narrow.width)})"
        return (
            f"Take as many components of the longer one, '{long}.{letters}', or make the "
            f"other one as wide: '{widened}'."
        )
    return "Take the components that are meant, as in 'v.x'."


def composite_conversion(text: str, actual: ValueType, wanted: ValueType) -> str:
    """Return the hint that converts to or from a vector or matrix."""
    match actual, wanted:
        case Vector(), Scalar():
            whole = f"({text})" if " " in text else text
            return f"Take a component: '{whole}.x'."
        case Scalar(), Vector():
            return f"Make a vector of it: '{wanted.spelling}({text})'."
        case Vector(width=width), Vector() if width == wanted.width:
            return f"Convert it: '{wanted.spelling}({text})'."
        case Vector(width=width), Vector() if width > wanted.width:
            return f"Take some components: '{text}.{'xyzw'[: wanted.width]}'."
        case Vector(), Vector():
            return f"Add components: '{wanted.spelling}({text}, ...)'."
        case _:
            return ""


MEANT_BY_OPERATOR: Final[dict[tuple[str, ValueType], str]] = {
    ("^", Scalar.F32): "A power is 'pow(x, y)', a square 'x * x'.",
    ("&", Scalar.BOOL): "Write 'and'.",
    ("|", Scalar.BOOL): "Write 'or'.",
    ("^", Scalar.BOOL): "Write '!='.",
    ("~x", Scalar.BOOL): "Write 'not'.",
    ("&", Scalar.F32): "Conditions are joined by 'and'; only integers have bits.",
    ("|", Scalar.F32): "Conditions are joined by 'or'; only integers have bits.",
}
"""Hints for an operator of another language, by the operand's type: `&` of bools is `and`."""
