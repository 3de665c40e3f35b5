"""Random structs before the GPU, naga, Tint and the specification; none may disagree."""

from __future__ import annotations

import pytest

from tests.budget import tonight

from .judged import Judges


def test_every_judge_agrees(judges: Judges) -> None:
    assert judges.campaign(0, 60) >= 60


@pytest.mark.nightly
@pytest.mark.parametrize("number", tonight(range(100, 120)))
def test_every_judge_agrees_about_many(number: int, judges: Judges) -> None:
    assert judges.campaign(number, 1000) >= 1000
