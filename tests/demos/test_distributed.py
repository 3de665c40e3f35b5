"""The characters trained by processes that torchrun and mpiexec start, on loopback."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.train.checkpoint import read_checkpoint

ROOT = Path(__file__).parents[2]
STEPS = 12
SMALL = (
    f"--layers 1 --heads 2 --width 32 --context 16 --batch 8 --steps {STEPS} --warmup 5 "
    "--learning-rate 1e-2 --characters 30000 --validate-every 12 --save-every 5 "
    "--samples 0 --checkpoint"
).split()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
EXAMPLE = ["-m", "examples.characters"]


def run(command: Sequence[str], file: Path, *more: str) -> str:
    """Run a command to its end, with a checkpoint; return its standard error."""
    done = subprocess.run(
        [*command, *SMALL, str(file), *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"after {STEPS} steps" in done.stdout
    return done.stderr


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run of two processes."""
    file = tmp_path_factory.mktemp("two") / "run.safetensors"
    run([*TORCHRUN, "--nproc-per-node", "2", *EXAMPLE], file, "--distributed")
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


@pytest.mark.torch
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


@pytest.mark.torch
def test_a_killed_rank_goes_on_bit_for_bit(two: Path, tmp_path: Path) -> None:
    check_killed(two, tmp_path, 8, 1)


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_twenty_kills(two: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(20):
        step, rank = rng.randrange(STEPS), rng.randrange(2)
        check_killed(two, tmp_path / str(number), step, rank)


@pytest.mark.torch
def test_mpi_leaves_the_bits_of_gloo(two: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="the extra 'distributed' brings it")
    mpiexec = (
        shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or "mpiexec"
    )
    file = tmp_path / "run.safetensors"
    python = [sys.executable, "-m", "mpi4py"]
    run([mpiexec, "-n", "2", *python, *EXAMPLE], file, "--distributed")
    assert_same_bits(file, two)


@pytest.mark.torch
@pytest.mark.nightly
def test_a_sharded_run(two: Path, tmp_path: Path) -> None:
    """Its checkpoint is as any: four processes go on from that of two."""
    file = tmp_path / "run.safetensors"
    command = [*TORCHRUN, "--nproc-per-node", "2", *EXAMPLE]
    run(command, file, "--distributed", "--sharded")
    assert distance(file, two) < 1e-5
    command[-3] = "4"
    run(command, file, "--distributed", "--sharded")
