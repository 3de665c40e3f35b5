"""Exact integer expressions over the dims and scalars of a call, and conditions on them.

The compiler builds them, with operators or with the functions of this module, and both
sides print or evaluate them.  Building folds, so that a tree never holds what is known:

    ceil_div(n, 1)              is    n
    t + t + t                   is    t * 3
    n % 16 == 0 and n % 4 == 0  is    n % 16 == 0

Every size that a strategy asks for is at least 0, and so is each of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import eq, ge, gt, le, lt, ne
from typing import Final, TypeAlias, final


class _Operators:
    """Python's arithmetic, so that sizes are written as they are read: `m * parts`."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Size:
        return add(self, other)

    def __mul__(self, other: Operand) -> Size:
        return multiply(self, other)

    def __mod__(self, other: Operand) -> Size:
        return remainder(self, other)


@final
@dataclass(frozen=True, slots=True)
class Literal(_Operators):
    """A number that is known."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class Symbol(_Operators):
    """A dim, or an integer scalar of the call."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Apply(_Operators):
    """A function of `FUNCTIONS` applied to its operands.

    Sums and products have two operands or more, the literal one last.
    """

    function: str
    operands: tuple[Size, ...]


@final
@dataclass(frozen=True, slots=True)
class Select(_Operators):
    """One of two sizes, by a condition."""

    condition: Guard
    then: Size
    otherwise: Size


Size: TypeAlias = Literal | Symbol | Apply | Select
Operand: TypeAlias = Size | int

ZERO: Final = Literal(0)
ONE: Final = Literal(1)


# Conditions


@final
@dataclass(frozen=True, slots=True)
class Truth:
    """A condition that is known."""

    value: bool


