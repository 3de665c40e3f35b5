"""Programs spoilt at random: diagnostics or valid IR, and never anything else."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerngen.check import check
from kerngen.gradient.item import derive_item
from kerngen.ir.verify import verify_module
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.render import render
from kerngen.source.text import Source
from kerngen.syntax.parser import read
from tests.budget import examples

from .programs import PROGRAMS, TOKEN

WORDS = [word for text in PROGRAMS for word in TOKEN.findall(text) if word.strip()]


@st.composite
def spoilt_programs(draw: st.DrawFn) -> str:
    """Replace, drop, repeat or swap a few tokens of a right program."""
    tokens = TOKEN.findall(draw(st.sampled_from(PROGRAMS)))
    solid = [n for n, token in enumerate(tokens) if token.strip()]
    for _ in range(draw(st.integers(1, 3))):
        place, other = draw(st.sampled_from(solid)), draw(st.sampled_from(solid))
        match draw(st.integers(0, 3)):
            case 0:
                tokens[place] = draw(st.sampled_from(WORDS))
            case 1:
                tokens[place] = ""
            case 2:
                tokens[place] = tokens[other]
            case _:
                tokens[place], tokens[other] = tokens[other], tokens[place]
    return "".join(tokens)


@settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(text=spoilt_programs())
def test_spoilt_programs_give_diagnostics_or_valid_ir(text: str) -> None:
    source = Source("spoilt.kern", text)
    diagnostics: tuple[Diagnostic, ...] = ()
    faults: list[str] = []
    try:
        faults = verify_module(check(read(source), source, derive_item))
    except CompileError as error:
        diagnostics = error.diagnostics
    assert faults == []
    for diagnostic in diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    assert render(diagnostics).count("error[KG") == len(diagnostics)
