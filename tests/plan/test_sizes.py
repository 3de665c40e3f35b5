"""Sizes: what folding keeps, and the way to text and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.plan import size as host
from kerngen.plan.scope import Parser, SizeSyntaxError
from kerngen.plan.text import guard_text, to_text

NAMES = ("k", "m", "n")
M, N = host.Symbol("m"), host.Symbol("n")
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
}

# Each value is drawn twice over: as a folded tree, and as a function of Python's own.
Meaning = Callable[[dict[str, int]], int]
Pair = tuple[host.Size, Meaning]


def literal(value: int) -> Pair:
    return host.Literal(value), lambda _: value


def name(of: str) -> Pair:
    return host.Symbol(of), lambda d: d[of]


def both(
    made: Callable[[host.Size, host.Size], host.Size], meant: Callable[[int, int], int]
) -> Callable[[tuple[Pair, Pair]], Pair]:
    """Return what makes a pair of two: the tree's function, and Python's."""

    def make(pairs: tuple[Pair, Pair]) -> Pair:
        (left, a), (right, b) = pairs
        return made(left, right), lambda d: meant(a(d), b(d))

    return make


def divided(
    made: Callable[[host.Size, int], host.Size], meant: Callable[[int, int], int]
) -> Callable[[tuple[Pair, int]], Pair]:
    def make(given: tuple[Pair, int]) -> Pair:
        (size, a), by = given
        return made(size, by), lambda d: meant(a(d), by)

    return make


def leaves() -> st.SearchStrategy[Pair]:
    return st.integers(0, 20).map(literal) | st.sampled_from(NAMES).map(name)


def grown(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    two, by = st.tuples(inner, inner), st.tuples(inner, st.integers(1, 64))
    return st.one_of(
        two.map(both(host.add, lambda a, b: a + b)),
        two.map(both(host.multiply, lambda a, b: a * b)),
        two.map(both(host.minimum, min)),
        two.map(both(host.maximum, max)),
        by.map(divided(host.ceil_div, lambda a, b: -(-a // b))),
        by.map(divided(host.remainder, lambda a, b: a % b)),
    )


SIZES = st.recursive(leaves(), grown, max_leaves=12)
LENGTHS = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in NAMES})


def parsed(text: str) -> host.Size:
    return Parser(text, {}, frozenset(NAMES)).whole_size()


def parsed_guard(text: str) -> host.Guard:
    return Parser(text, {}, frozenset(NAMES)).whole_guard()


@given(SIZES, LENGTHS)
def test_folding_changes_no_value(pair: Pair, lengths: dict[str, int]) -> None:
    size, expected = pair
    assert host.evaluate(size, lengths) == expected(lengths)


@given(SIZES)
def test_text_is_read_back(pair: Pair) -> None:
    assert parsed(to_text(pair[0])) == pair[0]


@given(SIZES, SIZES, SIZES, LENGTHS, st.sampled_from(sorted(COMPARED)))
def test_guards(a: Pair, b: Pair, c: Pair, lengths: dict[str, int], op: str) -> None:
    first, second = host.compare(op, a[0], b[0]), host.compare("!=", b[0], c[0])
    one = COMPARED[op](a[1](lengths), b[1](lengths))
    other = b[1](lengths) != c[1](lengths)
    every, either = host.all_of(first, second), host.any_of(first, host.negate(second))
    assert host.holds(every, lengths) == (one and other)
    assert host.holds(either, lengths) == (one or not other)
    for guard in (
        first,
        every,
        either,
        host.all_of(either, second),
        host.negate(every),
    ):
        assert parsed_guard(guard_text(guard)) == guard
    chosen = host.select(either, a[0], c[0])
    assert host.evaluate(chosen, lengths) == (a if one or not other else c)[1](lengths)
    assert parsed(to_text(chosen)) == chosen


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (host.ceil_div(N, 1), "n"),
        (host.add(N, N, N), "n * 3"),
        (host.add(N, 2, M, 3), "n + m + 5"),
        (host.add(N, host.multiply(M, -1), -2), "n - m - 2"),
        (host.multiply(2, M, 3, N), "m * n * 6"),
        (host.multiply(M, 0), "0"),
        (host.ceil_div(host.multiply(N, 8), 4), "n * 2"),
        (host.ceil_div(host.ceil_div(N, 16), 4), "ceil_div(n, 64)"),
        (host.remainder(host.multiply(N, 8), 4), "0"),
        (host.multiply(host.add(M, 1), N), "(m + 1) * n"),
        (host.select(host.NEVER, M, N), "n"),
    ],
)
def test_what_is_known_is_folded(size: host.Size, text: str) -> None:
    assert to_text(size) == text


def test_conditions_that_follow_from_others_are_left_out() -> None:
    assert host.all_of(host.divides(16, N), host.divides(4, N)) == host.divides(16, N)
    assert host.all_of(
        host.compare("<=", N, 512), host.compare("<=", N, 32)
    ) == host.compare("<=", N, 32)
    assert host.all_of(
        host.divides(4, N), host.ALWAYS, host.divides(4, N)
    ) == host.divides(4, N)
    assert host.all_of(host.divides(4, N), host.NEVER) == host.NEVER
    odd, few = host.compare("!=", host.remainder(N, 4), 0), host.compare("<=", N, 9)
    assert host.all_of(odd, host.divides(4, N)) == host.NEVER
    assert host.all_of(host.compare(">", N, 9), few) == host.NEVER
    assert isinstance(host.all_of(host.compare(">", N, 8), few), host.All)
    assert isinstance(host.all_of(odd, host.divides(2, N)), host.All)
    assert isinstance(host.all_of(host.divides(4, N), host.divides(3, N)), host.All)
    assert host.divides(4, host.multiply(N, 8)) == host.ALWAYS


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "n +",
            "n n",
            "(n",
            "n)",
            "n < m",
            "x",
            "n.m",
            "exec(n)",
            "ceil_div(n",
            "1.5.2",
        ),
        *(
            "9007199254740993",
            "__import__('os')",
            "n if m",
            "n; m",
            "m ** n",
            "[n]",
            "n and m",
        ),
        *("if(n, m, n)", "not(n < m)"),
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(SizeSyntaxError):
        parsed(text)


def test_32_bits_and_truncation() -> None:
    negative = host.add(N, -10)
    assert host.evaluate(parsed("(n - 10) / 4"), {"n": 0}) == -2
    assert host.evaluate(parsed("(n - 10) % 4"), {"n": 0}) == -2
    assert host.evaluate(parsed("n / 0"), {"n": 7}) == 7
    assert host.evaluate(parsed("n % 0"), {"n": 7}) == 0
    assert host.evaluate(parsed("wrap_i32(n * 4)"), {"n": 2**30}) == 0
    assert host.evaluate(parsed("wrap_u32(n - 1)"), {"n": 0}) == 2**32 - 1
    assert parsed(to_text(negative)) == negative
