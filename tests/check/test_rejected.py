"""Wrong and doubtful programs with their diagnostics in full: `reject/<name>.kern` and `.err`.

One of several files is a folder, in which `main.kern` is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kerngen.catalogue import DIAGNOSTICS
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.render import render
from tests.wording import check_wording

from .libraries import cases_in, module_of, name_of

FOLDER = Path(__file__).parent.parent / "cases" / "reject"
CASES = cases_in(FOLDER)


@cache
def diagnostics_of(case: Path) -> tuple[Diagnostic, ...]:
    try:
        warnings = module_of(case).warnings
    except CompileError as error:
        return error.diagnostics
    assert warnings, f"{name_of(case)} is accepted"
    return warnings


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_rendered_diagnostics(case: Path, golden: Callable[[Path, str], None]) -> None:
    golden(case.with_suffix(".err"), render(diagnostics_of(case)))


def test_no_golden_is_left_over() -> None:
    goldens = set(FOLDER.rglob("*.err"))
    assert goldens == {case.with_suffix(".err") for case in CASES}


def test_codes_are_distinct_and_in_their_hundreds() -> None:
    codes = [kind.CODE for kind in DIAGNOSTICS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"KG\d{4}", code) for code in codes)


def test_wording_follows_the_rules() -> None:
    for case in CASES:
        for fault in diagnostics_of(case):
            check_wording(fault)
