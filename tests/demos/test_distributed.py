"""The characters trained by processes that torchrun and mpiexec start, on loopback.

Each run starts two processes or more, which all compile shaders: 20 seconds of CPU, and more.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.train.checkpoint import read_checkpoint

pytestmark = [pytest.mark.torch, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
STEPS = 12
SMALL = (
    f"--layers 1 --heads 2 --width 32 --context 16 --batch 8 --steps {STEPS} --warmup 5 "
    "--learning-rate 1e-2 --characters 30000 --validate-every 12 --save-every 5 "
    "--samples 0 --checkpoint"
).split()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
EXAMPLE = ["-m", "examples.characters"]
KILLS = 3
LIMIT = 600
"""Seconds of a run: four times what a rank that is killed takes on two busy cores."""
TAG = "KERNGEN_TEST_RUN"
"""The environment variable that all processes of a run inherit."""


def run(command: Sequence[str], file: Path, *more: str, code: int = 0) -> str:
    """Run a command to its end, with a checkpoint; return what it printed.

    It prints to a file: a pipe stays open for as long as one of its processes lives.
    """
    tag = f"{TAG}={uuid.uuid4()}"
    log = file.with_suffix(".log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *SMALL, str(file), *more],
            cwd=ROOT,
            env=os.environ | dict([tag.split("=")]),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            pytest.fail(f"no end within {LIMIT} s: {log.read_text('utf-8')}")
        finally:
            process.kill()
            process.wait()
            left = end_all(tag)
    said = log.read_text("utf-8")
    assert process.returncode == code, said
    assert not left, f"left behind: {left}"
    return said


def end_all(tag: str) -> list[str]:
    """End the processes of a run which live on after a while; return what they were.

    torchrun gives each rank a session of its own, so that a signal to the group of torchrun
    does not reach it.  Where there is no /proc nothing is found.
    """
    until = time.monotonic() + 10
    while (living := tagged(tag)) and time.monotonic() < until:
        time.sleep(0.1)
    for process in living:
        os.kill(process, signal.SIGKILL)
    return list(living.values())


def tagged(tag: str) -> dict[int, str]:
    """Return the processes that inherited a tag, and their commands."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if tag.encode() in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes()
                found[int(folder.name)] = command.replace(b"\0", b" ").decode()
        except OSError:
            continue  # it ended, or is another user's
    return found


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run of two processes."""
    file = tmp_path_factory.mktemp("two") / "run.safetensors"
    said = run([*TORCHRUN, "--nproc-per-node", "2", *EXAMPLE], file, "--distributed")
    assert f"after {STEPS} steps" in said
    return file


def distance(file: Path, other: Path) -> float:
    """The largest relative norm of a difference between parameters."""
    arrays: dict[str, NDArray[Any]] = dict(read_checkpoint(file))
    others: dict[str, NDArray[Any]] = dict(read_checkpoint(other))
    return max(
        float(np.linalg.norm(array - others[name]) / np.linalg.norm(array))
        for name, array in arrays.items()
        if name.startswith("parameters.")
    )


def test_two_processes_train_as_one(two: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    run([sys.executable, *EXAMPLE], file)
    assert distance(file, two) < 1e-5


def assert_same_bits(file: Path, other: Path) -> None:
    """Compare states: the metadata of a file may be in another order."""
    one, two = read_checkpoint(file), read_checkpoint(other)
    assert {n: a.tobytes() for n, a in one.items()} == {
        n: a.tobytes() for n, a in two.items()
    }


def check_killed(two: Path, folder: Path, step: int, rank: int) -> None:
    """Kill a rank before a step; torchrun starts all again, and they go on."""
    folder.mkdir(exist_ok=True)
    file = folder / "run.safetensors"
    restarting = [*TORCHRUN, "--nproc-per-node", "2", "--max-restarts", "1"]
    killed = ["-m", "tests.demos.killed", str(step), str(rank)]
    said = run([*restarting, *killed], file, "--distributed")
    assert "exitcode: -9" in said
    assert_same_bits(file, two)


def test_a_killed_rank_goes_on_bit_for_bit(two: Path, tmp_path: Path) -> None:
    check_killed(two, tmp_path, 8, 1)


def test_kills_at_any_step(two: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(KILLS):
        step, rank = rng.randrange(STEPS), rng.randrange(2)
        check_killed(two, tmp_path / str(number), step, rank)


def test_mpi_leaves_the_bits_of_gloo(two: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.fail("There is no mpi4py: pip install -e '.[distributed]'.")
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    file = tmp_path / "run.safetensors"
    command = [beside or "mpiexec", "-n", "2", sys.executable, "-m", "mpi4py"]
    run([*command, *EXAMPLE], file, "--distributed")
    assert_same_bits(file, two)


def test_a_sharded_run(two: Path, tmp_path: Path) -> None:
    """Its checkpoint is as any: four processes go on from that of two, one of which died."""
    file = tmp_path / "run.safetensors"
    sharded = ["--distributed", "--sharded"]
    killed = ["-m", "tests.demos.killed", "8", "0"]
    run([*TORCHRUN, "--nproc-per-node", "2", *killed], file, *sharded, code=1)
    said = run([*TORCHRUN, "--nproc-per-node", "4", *EXAMPLE], file, *sharded)
    assert "4 processes" in said
    assert "Going on after step 5" in said
    assert distance(file, two) < 1e-5
