"""Schedules that do not suit their kernels, with the full text that users see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError
from kerngen.source.render import render

CASES = sorted((Path(__file__).parent / "cases").glob("*.kern"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_faults_are_rendered(case: Path, golden: Callable[[Path, str], None]) -> None:
    with pytest.raises(CompileError) as raised:
        compile_text(case.read_text(encoding="utf-8"), case.name)
    golden(case.with_suffix(".err"), render(raised.value.diagnostics))
