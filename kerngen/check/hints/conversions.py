"""Hints that say how to mend a type."""

from __future__ import annotations

from kerngen.check.expressions.composites import composite_conversion
from kerngen.check.scope import one_line
from kerngen.ir.operators import is_composite
from kerngen.ir.types import Scalar, ValueType
from kerngen.syntax import ast


def conversion(node: ast.Expr, actual: ValueType, wanted: ValueType) -> str:
    """Return the hint that turns an expression of one type into another."""
    text = one_line(node.span.text)
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
    """Return the hint for a sum that is compared, where what it adds up is meant."""
    if not (isinstance(node, ast.Binary) and isinstance(node.left, ast.Reduction)):
        return ""
    added = node.left
    text = node.span.text
    if added.kind != "sum" or not text.startswith("sum"):
        return ""
    binder = added.binders[-1]
    last = added.condition or binder.bound or binder.name
    at = text.index("]", last.span.end - node.span.start)
    head, body = one_line(text[:at]), one_line(text[at + 1 :])
    word = "and" if added.condition else "when"
    return (
        f"The 'sum' ends before the '{node.op}'. To count, write "
        f"'{head} {word} {body}] {one}'; to compare the sum, "
        f"'if {one_line(text)} {{ {one} }} else {{ {zero} }}'."
    )


def whole_literal(node: ast.Expr) -> int | None:
    """Return the whole number that a float literal stands for, if it does."""
    if isinstance(node, ast.Number) and isinstance(node.value, float):
        return int(node.value) if node.value.is_integer() else None
    return None


def unification(
    left: tuple[ast.Expr, ValueType],
    right: tuple[ast.Expr, ValueType],
    want: Scalar | None = None,
) -> str:
    """Return the hint that brings two operands to one type, to `want` if one has it."""
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
            text = one_line(node.span.text)
            return f"Convert one side: '{want.spelling}({text})'."
    if Scalar.F32 in (a_type, b_type):
        node = b if a_type is Scalar.F32 else a
        return _as_float(node)
    node = a if a_type is Scalar.U32 else b
    return f"Convert one side: 'i32({one_line(node.span.text)})'."


def _as_float(node: ast.Expr) -> str:
    """Return the hint that makes an integer a float; a quotient, before it is cut."""
    if isinstance(node, ast.Binary) and node.op == "/":
        left, right = (_float_text(side) for side in (node.left, node.right))
        return (
            "Convert before dividing, because '/' of integers drops the fraction: "
            f"'{left} / {right}'."
        )
    return f"Convert one side: '{_float_text(node)}'."


def _float_text(node: ast.Expr) -> str:
    text = one_line(node.span.text)
    is_whole = isinstance(node, ast.Number) and isinstance(node.value, int)
    return f"{text}.0" if is_whole else f"f32({text})"
