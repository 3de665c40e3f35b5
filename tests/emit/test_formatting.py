"""Generated Python has black's format, though black is given its long lines only."""

from __future__ import annotations

import random

import black
import pytest

from kerngen.compiler import compile_text
from kerngen.emit.formatting import formatted
from kerngen.source.diagnostic import CompileError
from tests.emit.sources import ATTACKS, HARMLESS
from tests.programs.programs import CHOICES, program_of

FEW = range(4)
MANY = range(len(FEW), 400)

COPY = "kernel {name}({x}: f32[{n}]) -> {y}: f32[{n}] {{ {y}[i] = {x}[i]; }}"
LONG = "k" * 90
LONG_NAMES = [
    COPY.format(**({"name": "k", "x": "x", "y": "y", "n": "n"} | {part: LONG}))
    for part in ("name", "x", "y", "n")
]
ONE_OF_EACH = """
    struct One { a: f32 }
    kernel k(x: One[n], s: f32) -> y: f32[] { host twice = 2.0e30 * s; y = sum[i] x[i].a * twice; }
"""
NESTED = (
    "kernel k(x: f32[n]) -> y: f32[n] { y[i] = "
    + "".join(f"if x[i] > {limit}.0 {{ {limit}.5 }} else {{ " for limit in range(20))
    + "0.0"
    + "}" * 20
    + "; }"
)
DOCUMENTED = [HARMLESS.format(doc=doc) for doc in (*ATTACKS, '"""""five', 'six""""""')]


def assert_is_blacks(text: str) -> None:
    printed = compile_text(text, "a.kern", formatted=False).binding
    assert formatted(printed) == black.format_str(printed, mode=black.Mode())


@pytest.mark.parametrize("text", [*LONG_NAMES, NESTED, ONE_OF_EACH])
def test_whatever_does_not_fit(text: str) -> None:
    assert_is_blacks(text)


@pytest.mark.parametrize("text", DOCUMENTED)
def test_whatever_the_documentation_says(text: str) -> None:
    assert_is_blacks(text)


def assert_random_is_blacks(number: int) -> None:
    program = program_of(random.Random(number).randbytes(CHOICES))
    try:
        assert_is_blacks(program.source)
    except CompileError:  # its schedules fit no stage
        assert_is_blacks(program.text)


@pytest.mark.parametrize("number", FEW)
def test_random_programs(number: int) -> None:
    assert_random_is_blacks(number)


@pytest.mark.nightly
@pytest.mark.parametrize("number", MANY)
def test_many_random_programs(number: int) -> None:
    assert_random_is_blacks(number)
