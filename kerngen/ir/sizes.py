"""Turn typed host expressions into sizes of the plan: lengths, guards and offsets.

A size is made of integers.  An expression with floats, functions of the user or built-ins
on bits can't be one: the generated module computes it, as it computes hosts, and in the
size it is a symbol, `computed1`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value
from kerngen.plan import size as host
from kerngen.plan.functions import FUNCTIONS

Result: TypeAlias = host.Size | host.Guard
_Part = TypeVar("_Part", bound=Result)
Condition: TypeAlias = ir.Expr | host.Guard
"""When a schedule applies: the user's expression, or the compiler's guard."""

_FOLDING: Final[Mapping[str, Callable[[host.Size, host.Size], host.Size]]] = {
    "+": host.add,
    "-": lambda left, right: host.add(left, host.multiply(right, -1)),
    "*": host.multiply,
    "%": host.remainder,
    "min": host.minimum,
    "max": host.maximum,
}
"""Operators and built-ins of two integers, each with the plan's function that simplifies it."""

_NAMES: Final = {
    "/": "/",
    "<<": "shift_left",
    ">>": "shift_right",
    "&": "bit_and",
    "|": "bit_or",
    "^": "bit_xor",
}
"""The names of the other operators in plans; built-ins keep theirs."""

_PASS_32_BITS: Final = frozenset(("/", "%", "<<", ">>"))
"""Operators whose lower 32 bits depend on more than the lower 32 bits of their operands.

For others, such as `+`, it makes no difference if an operand has wrapped before.
"""

_MOST: Final = 2**53
"""The largest integer of a size: beyond it, JavaScript's numbers are not exact."""

_DEEPEST: Final = 60
"""The most levels of a size, so that no reader of plans runs out of stack."""


class _NotASizeError(Exception):
    """An expression can't be a size."""


@final
@dataclass(frozen=True, slots=True)
class SizeMaker:
    """Turns host expressions of a kernel into sizes and guards.

    - `hosts`: the expressions of the kernel's hosts by name, which replace the names
    - `name`: a function that returns the name in sizes of a parameter
    - `taken`: names that new symbols must not have
    - `renamed`: the parameters whose name in sizes is another one, each with that name
    - `wraps`: whether quotients are those of 32-bit integers, as a shader computes them
    - `computed`: the expressions that the generated module computes, each with whether its
      integers wrap, and their symbols
    """

    hosts: Mapping[str, ir.Expr]
    name: Callable[[str], str]
    taken: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    wraps: bool = False
    computed: dict[tuple[ir.Expr, bool], str] = field(
        default_factory=dict[tuple[ir.Expr, bool], str]
    )

    def size(self, expr: ir.Expr) -> host.Size:
        """Return a numeric expression as a size."""
        return _as_size(self._whole(expr))

    def guard(self, condition: Condition) -> host.Guard:
        """Return a bool expression as a guard; a guard with the names of `own`."""
        if isinstance(condition, host.Guard):
            return self.own(condition)
        return _as_guard(self._whole(condition))

    def own(self, part: _Part) -> _Part:
        """Return a size or guard of the compiler with the names of parameters in sizes."""
        return host.with_symbols(part, self.renamed)

    def _whole(self, expr: ir.Expr) -> Result:
        """Return an expression's size, or its symbol if that is too deep or too large."""
        result = self._result(expr)
        parts = list(_nested(result, 0))
        if any(d > _DEEPEST or n > _MOST for d, n in parts):
            return self._computed(expr)
        return result

    def _result(self, expr: ir.Expr) -> Result:
        try:
            return self._of_integers(expr)
        except _NotASizeError:
            return self._computed(expr)

    def _computed(self, expr: ir.Expr) -> Result:
        """Return the symbol of an expression that the generated module computes."""
        if (expr, self.wraps) not in self.computed:
            name = f"computed{len(self.computed) + 1}"
            while name in self.taken:
                name += "_"
            self.computed[expr, self.wraps] = name
        symbol = host.Symbol(self.computed[expr, self.wraps])
        return host.compare("!=", symbol, 0) if expr.type is Scalar.BOOL else symbol

    def _of_integers(self, expr: ir.Expr) -> Result:
        """Return the size or guard of an expression, or raise `_NotASizeError`."""
        match expr:
            case ir.Constant(value=bool(value)) | ir.ConstRef(value=bool(value)):
                return host.Truth(value)
            case ir.Constant(value=int(value)) | ir.ConstRef(value=int(value)):
                return host.Literal(value)
            case ir.DimValue(name=name):
                return host.Symbol(name)
            case ir.UniformValue(type=Scalar() as type_) if type_ is not Scalar.F32:
                return self._uniform(expr, ())
            case ir.Swizzle(operand=ir.UniformValue() as held, components=components):
                if expr.type in (Scalar.I32, Scalar.U32):
                    return self._uniform(held, ("xyzw".index(components),))
            case ir.Part(operand=ir.UniformValue() as held, at=at):
                if expr.type in (Scalar.I32, Scalar.U32):
                    return self._uniform(held, (_place(at),))
            case ir.Unary(op="not", operand=operand):
                return host.negate(self._guard(operand))
            case ir.Unary(op=op, operand=operand) if _are_integers(expr, operand):
                # ~x is -x - 1 in two's complement.
                negated = host.multiply(self._size(operand), -1)
                return negated if op == "-" else host.add(negated, -1)
            case ir.Binary(op="and" | "or" as op, left=left, right=right):
                both = self._guard(left), self._guard(right)
                return host.all_of(*both) if op == "and" else host.any_of(*both)
            case ir.Binary(op=op, left=left, right=right) if _are_integers(left, right):
                return self._binary(op, left, right)
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                if _are_integers(then, otherwise):
                    sizes = self._size(then), self._size(otherwise)
                    return host.select(self._guard(condition), *sizes)
            case ir.Cast(operand=operand) if _are_integers(expr, operand):
                return self._size(operand)
            case ir.BuiltinCall(builtin=name, arguments=arguments):
                if name in FUNCTIONS and _are_integers(expr, *arguments):
                    return self._call(name, arguments)
            case _:
                pass
        raise _NotASizeError

    def _size(self, expr: ir.Expr) -> host.Size:
        return _as_size(self._result(expr))

    def _guard(self, expr: ir.Expr) -> host.Guard:
        return _as_guard(self._result(expr))

    def _uniform(self, value: ir.UniformValue, parts: tuple[int, ...]) -> Result:
        """Return the symbol of a scalar, or of a part of a parameter: `camera.width`, `v.0`."""
        if value.name in self.hosts:
            if parts:
                raise _NotASizeError
            return self._result(self.hosts[value.name])
        if value.name.startswith("adapter."):
            symbol = host.Symbol(value.name)
            is_flag = value.type is Scalar.BOOL
            return host.compare("!=", symbol, 0) if is_flag else symbol
        steps = (*_steps(value.path), *map(str, parts))
        return host.Symbol(".".join((self.name(value.name), *steps)))

    def _binary(self, op: str, left: ir.Expr, right: ir.Expr) -> Result:
        a, b = self._size(left), self._size(right)
        if op in host.COMPARISONS:
            return host.compare(op, a, b)
        if self.wraps and op in _PASS_32_BITS:
            a, b = _wrapped(left, a), _wrapped(right, b)
        return _applied(op, a, b)

    def _call(self, name: str, arguments: tuple[ir.Expr, ...]) -> host.Size:
        operands = [self._size(argument) for argument in arguments]
        if self.wraps:
            operands = [*map(_wrapped, arguments, operands)]
        return _applied(name, *operands)


