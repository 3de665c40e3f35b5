"""From typed host expressions to sizes of the plan: lengths, guards, offsets.

A size is of integers.  What passes through floats, the user's functions or built-ins of
bits is computed by the generated module, as the values of hosts are: in a size it is a
symbol, `computed1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.nodes import (
    At,
    Binary,
    BuiltinCall,
    Cast,
    Constant,
    ConstRef,
    DimValue,
    Expr,
    Field,
    Part,
    Path,
    Select,
    Swizzle,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value
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
    children,
    compare,
    maximum,
    minimum,
    multiply,
    negate,
    remainder,
    select,
)

Result: TypeAlias = Size | Guard

_FOLDING: Final[Mapping[str, Callable[[Size, Size], Size]]] = {
    "+": add,
    "-": lambda left, right: add(left, multiply(right, -1)),
    "*": multiply,
    "%": remainder,
    "min": minimum,
    "max": maximum,
}
"""Operators and built-ins of two integers that fold."""

_NAMES: Final = {
    "/": "/",
    "<<": "shift_left",
    ">>": "shift_right",
    "&": "bit_and",
    "|": "bit_or",
    "^": "bit_xor",
}
"""What plans call the other operators; built-ins have their own names there."""

_PASS_32_BITS: Final = frozenset(("/", "%", "<<", ">>"))
"""Operators whose result depends on whether an operand wrapped before."""

_MOST: Final = 2**53
"""Integers beyond this are not exact in every language that reads plans."""

_DEEPEST: Final = 60
"""Sizes nest at most so deep, so that any reader's stack holds them."""


class _NotASizeError(Exception):
    """An expression that no size can hold."""


@final
@dataclass(frozen=True, slots=True)
class SizeMaker:
    """Turns host expressions of a kernel into sizes and guards.

    `hosts` are the values of its hosts; `name` spells a parameter.  `computed` collects
    the expressions that the generated module computes, by their symbols.  With `wraps`,
    quotients are those of 32-bit integers, as a kernel computes them.
    """

    hosts: Mapping[str, Expr]
    name: Callable[[str], str]
    taken: frozenset[str] = frozenset()
    wraps: bool = False
    computed: dict[tuple[Expr, bool], str] = field(
        default_factory=dict[tuple[Expr, bool], str]
    )

    def size(self, expr: Expr) -> Size:
        """Return a numeric expression as a size."""
        return _as_size(self._whole(expr))

    def guard(self, expr: Expr) -> Guard:
        """Return a bool expression as a guard."""
        return _as_guard(self._whole(expr))

    def _whole(self, expr: Expr) -> Result:
        """Return a result that plans can hold: not too deep, of numbers not too large."""
        result = self._result(expr)
        parts = list(_nested(result, 0))
        if any(d > _DEEPEST or n > _MOST for d, n in parts):
            return self._computed(expr)
        return result

    def _result(self, expr: Expr) -> Result:
        try:
            return self._of_integers(expr)
        except _NotASizeError:
            return self._computed(expr)

    def _computed(self, expr: Expr) -> Result:
        """Return the symbol of what the generated module computes."""
        if (expr, self.wraps) not in self.computed:
            name = f"computed{len(self.computed) + 1}"
            while name in self.taken:
                name += "_"
            self.computed[expr, self.wraps] = name
        symbol = Symbol(self.computed[expr, self.wraps])
        return compare("!=", symbol, 0) if expr.type is Scalar.BOOL else symbol

    def _of_integers(self, expr: Expr) -> Result:
        match expr:
            case Constant(value=bool(value)) | ConstRef(value=bool(value)):
                return Truth(value)
            case Constant(value=int(value)) | ConstRef(value=int(value)):
                return Literal(value)
            case DimValue(name=name):
                return Symbol(name)
            case UniformValue(type=Scalar() as type_) if type_ is not Scalar.F32:
                return self._uniform(expr, ())
            case Swizzle(operand=UniformValue() as held, components=components):
                if expr.type in (Scalar.I32, Scalar.U32):
                    return self._uniform(held, ("xyzw".index(components),))
            case Part(operand=UniformValue() as held, at=at):
                if expr.type in (Scalar.I32, Scalar.U32):
                    return self._uniform(held, (_place(at),))
            case Unary(op="not", operand=operand):
                return negate(self._guard(operand))
            case Unary(op=op, operand=operand) if _are_integers(expr, operand):
                negated = multiply(self._size(operand), -1)
                return negated if op == "-" else add(negated, -1)
            case Binary(op="and" | "or" as op, left=left, right=right):
                both = self._guard(left), self._guard(right)
                return all_of(*both) if op == "and" else any_of(*both)
            case Binary(op=op, left=left, right=right) if _are_integers(left, right):
                return self._binary(op, left, right)
            case Select(condition=condition, then=then, otherwise=otherwise):
                if _are_integers(then, otherwise):
                    sizes = self._size(then), self._size(otherwise)
                    return select(self._guard(condition), *sizes)
            case Cast(operand=operand) if _are_integers(expr, operand):
                return self._size(operand)
            case BuiltinCall(builtin=name, arguments=arguments):
                if name in FUNCTIONS and _are_integers(expr, *arguments):
                    return self._call(name, arguments)
            case _:
                pass
        raise _NotASizeError

    def _size(self, expr: Expr) -> Size:
        return _as_size(self._result(expr))

    def _guard(self, expr: Expr) -> Guard:
        return _as_guard(self._result(expr))

    def _uniform(self, value: UniformValue, parts: tuple[int, ...]) -> Result:
        """Return a scalar, or a part of one: `camera.width`, `v.0`."""
        if value.name in self.hosts:
            if parts:
                raise _NotASizeError
            return self._result(self.hosts[value.name])
        if value.name.startswith("adapter."):
            symbol = Symbol(value.name)
            is_flag = value.type is Scalar.BOOL
            return compare("!=", symbol, 0) if is_flag else symbol
        steps = (*_steps(value.path), *map(str, parts))
        return Symbol(".".join((self.name(value.name), *steps)))

    def _binary(self, op: str, left: Expr, right: Expr) -> Result:
        a, b = self._size(left), self._size(right)
        if op in COMPARISONS:
            return compare(op, a, b)
        if self.wraps and op in _PASS_32_BITS:
            a, b = _wrapped(left, a), _wrapped(right, b)
        return _applied(op, a, b)

    def _call(self, name: str, arguments: tuple[Expr, ...]) -> Size:
        operands = [self._size(argument) for argument in arguments]
        if self.wraps:
            operands = [*map(_wrapped, arguments, operands)]
        return _applied(name, *operands)


