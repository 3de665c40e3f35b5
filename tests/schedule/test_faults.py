"""Schedules that do not suit their kernels, with the full text that users see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.catalogue import DIAGNOSTICS
from kerngen.compiler import compile_text
from kerngen.schedule import faults
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.render import render

CASES = sorted((Path(__file__).parent / "cases").glob("*.kern"))


def diagnostics_of(case: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as raised:
        compile_text(case.read_text(encoding="utf-8"), case.name)
    return raised.value.diagnostics


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_faults_are_rendered(case: Path, golden: Callable[[Path, str], None]) -> None:
    golden(case.with_suffix(".err"), render(diagnostics_of(case)))


def test_every_fault_of_scheduling_has_a_case() -> None:
    seen = {type(fault) for case in CASES for fault in diagnostics_of(case)}
    own = {kind for kind in DIAGNOSTICS if kind.__module__ == faults.__name__}
    assert own
    assert own == seen
