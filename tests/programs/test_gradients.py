"""Gradients of random programs are what differences give."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.budget import tonight

from .gradients import Verdict, check
from .programs import CHOICES, program_of

PARTS = 7
EACH = 50
"""Programs of each part: 300 together, each by all of its parameters."""

BY_DAY = 12


def _campaign(part: int, count: int, most: int | None = None) -> Counter[str]:
    """Check programs, always the same ones, until so many gradients are right."""
    counts: Counter[str] = Counter()
    rng = np.random.default_rng([part, 18])
    while counts[Verdict.RIGHT.value] < count:
        program = program_of(rng.bytes(CHOICES), is_pure=True)
        counts[check(program, most).value] += 1
    return counts


def test_gradients_of_programs(record_property: Callable[[str, object], None]) -> None:
    """Each is by one of its parameters."""
    counts = _campaign(0, BY_DAY, most=1)
    record_property("gradients of random programs", json.dumps(counts))
    assert counts[Verdict.RIGHT.value] * 3 > counts.total()


@pytest.mark.nightly
@pytest.mark.parametrize("part", tonight(range(1, 1 + PARTS)))
def test_gradients_of_many_programs(part: int) -> None:
    counts = _campaign(part, EACH)
    assert counts[Verdict.RIGHT.value] * 3 > counts.total()
