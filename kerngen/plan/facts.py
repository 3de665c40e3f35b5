"""Facts that hold in every call, and proofs from them: `d % 8 == 0`, so `d % 4 == 0`.

Facts are conditions over dims and scalars.  Three ways lead from them to others: sums
that are never negative, remainders, and a fact that is met again as it is.  What can't
be decided is left open: a proof that is missed costs a check, never a wrong result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import gcd, lcm
from typing import Final, TypeAlias, assert_never, final

from kerngen.plan import size as host

Sum: TypeAlias = Mapping[tuple[host.Size, ...], Fraction]
"""A sum of products: `2 * m * n - 1` is {(m, n): 2, (): -1}."""

Residue: TypeAlias = tuple[int, int]
"""`(r, m)`: r modulo m; exactly r where m is 0, and anything where m is 1."""

_MOST_STEPS: Final = 4
"""The most facts that a proof adds up: what people write follows from two or three."""

_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@final
@dataclass(frozen=True)
class Facts:
    """Conditions that hold in every call; symbols in `natural` are never negative.

    With `d % 8 == 0` and `s <= t`: `decide` returns True for `d % 4 == 0`, False for `s > t`
    and None for `s == t`.
    """

    guards: tuple[host.Guard, ...] = ()
    natural: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is known besides signs."""
        return bool(self.guards)

    def simplified(self, guard: host.Guard) -> host.Guard:
        """Return a condition without the parts that are the same in every call.

        The whole may be such a part: then it is `ALWAYS` or `NEVER`.
        """
        match self.decide(guard), guard:
            case True, _:
                return host.ALWAYS
            case False, _:
                return host.NEVER
            case _, host.All(guards):
                return host.all_of(*map(self.simplified, guards))
            case _, host.AnyOf(guards):
                return host.any_of(*map(self.simplified, guards))
            case _:
                return guard

    def decide(self, guard: host.Guard) -> bool | None:
        """Return True or False if a condition is proven to be that in every call, else None."""
        if guard not in self._decided:
            self._decided[guard] = self._decide(guard)
        return self._decided[guard]

    def _decide(self, guard: host.Guard) -> bool | None:
        if guard in self._conjuncts:
            return True
        match guard:
            case host.Truth(value):
                return value
            case host.Not(inner):
                found = self.decide(inner)
                return None if found is None else not found
            case host.All(guards):
                return _every([self.decide(each) for each in guards])
            case host.AnyOf(guards):
                found = _every([self.decide(host.negate(each)) for each in guards])
                return None if found is None else not found
            case host.Compare():
                if negated(guard) in self._conjuncts:
                    return False
                return self._compared(guard)
            case _:
                assert_never(guard)

    def is_natural(self, size: host.Operand) -> bool:
        """Whether a size is proven to be at least 0 in every call."""
        return self._is_natural(_sum(host.lift(size)), _MOST_STEPS)

    def is_at_most(self, small: host.Operand, large: host.Operand) -> bool:
        """Whether `small` is proven to be at most `large` in every call."""
        return self.is_natural(host.add(large, host.multiply(small, -1)))

    def with_more(self, guards: Iterable[host.Guard]) -> Facts:
        """Return these facts and some more guards that hold in every call."""
        return Facts((*self.guards, *guards), self.natural)

    @cached_property
    def _decided(self) -> dict[host.Guard, bool | None]:
        """The conditions that were decided: the variants of a kernel ask for the same."""
        return {}

    @cached_property
    def _conjuncts(self) -> tuple[host.Guard, ...]:
        """All conditions that hold: those given, and the parts of each `and`."""
        return tuple(part for guard in self.guards for part in conjuncts(guard))

    def _compared(self, guard: host.Compare) -> bool | None:
        """Decide a comparison, by remainders, then by sums that are never negative."""
        known = self._by_remainder(guard)
        if known is not None:
            return known
        # 1. left - right has a residue other than 0: the sides are never equal.
        if guard.op in {"==", "!="}:
            rest, modulus = self.residue(
                host.add(guard.left, host.multiply(guard.right, -1))
            )
            if rest % modulus if modulus else rest:
                return guard.op == "!="
        # 2. The comparison always holds; `_sums` of `!=` are those of `==`.
        if all(self._is_natural(each, _MOST_STEPS) for each in _sums(guard)):
            return guard.op != "!="
        # 3. The opposite always holds: of `==` one side is always less, of others the
        # negation.
        for op in ("<", ">") if guard.op in {"==", "!="} else (_NEGATED[guard.op],):
            (other,) = _sums(host.Compare(op, guard.left, guard.right))
            if self._is_natural(other, _MOST_STEPS):
                return guard.op == "!="
        return None

    # Sums

    def _is_natural(self, value: Sum, steps: int) -> bool:
        """Whether a sum is proved to be never negative, in at most so many steps.

        A step subtracts a fact, a sum that is never negative, so that a part that may be
        negative goes.  If the rest is never negative, neither is the whole:

            t - s            fact t - s - 1 (s < t)
            the rest is 1    a literal of 0 or more: proved
        """
        constant = value.get((), Fraction(0))
        signed = [
            part
            for part, factor in value.items()
            if part and factor and (factor < 0 or not self._is_product(part))
        ]
        if not signed and constant >= 0:
            return True
        if steps == 0:
            return False
        # Without such a part, it is the constant that is too small: what has a larger
        # one makes up for it, `n - 2` by `n - m - 1` and `m - 1`.
        return any(
            self._is_natural(_minus(value, fact, value[part] / fact[part]), steps - 1)
            for fact in (*self._sums, *self._of_parts(value))
            for part in (signed[:1] or value)
            if (signed or fact.get((), 0) < 0) and fact.get(part, 0) * value[part] > 0
        )

    def _is_product(self, part: tuple[host.Size, ...]) -> bool:
        """Whether all factors of a product are symbols that are never negative."""
        return all(isinstance(x, host.Symbol) and x.name in self.natural for x in part)

    @cached_property
    def _sums(self) -> tuple[Sum, ...]:
        """Sums that are never negative, by the facts and by the functions in them."""
        own = [
            each
            for guard in self._conjuncts
            if isinstance(guard, host.Compare) and guard.op != "!="
            for each in _sums(guard)
        ]
        return (*own, *(part for each in own for part in self._of_parts(each)))

    @cached_property
    def _signs(self) -> Facts:
        """The facts without conditions: proofs about parts need no other proofs."""
        return Facts((), self.natural)

    def _of_parts(self, value: Sum) -> Iterator[Sum]:
        """Yield sums that are never negative by the functions in a value: see `_bounds`."""
        for atom in dict.fromkeys(atom for part in value for atom in part):
            for size in _bounds(atom, self._signs, self.residue):
                yield _sum(size)

    # Remainders

    def _by_remainder(self, guard: host.Compare) -> bool | None:
        """Decide `a % k == r` or `a % k != r` by the residue of a; None for other forms."""
        match guard:
            case host.Compare(
                "==" | "!=",
                host.Apply("%", (size, host.Literal(by))),
                host.Literal(rest),
            ) if (
                by > 0
            ):
                pass
            case _:
                return None
        is_equal = guard.op == "=="
        # The remainder has the sign of `size`: one that is not 0 depends on it.
        if rest and not self.is_natural(size):
            return None
        if not 0 <= rest < by:
            return not is_equal
        # The size is `remainder` modulo `modulus`, and so modulo each divisor of that.
        remainder, modulus = self.residue(size)
        common = gcd(modulus, by)
        if (remainder - rest) % common:
            return not is_equal
        return is_equal if common == by else None

    def residue(self, size: host.Size) -> Residue:
        """Return `(r, m)` if a size is known to be r modulo m; m is 0 if it is known to be r.

        Where `d % 8 == 0`, `d + 3` has (3, 8) and `2 * d` has (0, 16).  If nothing is known, it
        is (0, 1).
        """
        if size in self._residues:
            return self._residues[size]
        match size:
            case host.Literal(value):
                return value, 0
            case host.Apply("+", operands):
                found = [self.residue(each) for each in operands]
                return _reduced(sum(r for r, _ in found), gcd(*(m for _, m in found)))
            case host.Apply("*", operands):
                # (value + a * modulus) * (r + b * m) is value * r, and multiples of the
                # three products below.
                value, modulus = 1, 0
                for r, m in map(self.residue, operands):
                    modulus = gcd(value * m, r * modulus, m * modulus)
                    value *= r
                return _reduced(value, modulus)
            case _:
                return 0, 1

    @cached_property
    def _residues(self) -> dict[host.Size, Residue]:
        """The residues of sizes by facts `size % by == rest` and `size == rest`."""
        found: dict[host.Size, Residue] = {}
        for guard in self._conjuncts:
            match guard:
                case host.Compare(
                    "==", host.Apply("%", (size, host.Literal(by))), host.Literal(rest)
                ):
                    each = _reduced(rest, abs(by))
                case host.Compare("==", size, host.Literal(rest)):
                    each = rest, 0
                case _:
                    continue
            found[size] = _both(found.get(size, (0, 1)), each)
        return found


