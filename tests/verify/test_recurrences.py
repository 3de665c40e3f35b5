"""Recurrences, held to their equations step by step."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kerngen.cli import main
from kerngen.verify import campaign
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.programs import CallState, Subject
from tests.budget import sampled
from tests.project.tree import ROOT
from tests.verify.patches import nothing

FOLDER = ROOT / "tests" / "language"


def verdicts(monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    """Return the verdict of each way to run kernels of a file."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(campaign, "large_sizes", nothing)
    arguments = ["verify", *words, "--json", "--budget", "3000"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    rows = json.loads(result.stdout)["results"]
    return {f"{row['kernel']} {row['strategy']}": row["verdict"] for row in rows}


def test_the_numbers_of_a_recurrence_are_known(known: dict[str, Subject]) -> None:
    x = np.random.default_rng(3).uniform(0.5, 2.0, (3, 7)).astype(np.float32)
    call = CallState(known["fading"], {"m": 3, "n": 7})
    with np.errstate(all="ignore"):
        call.bind([x], (0.75,))
        for statement in known["fading"].kernel.body:
            call.execute(statement)
    y = call.contents["y"]
    assert isinstance(y, BoundedArray)
    expected = x.astype(np.float64)
    for j in range(1, 7):
        expected[:, j] += 0.75 * expected[:, j - 1]
    np.testing.assert_allclose(y.value, expected, rtol=1e-12)
    assert (y.error < 1e-5).all()


@pytest.mark.parametrize("kernel", sampled(["lagged", "walk"], 2))
def test_some_recurrences_are_held(
    monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    file = f"recurrences_odd.kern:{kernel}"
    found = verdicts(monkeypatch, file, "--examples", "2")
    assert set(found.values()) == {"held"}
    assert any("recur" in way or "steps" in way for way in found)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["recurrences.kern", "recurrences_odd.kern"])
def test_all_recurrences_are_held(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert set(verdicts(monkeypatch, name).values()) == {"held"}