def _as_size(result: Result) -> host.Size:
    return result if isinstance(result, host.Size) else host.select(result, 1, 0)


def _as_guard(result: Result) -> host.Guard:
    return host.compare("!=", result, 0) if isinstance(result, host.Size) else result


def _are_integers(*exprs: ir.Expr) -> bool:
    return all(expr.type in (Scalar.I32, Scalar.U32) for expr in exprs)


def _applied(function: str, *operands: host.Size) -> host.Size:
    """Return a function's value, computed here where all operands are literals."""
    if function in _FOLDING:
        return _FOLDING[function](*operands)
    name = _NAMES.get(function, function)
    values = [each.value for each in operands if isinstance(each, host.Literal)]
    if len(values) < len(operands):
        return host.Apply(name, operands)
    return host.Literal(FUNCTIONS[name](*values))


def _wrapped(expr: ir.Expr, size: host.Size) -> host.Size:
    """Return a size wrapped to 32 bits, if it may exceed them."""
    if isinstance(size, host.Literal | host.Symbol):
        return size
    return _applied("wrap_u32" if expr.type is Scalar.U32 else "wrap_i32", size)


def _place(at: ir.At) -> int:
    place = as_literal(subscript_value(at.place))
    if place is None:
        raise _NotASizeError
    return min(max(place, 0), at.length - 1)


def _steps(path: ir.Path) -> tuple[str, ...]:
    return tuple(s.name if isinstance(s, ir.Field) else str(_place(s)) for s in path)


def _nested(part: Result, depth: int) -> Iterator[tuple[int, int]]:
    """Yield the depth of every node, and its magnitude if it is a number."""
    if isinstance(part, host.Literal):
        yield depth, abs(part.value)
        return
    yield depth, 0
    for each in host.children(part):
        yield from _nested(each, depth + 1)
