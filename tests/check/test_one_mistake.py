"""One mistake in a right program is one diagnostic: what follows from it is not told."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.check import check
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.text import Source
from kerngen.syntax.parser import read
from tests.budget import examples

from .programs import PROGRAMS, TOKEN

SOLID = [
    [n for n, token in enumerate(tokens) if token.strip() and token[:2] != "//"]
    for tokens in map(TOKEN.findall, PROGRAMS)
]


def faults_of(text: str) -> tuple[Diagnostic, ...]:
    source = Source("mistake.kern", text)
    try:
        check(read(source), source)
    except CompileError as error:
        return error.diagnostics
    return ()


@st.composite
def places(draw: st.DrawFn, wanted: str = "") -> tuple[list[str], int]:
    """The tokens of a right program, and the place of one, of those wanted if any."""
    number = draw(st.integers(0, len(PROGRAMS) - 1))
    tokens = TOKEN.findall(PROGRAMS[number])
    found = [n for n in SOLID[number] if not wanted or tokens[n] in wanted]
    return tokens, draw(st.sampled_from(found))


@settings(max_examples=examples(150), deadline=None)
@given(places())
def test_a_stray_character_is_one_fault(place: tuple[list[str], int]) -> None:
    tokens, at = place
    before, after = "".join(tokens[:at]), "".join(tokens[at:])
    (fault,) = faults_of(f"{before} $ {after}")
    assert fault.code == "KG0102"
    assert fault.span.text == "$"


@settings(max_examples=examples(100), deadline=None)
@given(places(";)]{}"))
def test_a_missing_sign_is_one_fault(place: tuple[list[str], int]) -> None:
    tokens, at = place
    tokens[at] = ""
    assert len(faults_of("".join(tokens))) == 1


def test_what_was_passed_over_may_be_what_is_missing() -> None:
    text = """
        const SCALE = 2.0;
        fn twice(x: f32) { x + x }
        kernel k(x: f32[n]) -> y: f32[n], z: f32[n] {
            let t[i] = x[i] ** 2.0;
            y[i] = sum[j] t[j] * twice(x[i]) * SCALE;
            z[i] == y[i];
        }
        schedule l { map }
        kernel l(x: f32[n] -> y: f32[n] { y[i] = x[i]; }
    """
    codes = [fault.code for fault in faults_of(text)]
    assert codes == ["KG0121", "KG0101", "KG0114", "KG0110", "KG0101"]


def test_what_is_wrong_beside_a_gap_is_reported() -> None:
    text = """
        kernel k(x: f32[n]) -> y: f32[n], z: f32[n], w: f32[n] {
            let t[i] = x[i] ** 2.0;
            y[i] = t[i] + other;
            z[i] = x[j];
        }
        kernel l(x: f32[n]) -> t: f32[n] { let y = 1.0; }
    """
    faults = [(f.code, f.span.text) for f in faults_of(text)]
    assert faults == [
        ("KG0504", "w"),
        ("KG0114", "**"),
        ("KG0201", "other"),
        ("KG0401", "j"),
        ("KG0504", "t"),
    ]


def test_a_require_with_a_mistake_may_be_what_proves_a_read() -> None:
    text = """
        kernel k(x: f32[m], y: f32[n]) -> z: f32[n] {
            require n $ <= m;
            z[i] = y[i] * x[i];
        }
        kernel l(x: f32[m], y: f32[n]) -> z: f32[n] { z[i] = y[i] * x[i]; }
    """
    assert [(f.code, f.span.text) for f in faults_of(text)] == [
        ("KG0102", "$"),
        ("KG0404", "i"),
    ]


def test_a_name_that_a_gap_only_reads_is_reported() -> None:
    text = """
        kernel k(x: f32[n]) -> y: f32[n] {
            let t[i] = lenght * x[i] ** 2.0;
            y[i] = t[i] + lenght;
        }
    """
    assert [(f.code, f.span.text) for f in faults_of(text)] == [
        ("KG0114", "**"),
        ("KG0201", "lenght"),
    ]


def test_a_gap_may_write_what_the_parser_did_not_come_to() -> None:
    text = """
        kernel k(x: f32[n]) -> y: f32[n], z: f32[n] {
            y[i] = (x[i]
            z[i] = 2.0 * x[i];
        }
        kernel l(x: f32[n]) -> y: f32[n] { return x; }
        kernel m(x: f32[n]) -> y: f32[n] { let = 2.0; y[i] = t; }
    """
    assert len(faults_of(text)) == 3


def test_a_constant_that_a_gap_declares_may_be_in_a_left_side() -> None:
    text = """
        kernel k(x: f32[n], mut y: f32[m]) {
            let first = 2
            let last = 3;
            y[g - first] = x[g];
        }
    """
    assert [fault.code for fault in faults_of(text)] == ["KG0111"]
