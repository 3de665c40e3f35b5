"""Exact integer expressions over a call's dims and scalars, and conditions on them.

The compiler builds them, with operators or with the functions of this module, and both
sides print or evaluate them.  Building folds, so that a tree never holds what is known:

    ceil_div(n, 1)              is    n
    t + t + t                   is    t * 3
    n % 16 == 0 and n % 4 == 0  is    n % 16 == 0

Integers are exact: nothing wraps, but where a function of `FUNCTIONS` is asked to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, TypeAlias, TypeVar, assert_never, cast, final

from kerngen.plan.functions import FUNCTIONS
from kerngen.plan.hostmath import ceil_div as quotient_up
from kerngen.plan.hostmath import idiv, irem

Values: TypeAlias = Mapping[str, Any]
"""The dims of a call, its scalars, and facts of the adapter, by name.

Those that sizes read are integers; scalars that only the module reads may be others.
"""


class _Operators:
    """Python's arithmetic, so that sizes are written as they are read: `m * parts`."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Size:
        return add(_size(self), other)

    def __mul__(self, other: Operand) -> Size:
        return multiply(_size(self), other)


def _size(operand: _Operators) -> Size:
    assert isinstance(operand, Literal | Symbol | Apply | Select)
    return operand


@final
@dataclass(frozen=True, slots=True)
class Literal(_Operators):
    """An integer literal."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class Symbol(_Operators):
    """A dim, a scalar of the call, or a fact of the adapter: `adapter.invocations`."""

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
    """One of two sizes, by a condition: `if(n > 9, n, 9)`."""

    condition: Guard
    then: Size
    otherwise: Size


Size: TypeAlias = Literal | Symbol | Apply | Select
Operand: TypeAlias = Size | int

MOST: Final = 2**53
"""The greatest integer of a plan: beyond it, a language with doubles alone is not exact."""

ZERO: Final = Literal(0)
ONE: Final = Literal(1)


# Conditions


@final
@dataclass(frozen=True, slots=True)
class Truth:
    """A condition that is always true, or always false."""

    value: bool


@final
@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison: `left op right`, with an operator of `COMPARISONS`."""

    op: str
    left: Size
    right: Size


@final
@dataclass(frozen=True, slots=True)
class All:
    """Two conditions or more, all of which must hold."""

    guards: tuple[Guard, ...]


@final
@dataclass(frozen=True, slots=True)
class AnyOf:
    """Two conditions or more, at least one of which must hold."""

    guards: tuple[Guard, ...]


@final
@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    guard: Guard


Guard: TypeAlias = Truth | Compare | All | AnyOf | Not

_Part = TypeVar("_Part", bound=Size | Guard)

ALWAYS: Final = Truth(value=True)
NEVER: Final = Truth(value=False)


def children(part: Size | Guard) -> tuple[Size | Guard, ...]:
    """Return the direct parts of a size or condition."""
    match part:
        case Literal() | Symbol() | Truth():
            return ()
        case Apply(operands=operands):
            return operands
        case Select(condition, then, otherwise):
            return condition, then, otherwise
        case Compare(left=left, right=right):
            return left, right
        case All(guards) | AnyOf(guards):
            return guards
        case Not(guard):
            return (guard,)
        case _:
            assert_never(part)


def symbols(part: Size | Guard) -> Iterator[str]:
    """Yield the names of the symbols in a size or condition, in order and with repetitions."""
    if isinstance(part, Symbol):
        yield part.name
    for each in children(part):
        yield from symbols(each)


def with_symbols(part: _Part, names: Mapping[str, str]) -> _Part:
    """Return a size or condition in which symbols have other names, as `names` maps them."""
    return cast("_Part", _renamed(part, names)) if names else part


def _renamed(part: Size | Guard, names: Mapping[str, str]) -> Size | Guard:
    match part:
        case Literal() | Truth():
            return part
        case Symbol(name):
            head, *steps = name.split(".")  # a scalar, or a part of one
            return Symbol(".".join((names.get(head, head), *steps)))
        case Apply(operands=operands):
            operands = tuple(with_symbols(each, names) for each in operands)
            return replace(part, operands=operands)
        case Select(condition, then, otherwise):
            sizes = (with_symbols(each, names) for each in (then, otherwise))
            return Select(with_symbols(condition, names), *sizes)
        case Compare(op, left, right):
            return Compare(op, with_symbols(left, names), with_symbols(right, names))
        case All(guards) | AnyOf(guards):
            guards = tuple(with_symbols(each, names) for each in guards)
            return replace(part, guards=guards)
        case Not(guard):
            return Not(with_symbols(guard, names))
        case _:
            assert_never(part)


# Evaluation

COMPARISONS: Final = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
"""The operators of comparisons, with their functions."""


