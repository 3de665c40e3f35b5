"""`kerngen verify` finds planted faults, makes them small, and repeats them."""

from __future__ import annotations

import json
import re
import signal
import time
from base64 import b85decode
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from zlib import decompress

import numpy as np
import pytest
from click import testing
from click.testing import CliRunner
from numpy.typing import NDArray
from rich.console import Console

import kerngen
import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.cli.verify import asked
from kerngen.compiler import CompiledModule, Compiler
from kerngen.ir.memory import Leaf
from kerngen.ir.types import Scalar
from kerngen.runtime.calls import launch
from kerngen.verify import campaign, trial
from kerngen.verify.calls.canned_calls import PERIOD
from kerngen.verify.campaign import Campaign
from kerngen.verify.effort import SPENT, Effort, StopError, limited
from kerngen.verify.fault import Fault as Wrong
from kerngen.verify.fault import Tally, WrongError
from kerngen.verify.repeat import OutsideError, kernel
from kerngen.verify.report import table_of
from kerngen.verify.result import OVERLAPS, REFERENCE, WayResult
from kerngen.verify.snippet import array_text
from kerngen.verify.trial import Given, Trial
from tests.compile import checked
from tests.docs.blocks import blocks_of
from tests.numeric.guarded_ways import FAULTS, FAULTY, Fault
from tests.planting import file_of, planted
from tests.project.tree import ROOT
from tests.verify.patches import nothing, raising

Plant: TypeAlias = Callable[[Fault], None]

PAGE = ROOT / "docs" / "verify.md"

SERIAL_COPY = """\
kernel copy(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }
schedule copy { generic }
"""
"""A kernel with 128 elements per workgroup: large calls have more than 65,535 workgroups."""

QUICK = ("an element left out",)
"""Faults that are planted in every run of the tests."""


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
    monkeypatch.setattr(campaign, "large_sizes", nothing)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """What makes the compiler print a shader with a fault in it."""

    def plant(fault: Fault) -> None:
        compile_file = Compiler.compile

        def faulty(self: Compiler, source: str) -> CompiledModule:
            compiled = compile_file(self, source)
            files = compiled.files
            names = [n for n in files if n.endswith(f"/{file_of(fault.shader)}")]
            if source.endswith("t.kern") and not names:
                return compiled
            (name,) = names
            text = files[name].decode()
            text = planted(text, fault.shader, fault.right, fault.wrong)
            return replace(compiled, files={**files, name: text.encode()})

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


def test_a_store_of_a_call_without_results_is_seen_at_once(
    source: Path, plant: Plant
) -> None:
    """Nothing is read of such a call, so that its stores might come later."""
    (fault,) = (each for each in FAULTS if each.name == "past a temporary")
    plant(fault)
    with kernel(source.name, fault.kernel, "t reduce edge") as call:
        for _ in range(2):
            with pytest.raises(OutsideError, match="byte 260 of a buffer of 260"):
                call(np.zeros((0, 65), np.float32))


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