def conjuncts(guard: host.Guard) -> tuple[host.Guard, ...]:
    """Return conditions that hold if a guard holds, the guard itself first.

    They are the parts of an `and`, and `a >= b` for `not(a < b)`.
    """
    match guard:
        case host.All(guards):
            return (guard, *(part for each in guards for part in conjuncts(each)))
        case host.Not(host.Compare() as inner):
            return guard, negated(inner)
        case _:
            return (guard,)


def negated(guard: host.Compare) -> host.Compare:
    """Return the negation of a comparison."""
    return host.Compare(_NEGATED[guard.op], guard.left, guard.right)


def _every(found: Sequence[bool | None]) -> bool | None:
    """Return the `and` of truths of which None is unknown."""
    if False in found:
        return False
    return None if None in found else True


def _bounds(
    size: host.Size, signs: Facts, residue: Callable[[host.Size], Residue]
) -> Iterator[host.Size]:
    """Yield sizes that are never negative, by the function that a size is.

    With a literal k, and an x that is never negative:

        x % k       x % k,  x - x % k  and  k - 1 - x % k
        x / k       x / k,  x - x / k * k  and  most - (x - x / k * k)
        min(a, b)   a - min(a, b),  b - min(a, b)
        max(a, b)   max(a, b) - a,  max(a, b) - b

    `most` is the greatest remainder: k - 1, or the only one if x has a known residue.
    """
    match size:
        case host.Apply("%", (value, host.Literal(by))) if by > 0 and signs.is_natural(
            value
        ):
            yield from (size, host.add(value, host.multiply(size, -1)))
            yield host.add(by - 1, host.multiply(size, -1))
        case host.Apply(
            "/" | "floor_div", (value, host.Literal(by))
        ) if by > 0 and signs.is_natural(value):
            rest = host.add(value, host.multiply(size, -by))
            remainder, modulus = residue(value)
            most = by - 1 if modulus % by else remainder % by
            yield from (size, rest)
            yield host.add(most, host.multiply(rest, -1))
        case host.Apply("min", operands):
            yield from (host.add(each, host.multiply(size, -1)) for each in operands)
        case host.Apply("max", operands):
            yield from (host.add(size, host.multiply(each, -1)) for each in operands)
        case _:
            return


