"""Sources and their canonical form: `cases/<name>.kern` has both, with a line between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerngen.format.form import formatted
from kerngen.source.text import Source

CASES = sorted((Path(__file__).parent / "cases").glob("*.kern"))
BETWEEN = "// ======== formatted ========\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path, golden: Callable[[Path, str], None]) -> None:
    given = case.read_text("utf-8").split(BETWEEN)[0]
    form = formatted(Source("case.kern", given))
    golden(case, given + BETWEEN + form)
    assert formatted(Source("case.kern", form)) == form


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ""),
        (" \n\n\t", ""),
        ("// alone", "// alone\n"),
        ("\n\n//! about\n\n", "//! about\n"),
        ("const A: f32 = 1.0; // why", "const A: f32 = 1.0; // why\n"),
        (
            "const A:u32=1;\r\nconst B:u32=2;\n",
            "const A: u32 = 1;\r\nconst B: u32 = 2;\r\n",
        ),
        (
            "const A:u32=1;\nconst B:u32=2;\r\n",
            "const A: u32 = 1;\nconst B: u32 = 2;\n",
        ),
        ("use 'a';".replace("'", '"'), 'use "a";\n'),
    ],
)
def test_small(given: str, expected: str) -> None:
    assert formatted(Source("a.kern", given)) == expected


def test_a_chain_as_long_as_may_be_and_one_as_deep() -> None:
    for value in (
        " + ".join(["x[i]"] * 200),
        "(" * 100 + "x[i]" + ")" * 100,
        "if x[i] < 1.0 { 1.0 } else " * 60 + "{ 2.0 }",
    ):
        text = f"kernel f(x: f32[n]) -> y: f32[n] {{ y[i] = {value}; }}"
        form = formatted(Source("a.kern", text))
        assert formatted(Source("a.kern", form)) == form
