"""Random programs: accepted by naga and Tint, and right by every way to run them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.budget import tonight

from .campaign import COUNTS, campaign, rare
from .trial import Trial

PROGRAMS = 8
"""By default: each takes half a second."""

PARTS = 16
MANY = 625
"""Of each of the many parts: 10,000 together, in a week."""


def test_programs(trial: Trial, record_property: Callable[[str, object], None]) -> None:
    """So few programs may lack some constructs: many must not."""
    counts = campaign(trial, 0, PROGRAMS)
    record_property(COUNTS, json.dumps(counts))
    assert counts["programs"] >= PROGRAMS


@pytest.mark.nightly
@pytest.mark.parametrize("part", tonight(range(1, 1 + PARTS)))
def test_many_programs(
    trial: Trial, part: int, record_property: Callable[[str, object], None]
) -> None:
    counts = campaign(trial, part, MANY)
    record_property(COUNTS, json.dumps(counts))
    assert rare(counts) == []
