"""Literals: the type that they take from their place, and range checks.

In `x[i] * (2 / 4)`, all literals of the tree `2 / 4` take the type f32 of the other operand.
"""

from __future__ import annotations

import re
from typing import final

from kerngen.check import faults as diag
from kerngen.ir.builtins.evaluate import (
    NotFiniteError,
    as_f32,
    bounds,
    constant_value,
    integer_op,
)
from kerngen.ir.builtins.table import BUILTINS, Builtin
from kerngen.ir.nodes import Binary, BinaryOp, Constant, Expr, Unary
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span
from kerngen.syntax import ast

_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_FLOAT_NOT_0 = re.compile(r"0*[1-9]\d*[.eE]|0*\.0*[1-9]")
_ROUNDS_TO_0 = 2.0**-150
_F32_RANGE = ("-3.4028235e38", "3.4028235e38")


@final
class UntypedLiterals:
    """The types that trees of literals may take, cached by the tree's identity."""

    def __init__(self) -> None:
        # The node is kept, too: freed, its id could become another node's.
        self._known: dict[int, tuple[ast.Expr, Scalar | None]] = {}

    def kind(self, node: ast.Expr) -> Scalar | None:
        """Return I32 or F32 if a tree of literals takes the type of its place, else None.

        F32 means that there is a float in the tree, so it fits no integer type.
        """
        if id(node) not in self._known:
            self._known[id(node)] = node, self._find(node)
        return self._known[id(node)][1]

    def _find(self, node: ast.Expr) -> Scalar | None:
        """Return the kind of a tree, by those of its operands."""
        match node:
            case ast.Number(value=value):
                return Scalar.F32 if isinstance(value, float) else Scalar.I32
            case ast.Unary(op="-" | "~", operand=operand):
                return self.kind(operand)
            case ast.Binary(op=op, left=left, right=right):
                if op in _ARITHMETIC or op in ast.ON_BITS:
                    return self._joined(left, right)
                return self.kind(left) if op in ast.SHIFTS else None
            case ast.Conditional(then=then, otherwise=otherwise):
                return self._joined(then, otherwise)
            case ast.Call(function=name, arguments=arguments):
                row = BUILTINS.get(name.name)
                places = _adapting(row) if row else ()
                if not places or places[-1] >= len(arguments):
                    return None
                return self._joined(*(arguments[place] for place in places))
            case _:
                return None

    def _joined(self, *nodes: ast.Expr) -> Scalar | None:
        """Return the joint kind of operands, None if one has none.

        The last operand is asked first: in a long chain, which nests to the left, it often
        decides without a walk of the rest.
        """
        joined = Scalar.I32
        for node in reversed(nodes):
            kind = self.kind(node)
            if kind is None:
                return None
            joined = Scalar.F32 if Scalar.F32 in (kind, joined) else Scalar.I32
        return joined


def _adapting(builtin: Builtin) -> tuple[int, ...]:
    """Return the places of the arguments that decide the type of a built-in's result."""
    columns = zip(*(overload.parameters for overload in builtin.overloads), strict=True)
    results = [overload.result for overload in builtin.overloads]
    if len(results) == 1:
        return ()
    typed = enumerate(columns)
    return tuple(place for place, types in typed if list(types) == results)


def literal(
    faults: Faults, span: Span, value: float, want: Scalar | None
) -> Constant | None:
    """Return a literal in the wanted type, or its own; report one that is too large."""
    if isinstance(value, float) or want is Scalar.F32:
        return _float_literal(faults, span, value)
    scalar = want if want is not None and want.is_integer else Scalar.I32
    remedy = _same_bits(value, scalar)
    if _too_large(faults, span, value, scalar, remedy):
        return None
    return Constant(value, scalar)


def overflows(faults: Faults, span: Span, expr: Expr) -> bool:
    """Whether constant integer arithmetic overflows; reports it if so.

    At run time such arithmetic wraps; in a constant it can only be a mistake.
    """
    match expr:
        case Unary(op="-", operand=operand, type=type_):
            values = [0, constant_value(operand)]
            op: BinaryOp = "-"
        case Binary(op="+" | "-" | "*" | "/" | "%" as op, left=left, right=right):
            values = [constant_value(left), constant_value(right)]
            type_ = expr.type
        case _:
            return False
    if not isinstance(type_, Scalar) or not type_.is_integer or None in values:
        return False
    first, second = (int(value or 0) for value in values)
    if op in {"/", "%"} and second == 0:
        faults.add(diag.NotFinite(span=span, type=type_.spelling))
        return True
    return _too_large(faults, span, integer_op(op, first, second), type_)


def _too_large(
    faults: Faults, span: Span, value: int, scalar: Scalar, remedy: str = ""
) -> bool:
    low, high = bounds(scalar)
    if low <= value <= high:
        return False
    faults.add(
        diag.LiteralRange(
            span=span,
            value=str(value),
            type=scalar.spelling,
            low=str(low),
            high=str(high),
            remedy=remedy,
        )
    )
    return True


def _same_bits(value: int, scalar: Scalar) -> str:
    """Return the hint for a literal whose bits fit the other integer type, else ""."""
    low, _ = bounds(Scalar.I32)
    _, high = bounds(Scalar.U32)
    if not low <= value <= high:
        return ""
    value += 2**32 if value < 0 else -(2**32)
    return f"If you mean its bits, write '{value}', the '{scalar.spelling}' that has the same."


def _float_literal(faults: Faults, span: Span, value: float) -> Constant | None:
    try:
        rounded = as_f32(float(value))
    except (NotFiniteError, OverflowError):
        low, high = _F32_RANGE
        fault = diag.LiteralRange(
            span=span, value=span.text, type="f32", low=low, high=high
        )
        faults.add(fault)
        return None
    # By its text, as Python's value of 1e-400 is 0.
    if abs(value) <= _ROUNDS_TO_0 and _FLOAT_NOT_0.match(span.text):
        faults.add(diag.LiteralVanishes(span=span, value=span.text))
        return None
    return Constant(rounded, Scalar.F32)
