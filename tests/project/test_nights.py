"""Sweeps that rotate: in a week every case has its turn once."""

from __future__ import annotations

import pytest

from tests.budget import NIGHT, NIGHTS, tonight


def test_each_case_has_its_turn_in_a_week(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases, turns = [*range(1000)], list[list[int]]()
    for night in range(NIGHTS * 105_500, NIGHTS * 105_500 + 2 * NIGHTS):
        monkeypatch.setenv(NIGHT, str(night))
        turns.append([*tonight(cases)])
        assert turns[-1] == [*tonight(cases)] == sorted(turns[-1])
    first, second = turns[:NIGHTS], turns[NIGHTS:]
    for cycle in (first, second):
        assert sorted(case for turn in cycle for case in turn) == cases
    assert first[0] != second[0]
    monkeypatch.setenv(NIGHT, "all")
    assert tonight(cases) == cases