def test_a_large_call_is_made_where_the_small_ones_hold(
    source: Path, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each strategy and variant; here it is not so large."""

    def sizes(_: Trial) -> tuple[tuple[str, int], ...]:
        return (("n", 300),)

    def held(self: Trial, _: Given) -> None:
        self.tally.cases += 1

    def hour(*_: object) -> float:
        return 3600.0

    monkeypatch.setattr(campaign, "large_sizes", sizes)
    words = f"{source.name}:copy", "--schedule", "edge", "--examples", "1"
    (row,) = found(*words)
    assert (row["verdict"], row["large"]) == ("held", {"n": 300})
    with monkeypatch.context() as slow:
        slow.setattr(campaign, "expected_seconds", hour)
        (row,) = found(*words, "--budget", "60")
        assert (row["verdict"], row["large"]) == ("held", {})
        assert row["why"] == "but no large call: the budget was spent"
    (fault,) = (each for each in FAULTS if each.name == "an element left out")
    plant(fault)
    monkeypatch.setattr(Trial, "check", held)
    (row,) = found(*words)
    assert row["counterexample"]["text"].startswith("y[299] is ")
    assert row["counterexample"]["sizes"] == {"n": 300}


@pytest.mark.nightly
def test_a_fault_of_large_calls_is_found(source: Path, plant: Plant) -> None:
    source.write_text(SERIAL_COPY, encoding="utf-8")
    plant(Fault("", "copy.generic", "workgroup.y * grid.x + ", "", ""))
    rows = found(source.name, "--schedule", "generic")
    (row,) = (row for row in rows if row["verdict"] == "wrong")
    assert row["counterexample"]["sizes"]["n"] > 65535 * 128
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
    name = "gemm_tile32x32x32_micro4x4"
    subject: Any = None
    row = WayResult("a.kern", name, "y", name, "edge", subject, tally=Tally(cases=1))
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
    plant(Fault("", "f.map:edge", "3.0 * ", "2.0 * ", ""))
    (row,) = found(source.name, "--schedule", "edge", "--examples", "3")
    with pytest.raises(AssertionError):
        exec(row["counterexample"]["code"], {})


def test_a_call_of_the_reference_is_repeated(source: Path) -> None:
    x = np.arange(5, dtype=np.float32)
    with kernel(source.name, "copy", REFERENCE) as call:
        (y,) = call(x)
    assert y.tolist() == x.tolist()


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
    blocks = {each.language: each.text for each in reversed([*blocks_of(PAGE)])}
    Path("kernels.kern").write_text(blocks["rust"], encoding="utf-8")
    plant(Fault("", "scale.map:edge", "0.3 * ", "0.0 * ", ""))
    assert blocks["text"].rstrip() in run("kernels.kern").output


@pytest.mark.usefixtures("no_large")
def test_one_kernel_is_named_behind_its_file(source: Path) -> None:
    rows = found(f"{source.name}:copy", "--examples", "1")
    assert {row["kernel"] for row in rows} == {"copy"}
    assert [row["calls"] for row in rows if row["strategy"] == OVERLAPS] == [1]
    assert run(f"{source.name}:copi").output.endswith("Did you mean 'copy'?\n")
    assert run(f"{source.name}:copy", "--kernel", "scaled").exit_code == 2


@pytest.mark.usefixtures("no_large")
@pytest.mark.parametrize("calls", [0, 3])
def test_ctrl_c_keeps_what_was_found(
    source: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    check, made = Trial.check, count()

    def interrupted(self: Trial, given: Given) -> None:
        if next(made) == calls:
            raise KeyboardInterrupt
        check(self, given)

    monkeypatch.setattr(Trial, "check", interrupted)
    result = run(f"{source.name}:copy", "--examples", "2", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 130
    assert not data["finished"]
    assert [row["calls"] for row in data["results"]] == ([2, 1] if calls else [0])
    assert data["results"][-1]["why"].endswith("interrupted")
    assert re.search(
        r"^Interrupted: \d of 3 ways were run", result.stderr, re.MULTILINE
    )


@pytest.mark.usefixtures("no_large")
def test_a_budget_says_what_it_left_out(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [f"{source.name}:copy", "--schedule", "edge", "--examples", "3", "--json"]
    assert json.loads(run(*asked).stdout)["finished"]

    def spent(self: Effort, left: int) -> Effort:
        del left
        return replace(self, soon=0.0)

    monkeypatch.setattr(Effort, "shared", spent)
    result = run(*asked, "--budget", "60")
    data = json.loads(result.stdout)
    (row,) = data["results"]
    assert (result.exit_code, data["finished"], row["calls"]) == (0, False, 1)
    assert (row["verdict"], row["why"]) == ("held", f"but not all: {SPENT}")


def test_a_budget_says_that_there_was_no_large_call(source: Path) -> None:
    source.write_text(SERIAL_COPY, encoding="utf-8")
    asked = source.name, "--schedule", "generic", "--examples", "1"
    result = run(*asked, "--budget", "4", "--json")
    data = json.loads(result.stdout)
    assert [row["why"] for row in data["results"]] == [f"but no large call: {SPENT}"]
    assert not data["finished"]


@pytest.mark.usefixtures("no_large")
def test_a_pipe_has_progress_in_plain_lines(source: Path) -> None:
    colours = CliRunner(env={"FORCE_COLOR": "1"})
    asked = f"{source.name}:copy", "--schedule", "edge", "--examples", "1", "--json"
    result = colours.invoke(main, ["verify", *asked])
    first, second = result.stderr.splitlines()
    assert first == "Compiling the kernels ..."
    assert re.fullmatch(r"Verifying 1 of 1: copy \w+ map edge", second)
    assert json.loads(result.stdout)["finished"]


def test_progress_comes_before_anything_is_compiled(tmp_path: Path) -> None:
    file = tmp_path / "wrong.kern"
    file.write_text("kernel wrong", encoding="utf-8")
    result = run(str(file))
    assert result.exit_code == 1
    assert result.stderr.startswith("Compiling the kernels ...\nerror[")


def test_there_is_a_budget_by_default(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []

    def results(self: Campaign, chosen: object) -> list[WayResult]:
        del chosen
        left.append(self.effort.deadline - time.monotonic())
        return []

    monkeypatch.setattr(Campaign, "results", results)
    for budget in ((), ("--budget", "7"), ("--budget", "inf")):
        run(f"{source.name}:copy", *budget)
    assert 60 < left[0] <= 120
    assert left[1] <= 7
    assert left[2] == float("inf")


def test_a_call_is_repeated_among_the_files_of_its_command(tmp_path: Path) -> None:
    """Hidden files are no sources: their schedules do not count."""
    file, hidden = tmp_path / "faulty.kern", tmp_path / ".hidden" / "tuned.kern"
    file.write_text(FAULTY, encoding="utf-8")
    hidden.parent.mkdir()
    tuned = 'use "../faulty.kern";\nschedule few_nn { gemv rows(4) }\n'
    hidden.write_text(tuned, encoding="utf-8")
    with (
        pytest.raises(ValueError, match="there are c gemv_rows2 "),
        kernel(str(file), "few_nn", "gone", sources=str(tmp_path)),
    ):
        pass


@pytest.mark.usefixtures("no_large")
@pytest.mark.parametrize("end", [StopError, KeyboardInterrupt])
def test_a_fault_that_was_found_outlasts_what_ends_the_search(
    source: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    made = count()

    def wrong(self: Trial, given: Given) -> None:
        del self, given
        raise end if next(made) == 1 else WrongError(Wrong("value", "it is wrong"))

    monkeypatch.setattr(Trial, "check", wrong)
    result = run(f"{source.name}:copy", "--schedule", "edge", "--json")
    (row,) = json.loads(result.stdout)["results"]
    assert row["verdict"] == "wrong"
    assert row["counterexample"]["text"] == "it is wrong"


@pytest.mark.usefixtures("no_large")
def test_a_fault_that_does_not_show_each_time_is_told(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = count()

    def wrong(self: Trial, given: Given) -> None:
        del self, given
        if next(made) == 0:
            raise WrongError(Wrong("bits", "it is wrong", place=(0,)))

    monkeypatch.setattr(Trial, "check", wrong)
    result = run(f"{source.name}:copy", "--schedule", "edge")
    assert result.exit_code == 1
    assert "The same call was also right" in result.output


@pytest.mark.usefixtures("no_large")
@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (gpu.FeatureError("The adapter has no f16."), 1, "Nothing was run on the"),
        (gpu.ValidationError("no such shader"), 1, "wrong: faulty.kern: copy, y map"),
        (ZeroDivisionError("by zero"), 1, "the call raises ZeroDivisionError: by zero"),
        (gpu.DeviceLost("gone"), 1, "The device is lost: gone"),
    ],
)
def test_what_calls_raise_is_told(
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    said: str,
) -> None:
    monkeypatch.setattr(trial, "launch", raising(error))
    result = run(f"{source.name}:copy", "--schedule", "map", "--examples", "2")
    assert (result.exit_code, said in result.output) == (status, True)


@pytest.mark.usefixtures("no_large")
def test_another_device_takes_the_place_of_one_that_is_lost(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, made = trial.launch, count()

    def losing(ctx: gpu.Context, *rest: Any) -> Any:
        if next(made) == 2:
            ctx.device.destroy()
        return call(ctx, *rest)

    monkeypatch.setattr(trial, "launch", losing)
    first, *others = found(f"{source.name}:copy", "--examples", "3")
    assert (first["verdict"], first["counterexample"]["kind"]) == ("wrong", "lost")
    assert {row["verdict"] for row in others} == {"held"}


def test_halves_that_share_a_word_are_copied_by_words(tmp_path: Path) -> None:
    """The runtime's own copies touch the padding of the tensors that they make."""
    file = tmp_path / "halves.kern"
    file.write_text("kernel f(mut x: f16[n], y: f16[n]) { x[i] = y[i]; }", "utf-8")
    x, y = np.zeros(1, np.float16), np.ones(1, np.float16)
    with kernel(str(file), "f", "x map edge", arrangement="together") as call:
        assert call(x, y) == [y]


def test_long_arrays_are_written_short(source: Path) -> None:
    source.write_text("struct P { a: f32, @size(16) b: i32, c: f32[3] }", "utf-8")
    record = kerngen.load(source).P.DTYPE
    (structure,) = checked(source.read_text("utf-8")).structs
    period = np.arange(PERIOD)
    uneven = np.r_[np.arange(9000.0), np.nan].astype(np.float32)
    number = Leaf(Scalar.F32)
    words: NDArray[Any] = np.zeros(9001, record)
    repeated: NDArray[Any] = np.zeros(9001, record)
    for name in ("a", "b"):
        words[name] = uneven[:-1].max() - np.arange(9001)
        repeated[name] = np.resize(period, 9001)
    for array, memory in ((uneven, number), (words, structure), (repeated, structure)):
        text = array_text(array, memory)
        made = eval(text, {"np": np, "b85decode": b85decode, "decompress": decompress})
        got = made[0].view(record).reshape(made[1]) if array.dtype == record else made
        assert got.tobytes() == array.tobytes()
        assert len(text) < 0.6 * array.nbytes
    assert len(array_text(repeated, structure)) < 25 * PERIOD * 2


@pytest.mark.nightly
def test_a_large_call_leaves_room_for_the_zones(tmp_path: Path) -> None:
    """A tensor of 8 bytes for each element is almost as large as a binding may be."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "s.kern").write_text("struct P { x: f32, y: f32 }", "utf-8")
    text = "kernel f(p: P[n]) -> y: f32[n] { y[i] = p[i].x / p[i].y; }"
    file = tmp_path / "a" / "b" / "k.kern"
    file.write_text(f'use "../../s.kern";\n{text}', "utf-8")
    rows = found(str(file), "--examples", "2")
    assert {row["verdict"] for row in rows} == {"held"}


@pytest.mark.usefixtures("no_large")
def test_the_program_finds_schedules_in_other_files(source: Path, plant: Plant) -> None:
    """Those of the folder that was verified count, and no others."""
    folder = source.parent / "src"
    (folder / "tuned").mkdir(parents=True)
    text = "kernel f(x: f32[n]) -> y: f32[n] { y[i] = 3.0 * x[i]; }"
    (folder / "a.kern").write_text(text, "utf-8")
    tuned = 'use "../a.kern";\nschedule f { generic }'
    (folder / "tuned" / "t.kern").write_text(tuned, "utf-8")
    plant(Fault("", "f.generic", "3.0 * ", "2.0 * ", ""))
    (row,) = found("src", "--schedule", "generic", "--examples", "3")
    assert "sources='src'" in row["counterexample"]["code"]
    with pytest.raises(AssertionError):
        exec(row["counterexample"]["code"], {})


def test_a_kernel_of_a_folder_is_asked_for() -> None:
    assert asked(Path("kernels"), "dense") == (Path("kernels"), "dense")
    assert asked(Path("a.kern:dense"), "") == (Path("a.kern"), "dense")


def wait(until: float) -> None:
    while time.monotonic() < until:
        pass


def test_a_large_call_ends_with_the_budget() -> None:
    begun = time.monotonic()
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(StopError), limited(begun - 1.0):
        time.sleep(0.8)
    with pytest.raises(StopError), limited(time.monotonic() + 0.1):
        wait(begun + 10)
    assert time.monotonic() < begun + 5
    for until in (time.monotonic() + 0.1, float("inf")):
        with limited(until):
            pass
    time.sleep(0.2)  # the timer is off
    assert signal.getsignal(signal.SIGALRM) is before
