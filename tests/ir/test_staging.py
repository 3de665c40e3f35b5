"""Stages: what is computed together, and what must wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.ir.staging.dump import dump_stages
from kerngen.ir.staging.passes import form_stages
from kerngen.ir.staging.stages import StagedKernel
from kerngen.ir.staging.verify import verify_stages
from tests.compile import checked
from tests.gradient.differences import checked_file
from tests.language.cases import CASES, Case

ROOT = Path(__file__).parents[2]
STAGING = Path(__file__).parent / "cases" / "staging.kern"


def stages_of(text: str) -> list[StagedKernel]:
    return [form_stages(kernel) for kernel in checked(text).kernels]


def test_stages_are_as_expected(golden: Callable[[Path, str], None]) -> None:
    staged = stages_of(STAGING.read_text(encoding="utf-8"))
    text = "\n".join(dump_stages(kernel) for kernel in staged)
    golden(STAGING.with_suffix(".stages"), text)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_stages_of_every_case_are_valid(case: Case) -> None:
    for staged in stages_of(case.text):
        assert verify_stages(staged) == []


@pytest.mark.parametrize("file", sorted((ROOT / "dsl").rglob("*.kern")), ids=str)
def test_stages_of_the_standard_kernels_are_valid(file: Path) -> None:
    for kernel in checked_file(file).kernels:
        assert verify_stages(form_stages(kernel)) == []
