"""Verification as a function of plain data: it pickles, and reports are merged by seed."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis.configuration import storage_directory
from rich.console import Console

import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.verify import merged, verify
from kerngen.verify.farm import VerifyOptions
from kerngen.verify.notes import notes_elsewhere
from kerngen.verify.report import print_data

TEXT = "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = 0.3 * x[i]; }"


def test_a_report_is_plain_data() -> None:
    report = verify(TEXT, examples=2, schedule="aligned", adapter="software")
    assert json.loads(json.dumps(report)) == report
    assert report["seed"] == 0
    assert pickle.loads(pickle.dumps(verify)) is verify
    (row,) = report["results"]
    assert (row["kernel"], row["verdict"], row["calls"]) == ("scale", "held", 2)
    with pytest.raises(gpu.UnknownNameError, match="no kernel 'scales'"):
        verify(TEXT, "scales")
    with pytest.raises(gpu.UnknownNameError, match="no schedule has 'gemm'"):
        verify(TEXT, schedule="gemm", adapter="software")
    with pytest.raises(gpu.NoAdapter, match="no adapter to verify kernels on"):
        verify(TEXT, adapter="reference")


def test_the_function_and_the_command_have_the_same_defaults() -> None:
    options = {option.name: option.default for option in main.commands["verify"].params}
    signature = inspect.signature(verify).parameters
    for name in ("seed", "examples", "budget"):
        assert signature[name].default == options[name]
        assert getattr(VerifyOptions(), name) == options[name]
    shown = CliRunner().invoke(main, ["verify", "--help"]).stdout
    assert re.search(r"--budget.*\[default: 120;", shown, re.DOTALL)


def a_report(seed: int, verdict: str, calls: int, worst: float) -> dict[str, Any]:
    row = {
        "file": "a.kern",
        "kernel": "scale",
        "stage": "y",
        "strategy": "map",
        "variant": "edge",
        "verdict": verdict,
        "calls": calls,
        "elements": 10 * calls,
        "known": 9 * calls,
        "worst": worst,
        "large": {"n": 7} if seed == 2 else {},
        "why": "said" if verdict == "wrong" else "",
        "hazards": [{"line": seed, "kind": "overflow", "text": "x"}],
    }
    return {"adapter": "a", "seed": seed, "finished": seed < 3, "results": [row]}


@pytest.mark.parametrize("sizes", [{}, {"m": 2, "n": 3}])
def test_what_is_wrong_is_printed_with_its_sizes(sizes: dict[str, int]) -> None:
    found = {"sizes": sizes, "text": "it is 1", "steady": True, "code": "repeat()"}
    report = a_report(1, "wrong", 2, 1.5)
    report["results"][0]["counterexample"] = found
    console = Console(width=120)
    with console.capture() as printed:
        print_data(console, report)
    text = printed.get()
    assert ("a.kern: scale, y map edge, with m = 2, n = 3" in text) == bool(sizes)
    assert all(each in text for each in ("it is 1", "repeat()", "a.kern:1: scale: x"))


def test_reports_are_merged_by_seed() -> None:
    """A wrong one counts, and one that comes twice, as from a task run again, once."""
    reports = [
        a_report(2, "wrong", 5, 3.0),
        a_report(1, "held", 2, 0.5),
        a_report(3, "not run", 0, 0.0),
        a_report(2, "wrong", 5, 3.0),
    ]
    whole = merged(reports)
    assert (whole["seeds"], whole["finished"], whole["adapter"]) == (
        [1, 2, 3],
        False,
        "a",
    )
    (row,) = whole["results"]
    assert (row["verdict"], row["why"]) == ("wrong", "said")
    assert (row["calls"], row["elements"], row["known"]) == (7, 70, 63)
    assert (row["worst"], row["large"]) == (3.0, {"n": 7})
    assert [each["line"] for each in row["hazards"]] == [1, 2, 3]
    assert merged(list(reversed(reports))) == whole
    later = a_report(4, "wrong", 1, 1.0)
    later["results"][0]["why"] = "said later"
    assert merged([later, reports[0]])["results"][0]["why"] == "said"
    with pytest.raises(gpu.ArgumentError, match="no reports"):
        merged([])


def test_reports_of_two_adapters_are_counted_apart() -> None:
    """Of one seed, too; a hazard that several have is told once."""
    one, other, next_ = (a_report(n, "held", 2 + n, 0.5) for n in (1, 1, 2))
    other["adapter"] = "b"
    whole = merged([next_, other, one])
    assert (whole["adapter"], whole["seed"], whole["seeds"]) == ("a, b", 1, [1, 2])
    (row,) = whole["results"]
    assert row["calls"] == 3 + 3 + 4
    assert [each["line"] for each in row["hazards"]] == [1, 2]


def test_notes_of_hypothesis_are_kept_elsewhere_for_a_while() -> None:
    def folder() -> Path:
        return Path(str(storage_directory("examples").path))

    before = folder()
    with notes_elsewhere():
        inside = folder()
        inside.mkdir()
    assert before == folder() != inside
    assert Path(gettempdir()) in inside.parents
    assert not inside.exists()


@pytest.mark.nightly
def test_processes(tmp_path: Any) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(verify, TEXT, seed=seed, examples=3) for seed in (0, 1)]
        whole = merged([task.result() for task in tasks])
    assert whole["results"][0]["calls"] == 6
    file = tmp_path / "kernels.kern"
    file.write_text(TEXT)
    done = CliRunner().invoke(
        main, ["verify", str(file), "--jobs", "2", "--examples", "3", "--json"]
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["seeds"] == [0, 1]
    assert [row["calls"] for row in report["results"]] == [
        row["calls"] for row in whole["results"]
    ]
