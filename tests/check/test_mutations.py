"""Programs spoilt at random: diagnostics or valid IR, and never anything else."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerngen.check import check
from kerngen.ir.verify import verify_module
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.render import render
from kerngen.source.text import Source
from kerngen.syntax.parser import parse

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = [
    file.read_text("utf-8")
    for folder in (ROOT / "tests" / "cases" / "accept", ROOT / "dsl")
    for file in sorted(folder.glob("*.kern"))
]
TOKEN = re.compile(r"//[^\n]*|\w+(?:\.\d+)?|\s+|<<|>>|->|[-+*/=!<>]=|.", re.DOTALL)
WORDS = [word for text in PROGRAMS for word in TOKEN.findall(text) if word.strip()]


@st.composite
def spoilt_programs(draw: st.DrawFn) -> str:
    """Replace, drop, repeat or swap a few tokens of a right program."""
    tokens = TOKEN.findall(draw(st.sampled_from(PROGRAMS)))
    solid = [
        n for n, token in enumerate(tokens) if re.match(r"[\w\[\]().<>*/+-]", token)
    ]
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
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(text=spoilt_programs())
def test_spoilt_programs_give_diagnostics_or_valid_ir(text: str) -> None:
    source = Source("spoilt.kern", text)
    diagnostics: tuple[Diagnostic, ...] = ()
    faults: list[str] = []
    try:
        faults = verify_module(check(parse(source), source))
    except CompileError as error:
        diagnostics = error.diagnostics
    assert faults == []
    assert render(diagnostics).count("error[KG") == len(diagnostics)
