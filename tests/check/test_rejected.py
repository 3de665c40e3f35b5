"""Wrong and doubtful programs with their diagnostics in full: `reject/<name>.kern` and `.err`.

One of several files is a folder, in which `main.kern` is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kerngen.bind import faults as wgsl_faults
from kerngen.catalogue import DIAGNOSTICS
from kerngen.schedule import faults as schedule_faults
from kerngen.source import faults_build, reading
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.render import render
from kerngen.syntax import faults, faults_foreign

from .libraries import cases_in, module_of, name_of

FOLDER = Path(__file__).parent.parent / "cases" / "reject"
CASES = cases_in(FOLDER)

_WRONG_ARTICLE = re.compile(r"\b([Aa] '([aeo]|[fi]\d|i[^\d])|[Aa]n '(u32|[^aeiouf']))")

# Their wrong programs are with the tests of the stages that find them.
ELSEWHERE = {
    m.__name__
    for m in (
        reading,
        faults_build,
        faults,
        faults_foreign,
        schedule_faults,
        wgsl_faults,
    )
}


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


def test_every_diagnostic_of_the_checker_has_a_case() -> None:
    seen = {type(fault) for case in CASES for fault in diagnostics_of(case)}
    own = {kind for kind in DIAGNOSTICS if kind.__module__ not in ELSEWHERE}
    assert {kind.__name__ for kind in own - seen} == set()


def test_codes_are_distinct_and_in_their_hundreds() -> None:
    codes = [kind.CODE for kind in DIAGNOSTICS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"KG\d{4}", code) for code in codes)


def test_wording_follows_the_rules() -> None:
    for case in CASES:
        for fault in diagnostics_of(case):
            assert fault.message[0].isupper() or fault.message[0] in "'-0123456789"
            assert fault.message.endswith(".")
            assert not fault.help or fault.help.endswith((".", "?"))
            assert not fault.label.endswith(".")
            assert not _WRONG_ARTICLE.search(fault.message + fault.help + fault.label)
            assert "`" not in fault.message + fault.help + fault.label
            assert "{" not in fault.message or "'" in fault.message