@final
@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`, with an operator of `COMPARISONS`."""

    op: str
    left: Size
    right: Size


@final
@dataclass(frozen=True, slots=True)
class All:
    """Two conditions or more, all of which must hold."""

    guards: tuple[Guard, ...]


Guard: TypeAlias = Truth | Compare | All

ALWAYS: Final = Truth(value=True)
NEVER: Final = Truth(value=False)


# Evaluation


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "+": lambda *terms: sum(terms),
    "*": lambda *factors: prod(factors),
    "%": lambda left, right: left % right,
    "ceil_div": _ceil_div,
    "max": max,
    "min": min,
}
"""What `Apply` computes, of numbers that are not negative and divisors above 0."""

COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


def evaluate(size: Size, lengths: Mapping[str, int]) -> int:
    """Return the size for a call; `lengths` has its dims and integer scalars by name."""
    match size:
        case Literal(value):
            return value
        case Symbol(name):
            return lengths[name]
        case Apply(function, operands):
            return FUNCTIONS[function](*(evaluate(each, lengths) for each in operands))
        case Select(condition, then, otherwise):
            return evaluate(then if holds(condition, lengths) else otherwise, lengths)


def holds(guard: Guard, lengths: Mapping[str, int]) -> bool:
    """Return whether a condition holds for a call."""
    match guard:
        case Truth(value):
            return value
        case Compare(op, left, right):
            return COMPARISONS[op](evaluate(left, lengths), evaluate(right, lengths))
        case All(guards):
            return all(holds(each, lengths) for each in guards)


# Sizes


def lift(operand: Operand) -> Size:
    """Return a size for a size or a number."""
    return Literal(operand) if isinstance(operand, int) else operand


def add(*terms: Operand) -> Size:
    """Return the sum; equal terms are counted: `t + t` is `t * 2`."""
    counts: dict[Size, int] = {}
    constant = 0
    for term in _flat("+", terms):
        match term:
            case Literal(value):
                constant += value
            case Apply("*", (*factors, Literal(count))):
                rest = multiply(*factors)
                counts[rest] = counts.get(rest, 0) + count
            case _:
                counts[term] = counts.get(term, 0) + 1
    kept = [multiply(term, count) for term, count in counts.items()]
    return _joined("+", kept, constant, neutral=0)


def multiply(*factors: Operand) -> Size:
    """Return the product."""
    flat = _flat("*", factors)
    constant = prod(each.value for each in flat if isinstance(each, Literal))
    if not constant:
        return ZERO
    kept = [each for each in flat if not isinstance(each, Literal)]
    return _joined("*", kept, constant, neutral=1)


def _flat(function: str, operands: Iterable[Operand]) -> list[Size]:
    """Return operands, with the operands of those that are sums (or products) instead."""
    flat: list[Size] = []
    for each in map(lift, operands):
        if isinstance(each, Apply) and each.function == function:
            flat += each.operands
        else:
            flat.append(each)
    return flat


def _joined(function: str, kept: list[Size], constant: int, *, neutral: int) -> Size:
    if constant != neutral or not kept:
        kept = [*kept, Literal(constant)]
    return kept[0] if len(kept) == 1 else Apply(function, tuple(kept))


def ceil_div(numerator: Operand, denominator: Operand) -> Size:
    """Return the quotient rounded up; one of a quotient by literals is a single one."""
    over, by = lift(numerator), lift(denominator)
    match over, by:
        case _, Literal(1):
            return over
        case Literal(a), Literal(b):
            return Literal(_ceil_div(a, b))
        case Apply("*", (*factors, Literal(a))), Literal(b) if a % b == 0:
            return multiply(*factors, a // b)
        case Apply("ceil_div", (inner, Literal(a))), Literal(b):
            return ceil_div(inner, a * b)
        case _:
            return Apply("ceil_div", (over, by))


def remainder(numerator: Operand, denominator: Operand) -> Size:
    """Return the remainder."""
    over, by = lift(numerator), lift(denominator)
    match over, by:
        case Literal(a), Literal(b):
            return Literal(a % b)
        case _, Literal(1):
            return ZERO
        case Apply("*", (*_, Literal(a))), Literal(b) if a % b == 0:
            return ZERO
        case _:
            return Apply("%", (over, by))


def minimum(left: Operand, right: Operand) -> Size:
    """Return the smaller of two sizes."""
    return _extreme("min", lift(left), lift(right))


def maximum(left: Operand, right: Operand) -> Size:
    """Return the larger of two sizes."""
    return _extreme("max", lift(left), lift(right))


def _extreme(function: str, left: Size, right: Size) -> Size:
    match left, right:
        case Literal(a), Literal(b):
            return Literal(FUNCTIONS[function](a, b))
        case _ if left == right:
            return left
        case _:
            return Apply(function, (left, right))


def select(condition: Guard, then: Operand, otherwise: Operand) -> Size:
    """Return one of two sizes."""
    first, second = lift(then), lift(otherwise)
    if isinstance(condition, Truth):
        return first if condition.value else second
    return first if first == second else Select(condition, first, second)


# Guards


def compare(op: str, left: Operand, right: Operand) -> Guard:
    """Return a comparison."""
    first, second = lift(left), lift(right)
    if isinstance(first, Literal) and isinstance(second, Literal):
        return Truth(COMPARISONS[op](first.value, second.value))
    return Compare(op, first, second)


def divides(divisor: int, size: Operand) -> Guard:
    """Return the condition that a size is a multiple of a divisor."""
    return compare("==", remainder(size, divisor), 0)


def all_of(*guards: Guard) -> Guard:
    """Return the condition that all hold, without those that follow from another."""
    flat: dict[Guard, None] = {}
    for guard in guards:
        parts = guard.guards if isinstance(guard, All) else (guard,)
        flat.update(dict.fromkeys(parts))
    if NEVER in flat:
        return NEVER
    flat.pop(ALWAYS, None)
    kept = [
        guard
        for guard in flat
        if not any(_implies(other, guard) for other in flat if other is not guard)
    ]
    if len(kept) < 2:
        return kept[0] if kept else ALWAYS
    return All(tuple(kept))


def _implies(first: Guard, second: Guard) -> bool:
    """Return whether a condition follows from another: `n % 4 == 0` from `n % 16 == 0`."""
    match first, second:
        case (
            Compare("==", Apply("%", (a, Literal(by))), Literal(0)),
            Compare("==", Apply("%", (b, Literal(smaller))), Literal(0)),
        ):
            return a == b and by % smaller == 0
        case Compare("<=", a, Literal(most)), Compare("<=", b, Literal(more)):
            return a == b and most <= more
        case _:
            return False


def product_of(sizes: Iterable[Operand]) -> Size:
    """Return the product of all; of none it is 1."""
    return reduce(multiply, sizes, ONE)
