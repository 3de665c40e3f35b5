"""`kerngen verify` finds planted faults, makes them small, and repeats them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner, Result

from kerngen.cli import main
from kerngen.compiler import CompiledModule, Compiler
from tests.docs.blocks import blocks_of
from tests.numeric.test_guards import FAULTS, FAULTY, Fault
from tests.project.tree import ROOT

Plant: TypeAlias = Callable[[Fault], None]

PAGE = ROOT / "docs" / "verify.md"

QUICK = (
    "an element left out",
    "a load past the end",
    "a misplaced part",
)
"""Faults that are planted in every run of the tests."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of kernels without faults, in the working directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "faulty.kern"
    file.write_text(FAULTY, encoding="utf-8")
    return file


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """What makes the compiler print a shader with a fault in it."""

    def plant(fault: Fault) -> None:
        compile_file = Compiler.compile

        def faulty(self: Compiler, source: str) -> CompiledModule:
            compiled = compile_file(self, source)
            files = compiled.files
            (name,) = (n for n in files if n.endswith(f".{fault.shader}.wgsl"))
            comment, blank, code = files[name].decode().partition("\n\n")
            assert code.count(fault.right) == 1
            code = code.replace(fault.right, fault.wrong)
            files = {**files, name: (comment + blank + code).encode()}
            return replace(compiled, files=files)

        monkeypatch.setattr(Compiler, "compile", faulty)

    return plant


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def found(*arguments: str) -> list[dict[str, Any]]:
    """The results, as JSON has them."""
    return list(json.loads(run(*arguments, "--json").stdout)["results"])


def test_kernels_without_fault_hold(source: Path) -> None:
    result = run(source.name, "--examples", "3")
    assert result.exit_code == 0, result.output
    assert "wrong" not in result.output


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            fault,
            id=str(fault),
            marks=() if fault.name in QUICK else pytest.mark.nightly,
        )
        for fault in FAULTS
    ],
)
def test_a_planted_fault_is_found_and_repeated(
    source: Path, plant: Plant, fault: Fault
) -> None:
    plant(fault)
    rows = found(source.name, "--kernel", fault.kernel, "--examples", "40")
    wrong = [row for row in rows if row["verdict"] == "wrong"]
    assert wrong
    for row in wrong:
        assert row["strategy"] != "NumPy reference"
        with pytest.raises(Exception, match=r"outside|wrote|assert|other bits|^$"):
            exec(row["counterexample"]["code"], {})


def test_a_counterexample_is_small(source: Path, plant: Plant) -> None:
    (fault,) = (each for each in FAULTS if each.name == "an element left out")
    plant(fault)
    (row,) = (
        row
        for row in found(source.name, "--kernel", "copy", "--schedule", "edge")
        if row["verdict"] == "wrong"
    )
    assert row["counterexample"]["sizes"] == {"n": 1}
    result = run(source.name, "--kernel", "copy", "--schedule", "edge")
    assert result.exit_code == 1
    assert (
        "wrong: faulty.kern: copy, y map edge, with n = 1\n  y[0] is " in result.output
    )


def test_the_page_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = {each.language: each.text for each in blocks_of(PAGE)}
    Path("kernels.kern").write_text(blocks["rust"], encoding="utf-8")
    plant(Fault("", "scale.map.edge", "0.3 * ", "0.0 * ", ""))
    assert blocks["text"].rstrip() in run("kernels.kern").output
