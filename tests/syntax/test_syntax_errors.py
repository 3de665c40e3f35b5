"""Every syntax error, rendered in full: `cases/<name>.kern` gives `cases/<name>.err`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.reading import read_source
from kerngen.source.render import render
from kerngen.syntax.parser import parse
from tests.wording import check_wording

from .parsing import codes_of, faults_of

CASES = sorted((Path(__file__).parent / "cases").glob("*.kern"))


def diagnostics_of(case: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        parse(read_source(case, case.name))
    return caught.value.diagnostics


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_rendered_errors(case: Path, golden: Callable[[Path, str], None]) -> None:
    golden(case.with_suffix(".err"), render(diagnostics_of(case)))


def test_no_golden_is_left_over() -> None:
    goldens = {file.stem for file in CASES[0].parent.glob("*.err")}
    assert goldens == {case.stem for case in CASES}


def test_headlines_and_hints_are_sentences() -> None:
    for case in CASES:
        for fault in diagnostics_of(case):
            check_wording(fault)


@pytest.mark.parametrize(
    "character",
    [
        *"\0\x07\x0b\x0c\x1b\x7f\x85\u200b\u200e\u2028\u2029\u202e\u2066\ufeff\ud800",
        "\r",
    ],
)
def test_characters_that_are_refused_everywhere(character: str) -> None:
    in_comment = f"// a {character} b\n"
    assert codes_of(in_comment) == ["KG0103"]
    assert codes_of(f"const A: f32 = {character} 1.0;") == ["KG0103"]


def test_an_error_at_the_end_points_behind_the_last_token() -> None:
    (fault,) = faults_of("kernel k() { // open\n\n\n")
    assert (fault.span.start, fault.span.end) == (12, 12)
    assert fault.message == "Expected '}' or a statement, found the end of the file."


def test_correct_items_after_a_faulty_one_are_left_alone() -> None:
    assert codes_of("kernel a( {}\n\nkernel b() {}\nfn f() -> f32 { 1.0 }") == [
        "KG0101"
    ]


def test_a_long_token_is_shortened() -> None:
    (fault,) = faults_of(f"kernel k() {{ a {'b' * 100} }}")
    assert f"'{'b' * 37}...'" in fault.message


def test_a_file_may_end_where_parsing_would_go_on() -> None:
    assert codes_of("kernel k() { /// a doc\n") == ["KG0105", "KG0101"]
