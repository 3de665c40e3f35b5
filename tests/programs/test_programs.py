"""Random programs: accepted by naga and Tint, and right by every way to run them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .campaign import COUNTS, campaign, rare
from .trial import Trial

PARTS = 2
PROGRAMS = 125

MANY_PARTS = 16
MANY = 625
"""Of each of the many parts: 10,000 together."""


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(
    trial: Trial, part: int, record_property: Callable[[str, object], None]
) -> None:
    counts = campaign(trial, part, PROGRAMS)
    record_property(COUNTS, json.dumps(counts))
    assert rare(counts) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS, PARTS + MANY_PARTS))
def test_many_programs(
    trial: Trial, part: int, record_property: Callable[[str, object], None]
) -> None:
    counts = campaign(trial, part, MANY)
    record_property(COUNTS, json.dumps(counts))
    assert rare(counts) == []
