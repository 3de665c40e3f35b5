"""Programs of every kind, laid out by chance: what they say, and all comments, survive."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kerngen.check.files.checker import Checker
from kerngen.format.form import formatted
from kerngen.gradient.item import derive_item
from kerngen.ir.dump import dump_module
from kerngen.source.text import Source
from tests.budget import tonight
from tests.compile import DSL, library_of
from tests.programs.programs import CHOICES, program_of
from tests.project.tree import ROOT

from .scramble import comments, scrambled, tokens

STANDARD = sorted((ROOT / "dsl").glob("*.kern"))
CASES = sorted((ROOT / "tests" / "cases" / "accept").glob("*.kern"))
FILE = "a.kern"
FEW = 3
MANY = 2000


def form(text: str) -> str:
    return formatted(Source(FILE, text))


def meaning(text: str) -> list[str]:
    """The typed IR, and how the user is quoted in what is generated."""
    library = library_of({FILE: text}, beside=DSL)
    module = Checker(library, derive_item).module(FILE)
    quotes = [kernel.signature for kernel in module.kernels]
    quotes += [step.text for kernel in module.kernels for step in kernel.body]
    return [dump_module(module), *quotes]


def check(text: str, seed: int) -> None:
    """Hold a program, and layouts of it by chance, to what formatting promises."""
    plain = scrambled(text, seed, remarks=False, empty_lines=False)
    other = scrambled(text, seed + 1, remarks=False, empty_lines=False)
    assert form(plain) == form(other), "there is one form"
    remarked = scrambled(text, seed, remarks=True, empty_lines=True)
    for given in (text, remarked):
        after = form(given)
        assert form(after) == after, "formatting twice is formatting once"
        assert comments(after) == comments(given)
        assert tokens(after) == tokens(given)
        assert all(line == line.rstrip() for line in after.split("\n"))
        assert "\n\n\n" not in after
    assert meaning(form(remarked)) == meaning(form(text))
    assert meaning(form(text))[0] == meaning(text)[0]


def check_random(first: int, count: int) -> None:
    for seed in range(first, first + count):
        check(program_of(Random(seed).randbytes(CHOICES)).source, seed)


@pytest.mark.parametrize("file", CASES[::3], ids=lambda file: file.stem)
def test_files(file: Path) -> None:
    check(file.read_text("utf-8"), len(file.stem))


@pytest.mark.nightly
@pytest.mark.parametrize("file", [*STANDARD, *CASES], ids=lambda file: file.stem)
def test_all_files(file: Path) -> None:
    for seed in range(5):
        check(file.read_text("utf-8"), seed)


def test_random_programs() -> None:
    check_random(0, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("part", tonight(range(10)))
def test_many_random_programs(part: int) -> None:
    check_random(1000 + part * MANY // 10, MANY // 10)