def _sums(guard: host.Compare) -> list[Sum]:
    """Return the sums that are not negative where a comparison holds.

    Of integers, `a < b` is b - a - 1 >= 0.  `==` gives two sums, a - b and b - a; those of
    `!=` are the same, and hold if the sides are equal.
    """
    over = _sum(host.add(guard.left, host.multiply(guard.right, -1)))
    under = _sum(host.add(guard.right, host.multiply(guard.left, -1)))
    one: Sum = {(): Fraction(1)}
    match guard.op:
        case "<":
            return [_minus(under, one, Fraction(1))]
        case "<=":
            return [under]
        case ">":
            return [_minus(over, one, Fraction(1))]
        case ">=":
            return [over]
        case _:
            return [over, under]


def _sum(size: host.Size) -> Sum:
    """Return a size as a sum of products; any other function is a part of it, as it is."""
    match size:
        case host.Literal(value):
            return {(): Fraction(value)}
        case host.Apply("+", operands):
            total: Counter[tuple[host.Size, ...]] = Counter()
            for each in map(_sum, operands):
                total.update(each)
            return _present(total)
        case host.Apply("*", (first, *others)):
            result = _sum(first)
            for other in others:
                result = _times(result, _sum(other))
            return result
        case host.Symbol() | host.Apply() | host.Select():
            return {(size,): Fraction(1)}
        case _:
            assert_never(size)


def _times(left: Sum, right: Sum) -> Sum:
    found: dict[tuple[host.Size, ...], Fraction] = {}
    for (a, x), (b, y) in product(left.items(), right.items()):
        part = tuple(sorted((*a, *b), key=repr))
        found[part] = found.get(part, Fraction(0)) + x * y
    return _present(found)


def _minus(value: Sum, other: Sum, times: Fraction) -> Sum:
    found = dict(value)
    for part, factor in other.items():
        found[part] = found.get(part, Fraction(0)) - times * factor
    return _present(found)


def _present(value: Mapping[tuple[host.Size, ...], Fraction | int]) -> Sum:
    return {part: Fraction(factor) for part, factor in value.items() if factor}


def _reduced(remainder: int, modulus: int) -> Residue:
    return (remainder % modulus if modulus else remainder), modulus


def _both(one: Residue, other: Residue) -> Residue:
    """Return the residue that two residues of one number imply, by the Chinese remainders.

    (1, 4) and (0, 3) are (9, 12).  If they contradict each other, it is the first.
    """
    (r, m), (s, n) = one, other
    if m == 0 or n == 0:
        return one if m == 0 else other
    common = gcd(m, n)
    if (r - s) % common:
        return one
    turns = (s - r) // common * pow(m // common, -1, n // common) % (n // common)
    return _reduced(r + m * turns, lcm(m, n))
