"""Typed expressions of the host as sizes: lengths, guards, offsets of subscripts.

Hosts are replaced by their values, calls of the user's functions by their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, assert_never, final

from kerngen.ir.affine import as_literal
from kerngen.ir.nodes import (
    At,
    Binary,
    BuiltinCall,
    Cast,
    Constant,
    ConstRef,
    Construct,
    DimValue,
    Expr,
    Field,
    Function,
    FunctionCall,
    IndexValue,
    Load,
    LocalValue,
    Part,
    Path,
    Reduce,
    Select,
    Swizzle,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar, scalar_of
from kerngen.ir.walk import subscript_value
from kerngen.plan.builtins import OF_BITS
from kerngen.plan.functions import FUNCTIONS
from kerngen.plan.size import (
    COMPARISONS,
    Apply,
    Guard,
    Literal,
    Size,
    Symbol,
    Truth,
    add,
    all_of,
    any_of,
    compare,
    multiply,
    negate,
    remainder,
    select,
)

Result: TypeAlias = Size | Guard

_OF_INTEGERS: Final[Mapping[str, Callable[[Size, Size], Size]]] = {
    "+": add,
    "-": lambda left, right: add(left, multiply(right, -1)),
    "*": multiply,
    "%": remainder,
}
"""Operators that fold."""

_NAMES_OF_INTEGERS: Final = {
    "/": "/",
    "<<": "shift_left",
    ">>": "shift_right",
    "&": "bit_and",
    "|": "bit_or",
    "^": "bit_xor",
}
_NAMES_OF_FLOATS: Final = {
    "+": "fadd",
    "-": "fsub",
    "*": "fmul",
    "/": "fdiv",
    "%": "frem",
}
_PASS_32_BITS: Final = frozenset(("/", "%", "<<", ">>"))
"""Operators whose result depends on whether an operand wrapped before."""


@final
@dataclass(frozen=True, slots=True)
class SizeMaker:
    """Makes sizes of a kernel's expressions.

    `hosts` are the values of its hosts, `locals` those of a function's parameters.  With
    `wraps`, quotients are those of 32-bit integers, as a kernel computes them.
    """

    functions: Mapping[str, Function]
    hosts: Mapping[str, Expr]
    name: Callable[[str], str]
    wraps: bool = False
    locals: Mapping[str, Result] = field(default_factory=dict[str, Result])

    def size(self, expr: Expr) -> Size:
        """Return an expression that is a number."""
        result = self.result(expr)
        assert isinstance(result, Size), f"no number: {expr}"
        return result

    def guard(self, expr: Expr) -> Guard:
        """Return an expression that is true or false."""
        result = self.result(expr)
        return compare("!=", result, 0) if isinstance(result, Size) else result

    def result(self, expr: Expr) -> Result:
        """Return an expression of either kind."""
        match expr:
            case Constant(value=value) | ConstRef(value=value):
                return Truth(value) if isinstance(value, bool) else Literal(value)
            case DimValue(name=name):
                return Symbol(name)
            case UniformValue():
                return self._uniform(expr, ())
            case LocalValue(name=name):
                return self.locals[name]
            case Swizzle(operand=UniformValue() as whole, components=components):
                return self._uniform(whole, ("xyzw".index(components),))
            case Part(operand=UniformValue() as whole, at=at):
                return self._uniform(whole, (_place(at),))
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return self._select(self.guard(condition), then, otherwise)
            case Cast(operand=operand, type=type_):
                return self._cast(self.result(operand), scalar_of(type_))
            case BuiltinCall():
                return self._builtin(expr)
            case FunctionCall():
                return self._function(expr)
            case IndexValue() | Load() | Reduce() | Construct() | Swizzle() | Part():
                raise AssertionError(f"not a host expression: {expr}")
            case _:
                assert_never(expr)

    def _uniform(self, value: UniformValue, parts: tuple[int, ...]) -> Result:
        """Return a scalar, or a part of one: `camera.width`, `v.0`."""
        if value.name in self.hosts:
            return self.result(self.hosts[value.name])
        if value.name.startswith("adapter."):
            symbol = Symbol(value.name)
            is_flag = value.type is Scalar.BOOL
            return compare("!=", symbol, 0) if is_flag else symbol
        steps = (*_steps(value.path), *map(str, parts))
        return Symbol(".".join((self.name(value.name), *steps)))

    def _unary(self, expr: Unary) -> Result:
        if expr.op == "not":
            return negate(self.guard(expr.operand))
        operand = self.size(expr.operand)
        if scalar_of(expr.type) is Scalar.F32:
            return Apply("fmul", (operand, Literal(-1.0)))
        negated = multiply(operand, -1)
        return negated if expr.op == "-" else add(negated, -1)

    def _binary(self, expr: Binary) -> Result:
        op = expr.op
        if op in {"and", "or"}:
            both = self.guard(expr.left), self.guard(expr.right)
            return all_of(*both) if op == "and" else any_of(*both)
        left, right = self.size(expr.left), self.size(expr.right)
        if op in COMPARISONS:
            return compare(op, left, right)
        if scalar_of(expr.type) is Scalar.F32:
            return Apply(_NAMES_OF_FLOATS[op], (left, right))
        if self.wraps and op in _PASS_32_BITS:
            left, right = _wrapped(expr.left, left), _wrapped(expr.right, right)
        if op in _OF_INTEGERS:
            return _OF_INTEGERS[op](left, right)
        return _applied(_NAMES_OF_INTEGERS[op], left, right)

    def _select(self, condition: Guard, then: Expr, otherwise: Expr) -> Result:
        first, second = self.result(then), self.result(otherwise)
        if isinstance(first, Size) and isinstance(second, Size):
            return select(condition, first, second)
        yes, no = self.guard(then), self.guard(otherwise)
        return any_of(all_of(condition, yes), all_of(negate(condition), no))

    def _cast(self, operand: Result, type_: Scalar) -> Result:
        if type_ is Scalar.BOOL:
            return compare("!=", operand, 0) if isinstance(operand, Size) else operand
        size = operand if isinstance(operand, Size) else select(operand, 1, 0)
        return _applied(type_.value, size)

    def _builtin(self, expr: BuiltinCall) -> Result:
        if expr.builtin == "select":
            otherwise, then, condition = expr.arguments
            return self._select(self.guard(condition), then, otherwise)
        operands = tuple(map(self.size, expr.arguments))
        name = expr.builtin
        if self.wraps:
            operands = tuple(map(_wrapped, expr.arguments, operands))
        if name in OF_BITS:
            name = f"{name}_{scalar_of(expr.arguments[0].type).value}"
        result = _applied(name, *operands)
        return compare("!=", result, 0) if expr.type is Scalar.BOOL else result

    def _function(self, expr: FunctionCall) -> Result:
        """Return the function's value, with the arguments in the parameters' places."""
        function = self.functions[expr.function]
        given = map(self.result, expr.arguments)
        inside = {p.name: g for p, g in zip(function.parameters, given, strict=True)}
        for local, value in function.lets:
            inside[local.name] = replace(self, locals=inside).result(value)
        return replace(self, locals=inside).result(function.body)


def _applied(function: str, *operands: Size) -> Size:
    """Return a function's value, computed here where all operands are literals."""
    values = [each.value for each in operands if isinstance(each, Literal)]
    if len(values) < len(operands):
        return Apply(function, operands)
    return Literal(FUNCTIONS[function](*values))


def _wrapped(expr: Expr, size: Size) -> Size:
    """Return what 32 bits keep of a value that may have passed them."""
    if isinstance(size, Literal | Symbol) or not scalar_of(expr.type).is_integer:
        return size
    return _applied("wrap_u32" if expr.type is Scalar.U32 else "wrap_i32", size)


def _place(at: At) -> int:
    place = as_literal(subscript_value(at.place))
    assert place is not None, "the host knows the place"
    return min(max(place, 0), at.length - 1)


def _steps(path: Path) -> tuple[str, ...]:
    return tuple(s.name if isinstance(s, Field) else str(_place(s)) for s in path)