@final
class SizeEvaluator:
    """Evaluates sizes and conditions for the dims and scalars of a call.

    What several of them have in common is computed once: the guards of a product's tiles
    compare four estimates, each made of some 25 operations.
    """

    __slots__ = ("_known", "_values")

    def __init__(self, values: Values) -> None:
        """Evaluate for the values of a call."""
        self._values = values
        # By identity, as the hash of a size is that of its whole tree.  The size beside the
        # value keeps another one from getting the same identity.
        self._known: dict[int, tuple[Size, int]] = {}

    def size(self, size: Size) -> int:
        """Return the value of a size."""
        match size:
            case Literal(value):
                return value
            case Symbol(name):
                return int(self._values[name])
            case Apply() | Select():
                known = self._known.get(id(size))
                if known is None:
                    known = self._known[id(size)] = size, self._computed(size)
                return known[1]
            case _:
                assert_never(size)

    def _computed(self, size: Apply | Select) -> int:
        match size:
            case Apply(function, operands):
                return FUNCTIONS[function](*map(self.size, operands))
            case Select(condition, then, otherwise):
                return self.size(then if self.holds(condition) else otherwise)
            case _:
                assert_never(size)

    def holds(self, guard: Guard) -> bool:
        """Return whether a condition holds."""
        match guard:
            case Truth(value):
                return value
            case Compare(op, left, right):
                return bool(COMPARISONS[op](self.size(left), self.size(right)))
            case All(guards):
                return all(map(self.holds, guards))
            case AnyOf(guards):
                return any(map(self.holds, guards))
            case Not(inner):
                return not self.holds(inner)
            case _:
                assert_never(guard)


def evaluate(size: Size, values: Values) -> int:
    """Return the value of a size for the dims and scalars of a call."""
    return SizeEvaluator(values).size(size)


def holds(guard: Guard, values: Values) -> bool:
    """Return whether a condition holds for the dims and scalars of a call."""
    return SizeEvaluator(values).holds(guard)


# Sizes


def lift(operand: Operand) -> Size:
    """Return a Python int as a size; a size stays as it is."""
    return Literal(operand) if isinstance(operand, int) else operand


def add(*terms: Operand) -> Size:
    """Return the sum; equal terms are counted: `t + t` is `t * 2`."""
    counts: dict[Size, int] = {}
    constant = 0
    for term in _flat("+", terms):
        match term:
            case Literal(value):
                constant += value
            # `t * 3` counts as three times `t`; the literal of a product is its last operand.
            case Apply("*", (*factors, Literal(count))):
                rest = multiply(*factors)
                counts[rest] = counts.get(rest, 0) + count
            case _:
                counts[term] = counts.get(term, 0) + 1
    kept = [multiply(term, count) for term, count in counts.items() if count]
    return _joined("+", kept, constant, neutral=0)


def multiply(*factors: Operand) -> Size:
    """Return the product."""
    kept: list[Size] = []
    constant = 1
    for factor in _flat("*", factors):
        match factor:
            case Literal(value):
                constant *= value
            case _:
                kept.append(factor)
    return _joined("*", kept, constant, neutral=1) if constant else ZERO


def product_of(sizes: Iterable[Operand]) -> Size:
    """Return the product of all; of none it is 1."""
    return multiply(*sizes)


def _flat(function: str, operands: Iterable[Operand]) -> list[Size]:
    """Return operands with nested sums (or products) flattened: (a + b) + c is a, b, c."""
    flat: list[Size] = []
    for each in map(lift, operands):
        if isinstance(each, Apply) and each.function == function:
            flat += each.operands
        else:
            flat.append(each)
    return flat


def _joined(function: str, kept: list[Size], constant: int, *, neutral: int) -> Size:
    """Return a sum or product of operands and a constant, which comes last."""
    if constant != neutral or not kept:
        kept = [*kept, Literal(constant)]
    return kept[0] if len(kept) == 1 else Apply(function, tuple(kept))


