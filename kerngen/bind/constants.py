"""Evaluation of WGSL's constant expressions: lengths, sizes, alignments."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, assert_never, final

from kerngen.bind import tree
from kerngen.bind.faults import CircularDeclaration, UnknownWgslName, WgslNotConstant
from kerngen.source.diagnostic import CompileError

Kind: TypeAlias = Literal[
    "int", "float", "i32", "u32", "f32", "f16", "bool", "i64", "u64", "f64"
]
"""A type of numbers; `int` and `float` are those of literals without a suffix."""

_SUFFIXES: Final[Mapping[str, Kind]] = {
    "i": "i32",
    "u": "u32",
    "f": "f32",
    "h": "f16",
    "li": "i64",
    "lu": "u64",
    "lf": "f64",
}
_KINDS: Final[Mapping[str, Kind]] = {
    kind: kind for kind in (*_SUFFIXES.values(), "bool")
}
_WIDTHS: Final = {"i32": 32, "u32": 32, "i64": 64, "u64": 64}
_RANGES: Final = {
    kind: (
        (0, 2**bits - 1)
        if kind[0] == "u"
        else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    for kind, bits in _WIDTHS.items()
}
_UNSIGNED: Final = frozenset(("u32", "u64"))
_FLOATS: Final = frozenset(("f16", "f32", "f64"))
_RANKS: Final = ("int", "float", *_KINDS)
"""Literals without a suffix first: they take the type of the other operand."""

_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_BITS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_OF_ONE: Final[Mapping[str, Callable[[float], float]]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp2": lambda x: 2.0**x,
    "log2": math.log2,
}
_OF_TWO: Final[Mapping[str, Callable[[float, float], float]]] = {
    "min": lambda a, b: min(a, b),  # noqa: PLW0108 - of numbers alone
    "max": lambda a, b: max(a, b),  # noqa: PLW0108
    "pow": math.pow,
}
_KEEPING: Final = frozenset(("abs", "min", "max", "clamp"))
"""Functions whose results of integers are integers."""


@final
@dataclass(frozen=True, slots=True)
class ConstantValue:
    """A typed constant: a number or a bool."""

    kind: Kind
    number: float

    @property
    def is_integer(self) -> bool:
        """Whether the value's type is an integer type."""
        return self.kind == "int" or self.kind in _WIDTHS


