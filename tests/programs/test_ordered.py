"""Random scans, reductions by key, places and recurrences, by every way to run them."""

from __future__ import annotations

import pytest

from kerngen.verify import verify
from tests.budget import tonight

from .ordered import ordered_program

MANY = 12
"""In each of the parts: some 300 programs together."""


def wrong(seed: int) -> list[str]:
    """Return what is found wrong with a program; it must have been run at all."""
    report = verify(ordered_program(seed), examples=2, budget=30, seed=seed)
    verdicts = {result["verdict"] for result in report["results"]}
    assert "held" in verdicts
    return sorted(verdicts - {"held", "not run"})


def test_a_program() -> None:
    assert wrong(4) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", tonight(range(25)))
def test_programs(part: int) -> None:
    found = {
        seed: wrong(seed) for seed in range(100 + part * MANY, 100 + part * MANY + MANY)
    }
    assert {seed: what for seed, what in found.items() if what} == {}
