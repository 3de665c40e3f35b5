"""How much of a sweep runs by default; the rest has its turn in a week of nights."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, TypeVar, cast

import pytest
from hypothesis import Phase, settings

T = TypeVar("T")

USUAL = 100
"""What Hypothesis draws of its own accord."""


NIGHT: Final = "KERNGEN_NIGHT"
"""The environment variable with the number of the night, or 'all' for no rotation."""

NIGHTS: Final = 7
"""How many nights a rotating sweep takes: a week.

Of all that rotates, some 60,000 CPU seconds, that leaves 9,000 a night.
"""


def name_night() -> str:
    """Return the night's number, today's unless one is given; child processes share it."""
    today = datetime.now(UTC).toordinal()
    return os.environ.setdefault(NIGHT, str(today))


def tonight(values: Sequence[T]) -> Sequence[T]:
    """Return the values of a sweep that are this night's turn: one of `NIGHTS` parts.

    In `NIGHTS` nights that follow each other every value has one turn, with other values
    each time.
    """
    night = name_night()
    if night == "all":
        return values
    cycle, part = divmod(int(night), NIGHTS)
    order = Random(cycle).sample(range(len(values)), len(values))
    return [values[number] for number in sorted(order[part::NIGHTS])]


def examples(count: int) -> int:
    """Return how many examples to draw where `count` would be drawn at the usual budget.

    `tests/conftest.py` loads the profile whose budget this follows: 40 of 100 by default,
    and ten times as many as `count` with 'tools/test --nightly'.
    """
    return max(1, count * settings().max_examples // USUAL)


def is_night() -> bool:
    """Return whether nightly tests run: `tests/conftest.py` loads a profile that is large."""
    return settings().max_examples >= USUAL


def phases() -> tuple[Phase, ...]:
    """Return what a test does that gives its own examples: by default nothing else."""
    return tuple(Phase) if is_night() else (Phase.explicit,)


def several(values: Sequence[T], by_day: int) -> Sequence[T]:
    """Return all values at night, by default so many of them, spread, the first included."""
    if is_night():
        return values
    return [values[at * len(values) // by_day] for at in range(by_day)]


def in_turn(cases: Iterable[T], strategies: Iterable[str], every: int) -> Any:
    """Return pairs of a case and a strategy; the one chosen for it is "".

    By default each case takes that, and one of so many others; the rest rotates at night.
    """
    pairs = [
        ((case, strategy), place == 0 or (number + place) % every == 0)
        for number, case in enumerate(cases)
        for place, strategy in enumerate(("", *strategies))
    ]
    return _sweep(
        pairs, lambda pair: f"{pair[0]}-{pair[1].replace(' ', '-') or 'chosen'}"
    )


def named(value: object) -> str:
    """Return a test's name of a parameter, or of a tuple of them."""
    return "-".join(map(str, _as_tuple(value)))


def _as_tuple(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)


def sampled(several: Iterable[T], every: int, label: Callable[[T], str] = named) -> Any:
    """Return the parameters of a sweep; all but each so-manieth are for nights.

    A tuple is the values of several parameters, as for `pytest.mark.parametrize`.
    """
    values = [(value, number % every == 0) for number, value in enumerate(several)]
    return _sweep(values, label)


def _sweep(values: Sequence[tuple[T, bool]], label: Callable[[T], str]) -> Any:
    """Return parameters: those by day, and those of the others that are this night's turn."""
    nights = {n for n, (_, by_day) in enumerate(values) if not by_day}
    turn = {*tonight(sorted(nights))}
    return [
        pytest.param(
            *_as_tuple(value),
            id=label(value),
            marks=[pytest.mark.nightly] if number in nights else [],
        )
        for number, (value, _) in enumerate(values)
        if number in turn or number not in nights
    ]
