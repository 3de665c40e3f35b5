"""Recurrences, held to their equations step by step."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from kerngen.cli import main
from kerngen.verify import campaign
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
