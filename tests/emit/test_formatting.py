"""Generated Python has black's format, though black is given its long lines only."""

from __future__ import annotations

import random

import black
import pytest
from black.mode import TargetVersion

from kerngen.compiler import compile_text
from kerngen.emit.broken import broken
from kerngen.emit.formatting import formatted
from kerngen.emit.writer import INDENT
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


BROKEN = [
    "def f(x: Vector[f32], y: tuple[int, ...], *, eps: float = 1e-05) -> Vector[f32]:",
    "def name_of_a_function(only: Matrix[f32]) -> tuple[int, int]:",
    'NAME = FILES.kernel("a, (b", f_reference, Uniform, structs=(A, B), hosts=hosts)',
    'FIELDS = (Field("a", f32, 0), Field("b", u32, 4), Field("c", matrix(2, 3), 8))',
    'DTYPE = np.dtype([("a", "<f4"), ("b", "<u4"), ("c", "<f4", (2, 3))])',
    "NAME = call_of_something_with_a_name()",
]


@pytest.mark.parametrize("code", BROKEN)
def test_what_one_bracket_breaks(code: str) -> None:
    """Of any width that black has nothing else to do for."""
    body = f"\n{INDENT}pass\n" if code.endswith(":") else "\n"
    widths = range(24, len(code), 5)
    found = {width: broken(code, width) for width in widths}
    assert any(found.values()) or code == BROKEN[-1]
    for width, lines in found.items():
        mode = black.Mode({TargetVersion.PY311}, width)
        want = black.format_str(code + body, mode=mode).removesuffix(body[1:])
        assert lines is None or [*lines] == want.splitlines(), width


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