def ceil_div(numerator: Operand, denominator: Operand) -> Size:
    """Return the quotient rounded up, of a denominator above 0.

    A quotient of a quotient by literals becomes a single one: ceil_div(ceil_div(n, 4), 8) is
    ceil_div(n, 32).
    """
    over, by = lift(numerator), lift(denominator)
    match over, by:
        case _, Literal(1):
            return over
        case Literal(a), Literal(b):
            return Literal(quotient_up(a, b))
        case Apply("*", (*factors, Literal(a))), Literal(b) if a % b == 0:
            return multiply(*factors, a // b)
        case Apply("ceil_div", (inner, Literal(a))), Literal(b):
            return ceil_div(inner, a * b)
        case _:
            return Apply("ceil_div", (over, by))


def quotient(numerator: Operand, denominator: Operand) -> Size:
    """Return the quotient rounded to zero."""
    over, by = lift(numerator), lift(denominator)
    match over, by:
        case _, Literal(1):
            return over
        case Literal(a), Literal(b):
            return Literal(idiv(a, b))
        case _:
            return Apply("/", (over, by))


def remainder(numerator: Operand, denominator: Operand) -> Size:
    """Return the remainder, with the sign of the numerator."""
    over, by = lift(numerator), lift(denominator)
    match over, by:
        case _, Literal(1):
            return ZERO
        case Literal(a), Literal(b):
            return Literal(irem(a, b))
        case Apply("*", (*_, Literal(a))), Literal(b) if b and a % b == 0:
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
    """Return the choice of two sizes by a condition."""
    first, second = lift(then), lift(otherwise)
    if isinstance(condition, Truth):
        return first if condition.value else second
    return first if first == second else Select(condition, first, second)


# Guards


def compare(op: str, left: Operand, right: Operand) -> Guard:
    """Return a comparison."""
    first, second = lift(left), lift(right)
    if isinstance(first, Literal) and isinstance(second, Literal):
        return Truth(bool(COMPARISONS[op](first.value, second.value)))
    return Compare(op, first, second)


def divides(divisor: int, size: Operand) -> Guard:
    """Return the condition that a size is a multiple of a divisor."""
    return compare("==", remainder(size, divisor), 0)


def all_of(*guards: Guard) -> Guard:
    """Return the condition that all guards hold, without guards that follow from others."""
    # Nested conditions are joined; then those that are the same, or follow, go.
    flat = [part for guard in guards for part in _conjuncts(guard)]
    if NEVER in flat:
        return NEVER
    distinct = [guard for guard in dict.fromkeys(flat) if guard != ALWAYS]
    if any(_excludes(one, other) for one in distinct for other in distinct):
        return NEVER
    kept = [
        guard
        for guard in distinct
        if not _follows(guard, (other for other in distinct if other != guard))
    ]
    if len(kept) < 2:
        return kept[0] if kept else ALWAYS
    return All(tuple(kept))


def parts_of(guard: Guard) -> frozenset[Guard]:
    """Return the conditions that all have to hold for a guard: none for `ALWAYS`."""
    return frozenset(_conjuncts(guard)) - {ALWAYS}


def _conjuncts(guard: Guard) -> tuple[Guard, ...]:
    return guard.guards if isinstance(guard, All) else (guard,)


def all_follow(parts: frozenset[Guard], given: frozenset[Guard]) -> bool:
    """Return whether each of some conditions is given, or follows from one that is.

    `m == 1` and `n <= 9` follow from `m == 1` and `n <= 4`.
    """
    return all(_follows(part, given) for part in parts - given)


def any_of(*guards: Guard) -> Guard:
    """Return the condition that at least one of the guards holds."""
    flat = [
        part
        for guard in guards
        for part in (guard.guards if isinstance(guard, AnyOf) else (guard,))
    ]
    if ALWAYS in flat:
        return ALWAYS
    kept = tuple(guard for guard in dict.fromkeys(flat) if guard != NEVER)
    if len(kept) < 2:
        return kept[0] if kept else NEVER
    return AnyOf(kept)


def negate(guard: Guard) -> Guard:
    """Return the negation of a condition."""
    match guard:
        case Truth(value):
            return Truth(not value)
        case Not(inner):
            return inner
        case _:
            return Not(guard)


def _excludes(first: Guard, second: Guard) -> bool:
    """Return whether two conditions exclude each other by their literals: `n < 9`, `n > 99`."""
    match first, second:
        case Compare("<", a, Literal(most)), Compare(">", b, Literal(least)):
            return a == b and most <= least + 1
        case Compare("<=", a, Literal(most)), Compare(">", b, Literal(least)):
            return a == b and most <= least
        case Compare("==", a, b), Compare("!=", c, d):
            return a == c and b == d
        case _:
            return False


def _follows(guard: Guard, given: Iterable[Guard]) -> bool:
    """Return whether a condition follows from one of the given ones by its literals.

    `n % 4 == 0` follows from `n % 16 == 0`, and `n <= 9` from `n <= 4`.
    """
    # Most conditions follow from no other: seen by the operator, without a pattern.
    if not isinstance(guard, Compare) or guard.op not in {"==", "<="}:
        return False
    right = guard.right
    if not isinstance(right, Literal) or (guard.op == "==" and right.value):
        return False
    for one in given:
        match one, guard:
            case (
                Compare("==", Apply("%", (a, Literal(more))), Literal(0)),
                Compare("==", Apply("%", (b, Literal(by))), Literal(0)),
            ) if (
                a == b and by and more % by == 0
            ):
                return True
            case (
                Compare("<=", a, Literal(less)),
                Compare("<=", b, Literal(most)),
            ) if (
                a == b and less <= most
            ):
                return True
            case _:
                pass
    return False
