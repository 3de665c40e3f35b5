"""The regret of a choice, by times that are known; and a call that is timed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from kerngen.bench.choose import named
from tests.performance import regret
from tests.performance.regret import DRAWN, RegretData


def timed(chosen: float, torch: float | None = None) -> RegretData:
    tiles = {"gemm tile(32, 32, 32)": 3e-6, "gemm tile(64, 64, 16)": 2e-6}
    sizes = {"m": 3, "k": 5}
    return {
        "kernel": "a.b",
        "sizes": sizes,
        "chosen": chosen,
        "tiles": tiles,
        "torch": torch,
    }


def test_the_regret_is_beyond_the_fastest() -> None:
    best, worse, other = timed(2e-6), timed(3e-6, 4.5e-6), timed(1e-6, 0.5e-6)
    assert [regret.regret(data) for data in (best, worse, other)] == [0, 0.5, 0]
    assert regret.line(best) == "a.b m=3, k=5: 2.0 us"
    said = "a.b m=3, k=5: 3.0 us, 2.0 by gemm tile(64, 64, 16); PyTorch 4.5 us"
    assert regret.line(worse) == said
    said = "2 calls: 25.0% beyond the fastest in the mean, at worst 50%"
    assert (
        regret.summary([best, worse])
        == f"{said}; 1.50 of PyTorch's speed in the median"
    )
    assert (
        regret.summary([best])
        == "1 call: 0.0% beyond the fastest in the mean, at worst 0%"
    )


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda drawn: drawn.path)
def test_sizes_that_are_drawn_are_those_of_calls(drawn: regret.Drawn) -> None:
    rng = random.Random(1)
    for longest in (128, 4096):
        cases = [drawn.draw(rng, longest) for _ in range(20)]
        assert all(case.operations for case in named(drawn.path, (*cases,), "gpu"))
        assert len({tuple(case.values()) for case in cases}) > 10


def test_calls_are_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "regret.json"
    regret.main(["--only", "*nn", "--shapes", "1", "--out", str(file)])
    (data,) = json.loads(file.read_text("utf-8"))
    assert data["chosen"] > 0
    assert len(data["tiles"]) == len(DRAWN[0].tiles)
    assert "1 call: " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        regret.main(["--only", "nothing"])
