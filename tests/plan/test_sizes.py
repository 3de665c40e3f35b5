"""Sizes: what folding keeps, and the way to text and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.plan.parse import Parser, SizeSyntaxError
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    All,
    Guard,
    Literal,
    Size,
    Symbol,
    add,
    all_of,
    any_of,
    ceil_div,
    compare,
    divides,
    evaluate,
    holds,
    maximum,
    minimum,
    multiply,
    negate,
    remainder,
    select,
)
from kerngen.plan.text import guard_text, to_text

NAMES = ("k", "m", "n")
M, N = Symbol("m"), Symbol("n")
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
}

# Each value is drawn twice over: as a folded tree, and as a function of Python's own.
Meaning = Callable[[dict[str, int]], int]
Pair = tuple[Size, Meaning]


def literal(value: int) -> Pair:
    return Literal(value), lambda _: value


def name(of: str) -> Pair:
    return Symbol(of), lambda d: d[of]


def both(
    made: Callable[[Size, Size], Size], meant: Callable[[int, int], int]
) -> Callable[[tuple[Pair, Pair]], Pair]:
    """Return what makes a pair of two: the tree's function, and Python's."""

    def make(pairs: tuple[Pair, Pair]) -> Pair:
        (left, a), (right, b) = pairs
        return made(left, right), lambda d: meant(a(d), b(d))

    return make


def divided(
    made: Callable[[Size, int], Size], meant: Callable[[int, int], int]
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
        two.map(both(add, lambda a, b: a + b)),
        two.map(both(multiply, lambda a, b: a * b)),
        two.map(both(minimum, min)),
        two.map(both(maximum, max)),
        by.map(divided(ceil_div, lambda a, b: -(-a // b))),
        by.map(divided(remainder, lambda a, b: a % b)),
    )


SIZES = st.recursive(leaves(), grown, max_leaves=12)
LENGTHS = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in NAMES})


def parsed(text: str) -> Size:
    return Parser(text, {}, frozenset(NAMES)).whole_size()


def parsed_guard(text: str) -> Guard:
    return Parser(text, {}, frozenset(NAMES)).whole_guard()


@given(SIZES, LENGTHS)
def test_folding_changes_no_value(pair: Pair, lengths: dict[str, int]) -> None:
    size, expected = pair
    assert evaluate(size, lengths) == expected(lengths)


@given(SIZES)
def test_text_is_read_back(pair: Pair) -> None:
    assert parsed(to_text(pair[0])) == pair[0]


@given(SIZES, SIZES, SIZES, LENGTHS, st.sampled_from(sorted(COMPARED)))
def test_guards(a: Pair, b: Pair, c: Pair, lengths: dict[str, int], op: str) -> None:
    first, second = compare(op, a[0], b[0]), compare("!=", b[0], c[0])
    one = COMPARED[op](a[1](lengths), b[1](lengths))
    other = b[1](lengths) != c[1](lengths)
    every, either = all_of(first, second), any_of(first, negate(second))
    assert holds(every, lengths) == (one and other)
    assert holds(either, lengths) == (one or not other)
    for guard in (first, every, either, all_of(either, second), negate(every)):
        assert parsed_guard(guard_text(guard)) == guard
    chosen = select(either, a[0], c[0])
    assert evaluate(chosen, lengths) == (a if one or not other else c)[1](lengths)
    assert parsed(to_text(chosen)) == chosen


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (ceil_div(N, 1), "n"),
        (add(N, N, N), "n * 3"),
        (add(N, 2, M, 3), "n + m + 5"),
        (add(N, multiply(M, -1), -2), "n - m - 2"),
        (multiply(2, M, 3, N), "m * n * 6"),
        (multiply(M, 0), "0"),
        (ceil_div(multiply(N, 8), 4), "n * 2"),
        (ceil_div(ceil_div(N, 16), 4), "ceil_div(n, 64)"),
        (remainder(multiply(N, 8), 4), "0"),
        (multiply(add(M, 1), N), "(m + 1) * n"),
        (select(NEVER, M, N), "n"),
    ],
)
def test_what_is_known_is_folded(size: Size, text: str) -> None:
    assert to_text(size) == text


def test_conditions_that_follow_from_others_are_left_out() -> None:
    assert all_of(divides(16, N), divides(4, N)) == divides(16, N)
    assert all_of(compare("<=", N, 512), compare("<=", N, 32)) == compare("<=", N, 32)
    assert all_of(divides(4, N), ALWAYS, divides(4, N)) == divides(4, N)
    assert all_of(divides(4, N), NEVER) == NEVER
    assert isinstance(all_of(divides(4, N), divides(3, N)), All)
    assert divides(4, multiply(N, 8)) == ALWAYS


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
    negative = add(N, -10)
    assert evaluate(parsed("(n - 10) / 4"), {"n": 0}) == -2
    assert evaluate(parsed("(n - 10) % 4"), {"n": 0}) == -2
    assert evaluate(parsed("n / 0"), {"n": 7}) == 7
    assert evaluate(parsed("n % 0"), {"n": 7}) == 0
    assert evaluate(parsed("wrap_i32(n * 4)"), {"n": 2**30}) == 0
    assert evaluate(parsed("wrap_u32(n - 1)"), {"n": 0}) == 2**32 - 1
    assert parsed(to_text(negative)) == negative
