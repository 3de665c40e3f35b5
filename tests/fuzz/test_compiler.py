"""Every input ends in output or diagnostics: some hundred by day, a million in a week."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.budget import tonight
from tests.programs.judges import both

from . import oracle as oracles
from .campaign import Tally, input_number, run
from .oracle import FoundError, Oracle

FEW, MANY = 700, 1_000_000

CAMPAIGNS = 112
"""Seeds of the million inputs: of a night's sixteen, each takes half a minute."""


def test_some_inputs(tmp_path: Path) -> None:
    tally = run(tmp_path, seed=1, count=FEW, oracle=Oracle())
    assert tally.found == {}
    ends = {name.rpartition(": ")[2] for name in tally.outcomes}
    assert ends == {"output", "diagnostics"}


def test_inputs_depend_on_the_seed_alone() -> None:
    assert input_number(1, 5) == input_number(1, 5)
    assert input_number(1, 5) != input_number(2, 5)


def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    run(tmp_path, seed=1, count=5, oracle=Oracle())
    run(tmp_path, seed=1, count=9, oracle=Oracle())
    whole = run(tmp_path / "whole", seed=1, count=9, oracle=Oracle())
    assert Tally.read(tmp_path, 1).outcomes == whole.outcomes


def test_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Oracle({"judge": lambda shader: "no" if "sqrt" in shader else ""})
    text = b"kernel k(x: f32[n]) -> y: f32[n] { y[i] = sqrt(x[i]); }"
    with pytest.raises(FoundError, match="no"):
        oracle.examine(text)
    monkeypatch.setattr("kerngen.compiler.emit_binding", None)
    with pytest.raises(FoundError, match="TypeError"):
        Oracle().examine(text)
    monkeypatch.undo()
    monkeypatch.setattr(oracles, "SECONDS", -1.0)
    with pytest.raises(FoundError, match="It takes"):
        Oracle().examine(text)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", tonight(range(CAMPAIGNS)))
def test_a_million_inputs(tmp_path: Path, seed: int) -> None:
    with both() as judges:
        tally = run(tmp_path, seed, count=MANY // CAMPAIGNS, oracle=Oracle(judges))
    print(tally)
    assert tally.found == {}
