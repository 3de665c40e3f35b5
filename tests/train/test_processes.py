"""Two processes that train over loopback: one is killed, and they go on bit for bit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.train import Trainer
from kerngen.train.checkpoint import read_checkpoint
from tests.project.tree import ROOT

from .networks import initial
from .ranks import Engine, check_alike, loss_of

NOBODY = (-1, 0, 0)


def run(
    folder: Path, steps: int, death: tuple[int, int, int]
) -> list[subprocess.CompletedProcess[str]]:
    """Start both ranks, and wait for them; `death` is who dies, at which step, and when."""
    (folder / "port").unlink(missing_ok=True)
    np.zeros(2, np.int64).tofile(folder / "arrivals")
    words = [sys.executable, "-m", "tests.train.loopback"]
    started = [
        subprocess.Popen(
            [*words, *map(str, (rank, folder, steps, *death))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    return [
        subprocess.CompletedProcess([], process.returncode, *output)
        for process, output in zip(started, outputs, strict=True)
    ]


def check_undisturbed(folder: Path, steps: int) -> None:
    """Compare what both ranks have left with what threads do that nobody kills."""
    engine = Engine(2)

    def train(rank: int) -> dict[str, NDArray[Any]]:
        with gpu.open(adapter="reference") as ctx:
            trainer = Trainer(ctx, initial(), group=engine.group(rank))
            for step in range(steps):
                trainer.backward(loss_of(trainer, step, rank, 2))
                trainer.exchange(engine.mean(rank))
                trainer.clip_gradients(1.0)
                trainer.adamw_step(lr=1e-2)
            return trainer.state()

    files = [read_checkpoint(folder / f"last{rank}.safetensors") for rank in range(2)]
    check_alike([*engine.run(train), *map(dict, files)])


def finish(folder: Path, steps: int) -> None:
    """Let both ranks take the steps that are missing."""
    for done in run(folder, steps, NOBODY):
        assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_a_killed_process_and_a_restart(tmp_path: Path) -> None:
    zero, one = run(tmp_path, 6, (1, 3, 0))
    assert one.returncode == -signal.SIGKILL, one.stderr
    assert zero.returncode == 1
    assert "exchange, before step 4 on rank 0 of 2: 'all_reduce' raised" in zero.stderr
    assert "Rank 1 has not come to it. Start all processes anew" in zero.stderr
    finish(tmp_path, 6)
    check_undisturbed(tmp_path, 6)


@pytest.mark.nightly
def test_twenty_kills_at_random_moments(tmp_path: Path) -> None:
    """In a step, an exchange or a save; the other rank ends by an error, never by a limit."""
    rng, steps, file = random.Random(0), 90, tmp_path / "run.safetensors"
    for _ in range(20):
        taken = int(read_checkpoint(file)["step"]) if file.exists() else 0
        victim, step = rng.randrange(2), taken + rng.randrange(4)
        ranks = run(tmp_path, steps, (victim, step, rng.randrange(12)))
        assert ranks[victim].returncode == -signal.SIGKILL, ranks[victim].stderr
        other = ranks[1 - victim]
        assert other.returncode == 1, other.stderr
        assert "before step" in other.stderr, other.stderr
        assert "Start all processes anew" in other.stderr, other.stderr
    finish(tmp_path, steps)
    check_undisturbed(tmp_path, steps)
