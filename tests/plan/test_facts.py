"""What facts prove is so for every call that they allow: each is tried, in small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.plan.facts import Facts
from kerngen.plan.scope import Parser
from kerngen.plan.size import ALWAYS, NEVER, Guard, holds
from kerngen.plan.text import guard_text
from tests.budget import examples

NAMES: tuple[str, ...] = ("m", "n", "k")
LARGEST = 9


def guard(text: str) -> Guard:
    return Parser(text, {}, frozenset(NAMES)).whole_guard()


def facts(*texts: str) -> Facts:
    """Return facts of which m and n are never negative, and k may be."""
    return Facts(tuple(map(guard, texts)), frozenset(("m", "n")))


def calls(known: Facts) -> Iterator[dict[str, int]]:
    """Yield every call with small numbers that the facts allow."""
    naturals = range(LARGEST)
    for values in product(naturals, naturals, range(-LARGEST, LARGEST)):
        call: dict[str, int] = dict(zip(NAMES, values, strict=True))
        if all(holds(each, call) for each in known.guards):
            yield call


PROVED = [
    (("n % 8 == 0",), "n % 4 == 0"),
    (("n % 8 == 0",), "m * n % 8 == 0"),
    (("n % 4 == 0", "m % 2 == 0"), "m * n % 8 == 0"),
    (("n % 4 == 0", "n % 6 == 0"), "n % 12 == 0"),
    (("n % 4 == 0",), "(n + m * 2) % 2 == 0"),
    (("n % 4 == 1",), "n % 2 == 1"),
    (("n == 12",), "n % 4 == 0"),
    (("m <= n",), "n - m + 1 > 0"),
    (("m < n",), "n > 0"),
    (("m < n", "n < k"), "m + 1 < k"),
    (("m < n", "m >= 1"), "n >= 2"),
    (("m * 2 <= n",), "m <= n"),
    (("k >= 0", "k < n"), "n > 0"),
    (("n % 2 == 0",), "n / 2 * 2 == n"),
    (("m <= n / 2",), "m * 2 <= n"),
    (("m <= min(n, k)",), "m <= k"),
    (("n <= 1024",), "n <= 16384"),
    (("m <= n or k > 3",), "m <= n or k > 3"),
    ((), "m * n >= 0"),
]


@pytest.mark.parametrize(("known", "follows"), PROVED)
def test_what_follows_is_proved(known: tuple[str, ...], follows: str) -> None:
    assert facts(*known).decide(guard(follows)) is True
    assert facts(*known).simplified(guard(follows)) == ALWAYS


CONTRADICTED = [
    (("n % 8 == 0",), "n == 12"),
    (("n % 8 == 0",), "n % 4 == 2"),
    (("m < n",), "n <= m"),
    (("m < n",), "m == n"),
    (("n <= 1024",), "n > 16384"),
    ((), "n + 1 <= 0"),
    ((), "n % 4 == 4"),
]


@pytest.mark.parametrize(("known", "refuted"), CONTRADICTED)
def test_what_is_contradicted_is_refuted(known: tuple[str, ...], refuted: str) -> None:
    assert facts(*known).decide(guard(refuted)) is False
    assert facts(*known).simplified(guard(refuted)) == NEVER


OPEN = [
    (("n % 4 == 0",), "n % 8 == 0"),
    (("k % 4 == 3",), "k % 2 == 1"),
    (("m <= n",), "m < n"),
    ((), "k >= 0"),
    ((), "k * n >= 0"),
    (("m != n",), "m < n"),
]


@pytest.mark.parametrize(("known", "open_"), OPEN)
def test_what_may_be_or_not_is_open(known: tuple[str, ...], open_: str) -> None:
    assert facts(*known).decide(guard(open_)) is None


def test_what_is_left_of_a_condition_is_asked() -> None:
    known = facts("n % 4 == 0", "m <= n")
    left = known.simplified(guard("n % 2 == 0 and m % 4 == 0 and n >= m"))
    assert guard_text(left) == "m % 4 == 0"
    assert guard_text(known.simplified(guard("m > n or k == 1"))) == "k == 1"


NUMBERS = st.integers(-6, 6)
SIZES = st.one_of(
    st.sampled_from(NAMES),
    st.builds("{} * {} + {}".format, st.sampled_from(NAMES), NUMBERS, NUMBERS),
    st.builds("{} + {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{} * {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{} % {}".format, st.sampled_from(NAMES), st.integers(1, 6)),
    st.builds("{} / {}".format, st.sampled_from(NAMES), st.integers(1, 6)),
    st.builds("min({}, {})".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("max({}, {})".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
)
COMPARED = st.builds(
    "{} {} {}".format,
    SIZES,
    st.sampled_from(("<", "<=", "==", "!=", ">", ">=")),
    st.one_of(SIZES, st.integers(0, 6).map(str)),
)
GUARDS = st.one_of(
    COMPARED,
    st.builds("{} and {}".format, COMPARED, COMPARED),
    st.builds("{} or {}".format, COMPARED, COMPARED),
    st.builds("not({})".format, COMPARED),
)


@given(st.lists(GUARDS, max_size=3), GUARDS)
@settings(max_examples=examples(40))
def test_no_call_contradicts_a_proof(known: list[str], asked: str) -> None:
    proved = facts(*known)
    decided = proved.decide(guard(asked))
    left = proved.simplified(guard(asked))
    for call in calls(proved):
        assert decided in (None, holds(guard(asked), call)), call
        assert holds(left, call) == holds(guard(asked), call), call