def _as_size(result: Result) -> Size:
    return result if isinstance(result, Size) else select(result, 1, 0)


def _as_guard(result: Result) -> Guard:
    return compare("!=", result, 0) if isinstance(result, Size) else result


def _are_integers(*exprs: Expr) -> bool:
    return all(expr.type in (Scalar.I32, Scalar.U32) for expr in exprs)


def _applied(function: str, *operands: Size) -> Size:
    """Return a function's value, computed here where all operands are literals."""
    if function in _FOLDING:
        return _FOLDING[function](*operands)
    name = _NAMES.get(function, function)
    values = [each.value for each in operands if isinstance(each, Literal)]
    if len(values) < len(operands):
        return Apply(name, operands)
    return Literal(FUNCTIONS[name](*values))


def _wrapped(expr: Expr, size: Size) -> Size:
    """Return a size wrapped to 32 bits, if it may exceed them."""
    if isinstance(size, Literal | Symbol):
        return size
    return _applied("wrap_u32" if expr.type is Scalar.U32 else "wrap_i32", size)


def _place(at: At) -> int:
    place = as_literal(subscript_value(at.place))
    if place is None:
        raise _NotASizeError
    return min(max(place, 0), at.length - 1)


def _steps(path: Path) -> tuple[str, ...]:
    return tuple(s.name if isinstance(s, Field) else str(_place(s)) for s in path)


def _nested(part: Result, depth: int) -> Iterator[tuple[int, int]]:
    """Yield the depth of every node, and its magnitude if it is a number."""
    if isinstance(part, Literal):
        yield depth, abs(part.value)
        return
    yield depth, 0
    for each in children(part):
        yield from _nested(each, depth + 1)