@final
@dataclass(frozen=True)
class Constants:
    """Evaluates constant expressions of a module.

    `what` is the subject of errors. `_known` are constants that were evaluated, and `_open`
    those that are being evaluated now, by which a circular declaration is found.
    """

    declared: Mapping[str, tree.Declaration]
    what: str = "This value"
    _known: dict[str, ConstantValue] = field(default_factory=dict[str, ConstantValue])
    _open: list[str] = field(default_factory=list[str])

    def value(self, node: tree.Expression) -> ConstantValue:
        """Return an expression's value; raise `CompileError` if it is not constant."""
        match node:
            case tree.Number(text=text):
                return _literal(text)
            case tree.Truth(value=value):
                return ConstantValue("bool", value)
            case tree.Name():
                return self._named(node)
            case tree.Call():
                return self._called(node)
            case tree.Prefixed(operator=operator_, operand=operand):
                return self._prefixed(node, operator_, self.value(operand))
            case tree.Binary():
                return self._binary(node)
            case tree.Part():
                raise self._unknown(node, "it is a part of another value")
            case _:
                assert_never(node)

    def integer(self, node: tree.Expression) -> int:
        """Return the value of an integer expression."""
        value = self.value(node)
        if not value.is_integer:
            raise self._unknown(node, "it is no integer")
        return int(value.number)

    def _named(self, node: tree.Name) -> ConstantValue:
        name = node.text
        if name in self._known:
            return self._known[name]
        match self.declared.get(name):
            case tree.Constant(type=type_, value=expression):
                if name in self._open:
                    raise CompileError([CircularDeclaration(span=node.span, name=name)])
                self._open.append(name)
                try:
                    value = self.value(expression)
                finally:
                    self._open.pop()
                if type_ is not None and type_.text in _KINDS:
                    value = self._as(node, _KINDS[type_.text], value)
                self._known[name] = value
                return value
            case tree.Override():
                raise self._unknown(node, f"each pipeline chooses its own '{name}'")
            case None:
                fault = UnknownWgslName(span=node.span, what="constant", name=name)
                raise CompileError([fault])
            case _:
                raise self._unknown(node, f"'{name}' is no constant")

    def _called(self, node: tree.Call) -> ConstantValue:
        name = node.callee.text
        values = [self.value(argument) for argument in node.arguments]
        if name in self.declared:
            raise self._unknown(node, f"'{name}' is a function of the shader")
        if name in _KINDS and len(values) <= 1:
            kind = _KINDS[name]
            return (
                self._converted(kind, values[0]) if values else ConstantValue(kind, 0)
            )
        if name == "select" and len(values) == 3:
            return values[1] if values[2].number else values[0]
        try:
            number = _computed(name, [value.number for value in values])
        except (ValueError, ArithmeticError):
            raise self._unknown(node, f"'{name}' has no value there") from None
        if number is None:
            raise self._unknown(node, f"'{name}' is not evaluated")
        kind = _widest(*values)
        # Of a literal such as `sqrt(4)` the result is a float.
        if name not in _KEEPING and kind == "int":
            kind = "float"
        return ConstantValue(kind, number)

    def _prefixed(
        self, node: tree.Expression, sign: str, value: ConstantValue
    ) -> ConstantValue:
        match sign:
            case "-" if value.kind not in {*_UNSIGNED, "bool"}:
                return self._checked(node, value.kind, -value.number)
            case "!" if value.kind == "bool":
                return ConstantValue("bool", not value.number)
            case "~" if value.is_integer:
                mask = _RANGES[value.kind][1] if value.kind in _UNSIGNED else -1
                return ConstantValue(value.kind, int(value.number) ^ mask)
            case _:
                raise self._unknown(node, f"'{sign}' does not apply to it")

    def _binary(self, node: tree.Binary) -> ConstantValue:
        left, right = self.value(node.left), self.value(node.right)
        sign = node.operator
        if sign in {"&&", "||"}:
            both = left.number and right.number
            either = left.number or right.number
            return ConstantValue("bool", bool(both if sign == "&&" else either))
        if sign in {"<<", ">>"}:
            kind = left.kind  # the count is u32, whatever is shifted
        else:
            kind = _widest(left, right)
            if not {left.kind, right.kind} <= {kind, "int", "float"}:
                why = f"'{sign}' mixes {left.kind} and {right.kind}"
                raise self._unknown(node, why)
        if sign in _COMPARISONS:
            return ConstantValue("bool", _COMPARISONS[sign](left.number, right.number))
        try:
            return self._checked(node, kind, _result(sign, kind, left, right))
        except ArithmeticError:
            raise self._unknown(node, "it divides by zero") from None
        except (TypeError, ValueError):
            raise self._unknown(node, f"'{sign}' does not apply to it") from None

    def _checked(
        self, node: tree.Expression, kind: Kind, number: float
    ) -> ConstantValue:
        low, high = _RANGES.get(kind, (-math.inf, math.inf))
        if not low <= number <= high:
            raise self._unknown(node, f"{number} is no {kind}")
        return ConstantValue(kind, number)

    def _as(
        self, node: tree.Expression, kind: Kind, value: ConstantValue
    ) -> ConstantValue:
        """Return a value in the type that its constant is declared with."""
        number = float(value.number) if kind in _FLOATS else value.number
        return self._checked(node, kind, number)

    def _converted(self, kind: Kind, value: ConstantValue) -> ConstantValue:
        """Return `kind(value)`: integers wrap, floats are truncated and clamped."""
        match kind:
            case "bool":
                return ConstantValue(kind, bool(value.number))
            case _ if kind in _WIDTHS and (value.is_integer or value.kind == "bool"):
                modulus = 1 << _WIDTHS[kind]
                wrapped = int(value.number) % modulus
                is_negative = wrapped > _RANGES[kind][1]
                return ConstantValue(
                    kind, wrapped - modulus if is_negative else wrapped
                )
            case _ if kind in _WIDTHS:
                low, high = _RANGES[kind]
                return ConstantValue(
                    kind, min(max(math.trunc(value.number), low), high)
                )
            case _:
                return ConstantValue(kind, float(value.number))

    def _unknown(self, node: tree.Expression, why: str) -> CompileError:
        return CompileError([WgslNotConstant(span=node.span, what=self.what, why=why)])


def _widest(*values: ConstantValue) -> Kind:
    """Return the common type of values: that of the one with a suffix, or the float."""
    ranked = sorted(values, key=lambda value: _RANKS.index(value.kind))
    return ranked[-1].kind


def _computed(name: str, numbers: Sequence[float]) -> float | None:
    """Return the result of a WGSL function on numbers, or None for an unknown one."""
    match numbers:
        case [x] if name in _OF_ONE:
            return _OF_ONE[name](x)
        case [x, y] if name in _OF_TWO:
            return _OF_TWO[name](x, y)
        case [x, low, high] if name == "clamp":
            return min(max(x, low), high)
        case _:
            return None


def _result(sign: str, kind: Kind, left: ConstantValue, right: ConstantValue) -> float:
    a, b = left.number, right.number
    if sign in _ARITHMETIC:
        return _ARITHMETIC[sign](a, b)
    if kind == "float" or kind in _FLOATS:
        return a / b if sign == "/" else math.fmod(a, b)
    x, y = int(a), int(b)
    if sign in _BITS:
        found = _BITS[sign](x, y)
        return found & _RANGES[kind][1] if kind in _UNSIGNED else found
    # WGSL's division truncates toward 0; Python's rounds down.
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return quotient if sign == "/" else x - y * quotient


def _literal(text: str) -> ConstantValue:
    is_hex = text[:2] in {"0x", "0X"}
    is_real = any(mark in text for mark in (".pP" if is_hex else ".eE"))
    # In hexadecimal, 'f' is a digit, unless there is a fraction or an exponent.
    ends = r"(?:l?[iu])?$" if is_hex and not is_real else r"(?:l?[iuf]|h)?$"
    found = re.search(ends, text)
    suffix = found[0] if found else ""
    digits = text.removesuffix(suffix)
    plain: Kind = "float" if is_real else "int"
    kind = _SUFFIXES[suffix] if suffix else plain
    if is_hex and is_real:
        return ConstantValue(kind, float.fromhex(digits))
    if is_hex:
        return ConstantValue(kind, int(digits, 16))
    is_float = is_real or kind in _FLOATS
    return ConstantValue(kind, float(digits) if is_float else int(digits))
