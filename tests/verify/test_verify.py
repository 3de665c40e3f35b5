"""`kerngen verify` finds planted faults, makes them small, and repeats them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from click import testing
from click.testing import CliRunner
from rich.console import Console

from kerngen.cli import main
from kerngen.compiler import CompiledModule, Compiler
from kerngen.runtime import launch
from kerngen.verify import campaign
from kerngen.verify.campaign import OVERLAPS, Result, Verdict
from kerngen.verify.fault import Tally
from kerngen.verify.repeat import kernel
from kerngen.verify.report import table_of
from tests.docs.blocks import blocks_of
from tests.numeric.test_guards import FAULTS, FAULTY, Fault
from tests.project.tree import ROOT

Plant: TypeAlias = Callable[[Fault], None]

PAGE = ROOT / "docs" / "verify.md"

QUICK = ("an element left out",)
"""Faults that are planted in every run of the tests."""


def nothing(*_: object) -> None:
    """Do and return nothing."""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of kernels without faults, in the working directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "faulty.kern"
    file.write_text(FAULTY, encoding="utf-8")
    return file


@pytest.fixture
def no_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make no large calls: they take a second each."""
    monkeypatch.setattr(campaign, "large_call", nothing)


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


def run(*arguments: str) -> testing.Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def found(*arguments: str) -> list[dict[str, Any]]:
    """The results, as JSON has them."""
    return list(json.loads(run(*arguments, "--json").stdout)["results"])


@pytest.mark.parametrize(
    ("kernel", "examples"),
    [("scaled", "2"), pytest.param("", "20", marks=pytest.mark.nightly)],
)
def test_kernels_without_fault_hold(source: Path, kernel: str, examples: str) -> None:
    rows = found(source.name, "--kernel", kernel, "--examples", examples)
    assert {row["verdict"] for row in rows} == {"held"}
    assert {
        row["calls"] >= int(examples) or row["strategy"] == OVERLAPS for row in rows
    }
    assert any(row["large"] for row in rows) == (kernel == "")


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


@pytest.mark.nightly
def test_a_fault_of_large_calls_is_found(source: Path, plant: Plant) -> None:
    plant(Fault("", "copy.map.edge", "workgroup.y * grid.x + ", "", ""))
    rows = found(source.name, "--kernel", "copy", "--schedule", "edge")
    (row,) = (row for row in rows if row["verdict"] == "wrong")
    assert row["counterexample"]["sizes"]["n"] > 65535 * 256
    code = row["counterexample"]["code"]
    assert len(code) < 3000
    with pytest.raises(AssertionError):
        exec(code, {})


@pytest.mark.usefixtures("no_large")
def test_overlaps_that_are_not_refused_are_found(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "check_overlap", nothing)
    rows = found(source.name, "--kernel", "copy", "--examples", "1")
    (row,) = (row for row in rows if row["verdict"] == "wrong")
    assert row["strategy"] == OVERLAPS
    assert row["counterexample"]["text"].startswith("'x' and 'y' are one tensor")
    with pytest.raises(Exception, match="one tensor"):
        exec(row["counterexample"]["code"], {})


@pytest.mark.usefixtures("no_large")
def test_the_same_seed_makes_the_same_calls_up(source: Path) -> None:
    words = source.name, "--kernel", "narrow", "--examples", "2"
    first, again, other = (found(*words, "--seed", seed) for seed in ("0", "0", "1"))
    assert first == again != other


def test_a_wrong_program_is_no_json(source: Path) -> None:
    """Its faults go where a reader of JSON does not look."""
    source.write_text("kernel", encoding="utf-8")
    result = run(source.name, "--json")
    assert (result.stdout, result.exit_code) == ("", 1)
    assert "error[KG0101]" in result.stderr


def test_a_narrow_table_keeps_names_whole() -> None:
    """They are what is given to `--kernel` and `--schedule`."""
    name = "gemm_tile32x64x16_micro8x4"
    subject: Any = None
    row = Result(
        "a.kern", name, "y", name, "edge", Verdict.HELD, Tally(cases=1), subject
    )
    console = Console(width=60)
    with console.capture() as printed:
        console.print(table_of([row]))
    cells = [line.split("  ") for line in printed.get().splitlines()[1:]]
    assert "…" not in printed.get()
    assert "".join(cell[0].strip() for cell in cells).startswith(name)


@pytest.mark.usefixtures("no_large")
def test_names_of_users_hide_none_of_the_program(source: Path, plant: Plant) -> None:
    text = "kernel f(np: f32[n], np_: f32[n], float: f32) -> y: f32[n] { "
    body = "y[i] = 3.0 * np[i] + np_[i] + float; }\n"
    source.write_text(text + body, encoding="utf-8")
    plant(Fault("", "f.map.edge", "3.0 * ", "2.0 * ", ""))
    (row,) = found(source.name, "--schedule", "edge", "--examples", "3")
    with pytest.raises(AssertionError):
        exec(row["counterexample"]["code"], {})


def test_a_schedule_that_is_not_there_is_told(source: Path) -> None:
    """As when a build has other schedules by now: nothing else is run in its place."""
    with (
        pytest.raises(ValueError, match="no 'y gone': there are y map aligned, "),
        kernel(source.name, "copy", "y gone"),
    ):
        pass


@pytest.mark.nightly
@pytest.mark.usefixtures("no_large")
@pytest.mark.parametrize("file", sorted((ROOT / "dsl").glob("*.kern")), ids=str)
def test_the_standard_kernels_hold(file: Path) -> None:
    rows = found(str(file), "--examples", "3")
    assert [row for row in rows if row["verdict"] not in {"held", "not run"}] == []


def test_the_page_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = {each.language: each.text for each in blocks_of(PAGE)}
    Path("kernels.kern").write_text(blocks["rust"], encoding="utf-8")
    plant(Fault("", "scale.map.edge", "0.3 * ", "0.0 * ", ""))
    assert blocks["text"].rstrip() in run("kernels.kern").output
