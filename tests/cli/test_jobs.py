"""Builds in several processes: the same as in one, and nothing is left of those that end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.sample import OUT, SCALE, SOURCE, TOTAL, WRONG, edit, files

pytestmark = pytest.mark.usefixtures("project")

KERNGEN = (sys.executable, "-m", "kerngen.cli")
LARGE = "// Much text, for which more than one process is started.\n" * 500
SLOW = "".join(
    f"kernel slow_{number}(x: f32[m, n]) -> y: f32[m, n] {{"
    " let top[i] = max[j] x[i, j]; let total[i] = sum[j] exp(x[i, j] - top[i]);"
    " y[i, j] = exp(x[i, j] - top[i]) / total[i]; }\n"
    for number in range(100)
)


def run(*arguments: str, code: int = 0) -> str:
    """Run a build; return what it printed to both streams."""
    done = subprocess.run(
        [*KERNGEN, "build", *arguments],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a process has started and not seen end."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in children.read_text("ascii").split()]


@contextmanager
def running_build() -> Generator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a long build in a session of its own; wait until its workers are there."""
    for name in ("one", "two"):
        edit(SOURCE / f"{name}.kern", SLOW)
    with subprocess.Popen(
        [*KERNGEN, "build", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        while len(workers := workers_of(process)) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        yield process, workers


def ended(process: int) -> bool:
    """Whether a process is gone, waiting a while for that."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        status = Path(f"/proc/{process}/status")
        if not status.exists() or "\nState:\tZ" in status.read_text("ascii"):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.nightly
def test_any_number_of_processes_generates_the_same() -> None:
    edit(SOURCE / "large.kern", LARGE + SCALE.replace("scale", "large"))
    edit(SOURCE / "tuned.kern", 'use "deep/total.kern";\nschedule total { reduce }\n')
    run("--jobs", "1")
    alone = files(OUT)
    run("--jobs", "3", "--out", "three")
    assert files(Path("three")) == alone
    assert "large.py" in alone
    assert "up to date" in run("--check", "--jobs", "2")


@pytest.mark.nightly
def test_any_number_of_processes_reports_the_same() -> None:
    edit(SOURCE / "a.kern", WRONG + LARGE)
    edit(SOURCE / "b.kern", 'use "a.kern";\n' + TOTAL.replace("sum[i]", "sum"))
    edit(SOURCE / "c.kern", WRONG)
    alone = run("--jobs", "1", code=1)
    assert alone.count("error[") == 3
    assert run("--jobs", "2", code=1) == alone
    assert not OUT.exists()


def test_interrupted_nothing_is_written_and_no_process_is_left() -> None:
    run()
    before = files(OUT)
    with running_build() as (process, workers):
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == 130
    assert output.strip() == "interrupted"
    assert all(map(ended, workers))
    assert files(OUT) == before


@pytest.mark.nightly
def test_a_process_that_dies_ends_the_build() -> None:
    with running_build() as (process, workers):
        os.kill(workers[1], signal.SIGKILL)
        output, _ = process.communicate()
    assert process.returncode == 1
    assert "was ended (exit code -9), and nothing is written" in output
    assert "Traceback" not in output
    assert all(map(ended, workers))
    assert not OUT.exists()


@pytest.mark.nightly
def test_processes_end_with_a_build_that_is_killed() -> None:
    with running_build() as (process, workers):
        process.kill()
    assert all(map(ended, workers))
    assert not OUT.exists()


def test_no_process_is_none() -> None:
    assert "0 is not in the range x>=1" in run("--jobs", "0", code=2)
