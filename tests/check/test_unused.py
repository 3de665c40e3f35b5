"""What is introduced and never used is told, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerngen.check.files.unused import find_unused, words_of_guards
from kerngen.source.text import Source
from kerngen.syntax.parser import parse

DSL = Path(__file__).parents[2] / "dsl"

PROGRAM = """\
fn f(x: f32, w: f32) -> f32 { let t = 2.0; x }
kernel k(
    x: f32[n], z: f32[n], fixed: f32[3], mut a: f32[n], like: f32[m], alpha: f32,
    beta: f32, count: u32,
) -> y: f32[n] {
    host h = 2.0;
    let t[i] = x[i];
    let used = beta;
    y[i] = f(x[i], used) * f32(m) + a[i];
}
schedule k when count > 3 { generic }
"""


def unused(text: str) -> list[str]:
    program = parse(Source("unused.kern", text))
    return [found.text for found in find_unused(program, words_of_guards(program))]


def test_what_nothing_reads_or_writes() -> None:
    assert unused(PROGRAM) == [
        "'w' is never read in 'f'.",
        "'t' is never read in 'f'.",
        "'z' is never read in 'k'.",
        "'fixed' is never read in 'k'.",
        "'a' is 'mut', but 'k' never writes it.",
        "'alpha' is never read in 'k'.",
        "'h' is never read in 'k'.",
        "'t' is never read in 'k'.",
    ]


@pytest.mark.parametrize("file", sorted(DSL.glob("*.kern")), ids=lambda p: p.stem)
def test_the_standard_kernels_use_all_that_they_have(file: Path) -> None:
    assert unused(file.read_text("utf-8")) == []
