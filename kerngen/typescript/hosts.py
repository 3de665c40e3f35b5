"""Print host expressions in JavaScript.

Integers are BigInts, so that they are exact as in Python; floats are numbers.

    s / sqrt(d)   becomes   d.s / Math.sqrt(Number(BigInt(d.d)))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never, final

from kerngen.emit.members import literal_place
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar, scalar_of
from kerngen.output.errors import OutputError

ValueText: TypeAlias = Callable[[ir.DimValue | ir.UniformValue], str]
"""A function from a dim or scalar, or a part of one, to its text: `d.n`."""

_OF_INTEGERS: Final = {
    "/": "$host.div",
    "%": "$host.rem",
    "<<": "$host.shiftLeft",
    ">>": "$host.shiftRight",
}
_LOGIC: Final = {"and": "&&", "or": "||"}
_NOT_FINITE: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def is_integer(expr: ir.Expr) -> bool:
    """Whether an expression's value is a BigInt."""
    return scalar_of(expr.type).is_integer


@final
@dataclass(frozen=True, slots=True)
class JsHostPrinter:
    """Prints host expressions of a kernel in JavaScript.

    With `wraps`, the operands of quotients are wrapped to 32 bits, as a kernel computes
    them. With `keeps`, every result is: a function of the program computes with 32 bits.
    """

    place: str
    value: ValueText
    functions: Mapping[str, ir.Function]
    wraps: bool = False
    keeps: bool = False

    def print(self, expr: ir.Expr) -> str:
        """Return the expression as JavaScript, in parentheses if need be."""
        text = self._text(expr)
        if self.keeps and is_integer(expr) and isinstance(expr, ir.Binary | ir.Unary):
            return _wrapped(expr, text)
        return text

    def _text(self, expr: ir.Expr) -> str:
        match expr:
            case ir.Constant(value=value) | ir.ConstRef(value=value):
                return literal(value, expr)
            case ir.DimValue() | ir.UniformValue():
                return _leaf(self.value(expr), expr)
            case ir.LocalValue(name=name):
                return f"${name}"
            case ir.Swizzle() | ir.Part():
                return _leaf(self._place(expr), expr)
            case ir.Unary(op=op, operand=operand):
                sign = "!" if op == "not" else op
                return f"({sign}{self.print(operand)})"
            case ir.Binary():
                return self._binary(expr)
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                texts = self.print(condition), *self._alike(expr, then, otherwise)
                return "({} ? {} : {})".format(*texts)
            case ir.Cast(operand=operand, type=type_):
                return self._cast(operand, scalar_of(type_))
            case ir.BuiltinCall():
                return self._builtin(expr)
            case ir.FunctionCall():
                return self._function(expr)
            case _:
                raise self._unprintable(f"a value such as {type(expr).__name__}")

    def _place(self, expr: ir.Expr) -> str:
        """Return a parameter, or a part of one: on the host, vectors are arrays."""
        match expr:
            case ir.UniformValue():
                return self.value(expr)
            case ir.Swizzle(operand=operand, components="x" | "y" | "z" | "w" as one):
                return f"{self._place(operand)}[{'xyzw'.index(one)}]"
            case ir.Part(operand=operand, at=at) if (
                place := literal_place(at)
            ) is not None:
                return f"{self._place(operand)}[{place}]"
            case _:
                raise self._unprintable("a part of a computed vector")

    def _alike(self, expr: ir.Expr, *operands: ir.Expr) -> list[str]:
        """Return the texts of operands, as numbers if the result is a number."""
        texts = [self.print(operand) for operand in operands]
        if is_integer(expr):
            return texts
        return [_number(o, t) for o, t in zip(operands, texts, strict=True)]

    def _binary(self, expr: ir.Binary) -> str:
        operands = expr.left, expr.right
        if expr.op in _LOGIC:
            left, right = map(self.print, operands)
            return f"({left} {_LOGIC[expr.op]} {right})"
        if scalar_of(expr.type) is Scalar.BOOL:
            # Comparisons of a BigInt and a number are exact.
            left, right = map(self.print, operands)
            return f"({left} {expr.op} {right})"
        left, right = self._alike(expr, *operands)
        # Sums and products of exact integers agree with wrapped ones in their low bits;
        # quotients and shifts don't, so their operands are wrapped first.
        if is_integer(expr) and expr.op in _OF_INTEGERS:
            if self.wraps:
                left, right = _wrapped(expr.left, left), _wrapped(expr.right, right)
            return f"{_OF_INTEGERS[expr.op]}({left}, {right})"
        return f"({left} {expr.op} {right})"

    def _cast(self, operand: ir.Expr, to: Scalar) -> str:
        text = self.print(operand)
        match to:
            case Scalar.F32:
                return _number(operand, text)
            case Scalar.BOOL:
                return f"(!!{text})"
            case Scalar.I32 | Scalar.U32:
                if is_integer(operand):
                    return text
                is_float = scalar_of(operand.type) is Scalar.F32
                to_int = "toI32" if to is Scalar.I32 else "toU32"
                return f"$host.{to_int}({text})" if is_float else f"BigInt({text})"
            case _:
                assert_never(to)

    def _builtin(self, expr: ir.BuiltinCall) -> str:
        row = BUILTINS[expr.builtin]
        if row.javascript_of_bits:
            return self._of_bits(expr, row.javascript_of_bits)
        form = row.javascript_of_integers if is_integer(expr) else row.javascript
        if not form:
            raise self._unprintable(f"the built-in '{expr.builtin}'")
        texts = self._alike(expr, *expr.arguments)
        if is_integer(expr) and (self.wraps or not row.host):
            texts = [*map(_wrapped, expr.arguments, texts)]
        return f"({form.format(*texts)})"

    def _of_bits(self, expr: ir.BuiltinCall, form: str) -> str:
        """Return a call of a built-in that works on the bits of 32-bit integers or floats."""
        texts = [self.print(each) for each in expr.arguments]
        given = [
            _wrapped(each, text) if is_integer(each) else text
            for each, text in zip(expr.arguments, texts, strict=True)
        ]
        # A host's type is i32, whatever it is computed of.
        as_int = _as_int(expr.arguments[0])
        function = form.format(as_int=as_int)
        return f"BigInt.{as_int}(32, ({function})({', '.join(given)}))"

    def _function(self, expr: ir.FunctionCall) -> str:
        """Return a call of one of the user's functions, written where it is called.

        `square(s)` becomes `(($x) => { return ($x * $x); })(d.s)`.
        """
        function = self.functions[expr.function]
        inner = replace(self, keeps=True)
        names = ", ".join(f"${each.name}" for each in function.parameters)
        lets = [
            f"const ${x.name} = {inner.print(value)};" for x, value in function.lets
        ]
        body = " ".join([*lets, f"return {inner.print(function.body)};"])
        given = [
            text if is_integer(p) else _number(a, text)
            for a, p, text in zip(
                expr.arguments,
                function.parameters,
                map(self.print, expr.arguments),
                strict=True,
            )
        ]
        return f"(({names}) => {{ {body} }})({', '.join(given)})"

    def _unprintable(self, what: str) -> OutputError:
        """Return the error for an expression that JavaScript can't compute on the host."""
        return OutputError(
            f"{self.place}: the target 'typescript' can't compute {what} on the host. "
            f"Compute it in the page and pass it as a parameter, or leave that target out."
        )


def literal(value: float | bool, expr: ir.Expr) -> str:
    """Return a number literal: `5n` for an integer, `5` for a float."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not is_integer(expr):
        return _float(value)
    return f"{value}n" if value >= 0 else f"({value}n)"


def _float(value: float) -> str:
    text = repr(float(value)).removesuffix(".0")
    text = _NOT_FINITE.get(text, text)
    return f"({text})" if text.startswith("-") else text


def _number(expr: ir.Expr, text: str) -> str:
    """Return an expression's value as a number: JavaScript does not mix these and BigInts."""
    if isinstance(expr, ir.Constant | ir.ConstRef):
        return _float(expr.value)
    return f"Number({text})" if scalar_of(expr.type) is not Scalar.F32 else text


def _leaf(text: str, expr: ir.Expr) -> str:
    return f"BigInt({text})" if is_integer(expr) else text


def _wrapped(expr: ir.Expr, text: str) -> str:
    """Return code that wraps an integer to 32 bits."""
    return f"BigInt.{_as_int(expr)}(32, {text})"


def _as_int(expr: ir.Expr) -> str:
    return "asIntN" if scalar_of(expr.type) is Scalar.I32 else "asUintN"
