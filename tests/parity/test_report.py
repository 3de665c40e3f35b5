"""What `tools/parity` prints and draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.parity.record import Differences
from tests.parity.tasks import TASKS

pytestmark = pytest.mark.torch


def test_it_prints_a_table_and_saves_a_picture(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tests.parity import __main__ as program
    from tests.parity.noise import GATE

    monkeypatch.setattr(program, "TASKS", {"residual": TASKS["residual"]})
    picture = tmp_path / "parity.png"
    assert program.main(["--picture", str(picture)]) == 0
    output = capsys.readouterr().out
    assert "residual, 40" in output
    assert GATE in output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_too_far_apart_fails(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.parity import __main__ as program
    from tests.parity.noise import GATE, Study

    found = Differences(np.array([1e-9, 2e-4]), np.zeros(2), {"weight": 0.0})
    assert program.report(Console(), [Study("small", {GATE: found})]) == 1
    assert "small: loss at step 2: 0.0002" in capsys.readouterr().out
