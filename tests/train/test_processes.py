"""Two processes that train over loopback: one is killed, and they go on bit for bit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

import kerngen.runtime as gpu
from kerngen.train import Trainer
from kerngen.train.checkpoint import read_checkpoint
from tests.project.tree import ROOT

from .networks import initial
from .ranks import Engine, check_alike, loss_of

STEPS, KILLED, NEVER = 6, 3, -1


def run(folder: Path, killed: int) -> list[subprocess.CompletedProcess[str]]:
    """Start both ranks, and wait for them."""
    (folder / "port").unlink(missing_ok=True)
    np.zeros(2, np.int64).tofile(folder / "arrivals")
    words = [sys.executable, "-m", "tests.train.loopback"]
    started = [
        subprocess.Popen(
            [*words, str(rank), str(folder), str(STEPS), str(killed)],
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


def undisturbed(rank: int, engine: Engine) -> dict[str, object]:
    """The last state of a rank that trains in a thread."""
    with gpu.open(adapter="reference") as ctx:
        trainer = Trainer(ctx, initial(), group=engine.group(rank))
        for step in range(STEPS):
            trainer.backward(loss_of(trainer, step, rank, 2))
            trainer.exchange(engine.mean(rank))
            trainer.clip_gradients(1.0)
            trainer.adamw_step(lr=1e-2)
        return trainer.state()


def test_a_killed_process_and_a_restart(tmp_path: Path) -> None:
    zero, one = run(tmp_path, KILLED)
    assert one.returncode == -signal.SIGKILL, one.stderr
    assert zero.returncode == 1
    assert "exchange, before step 4 on rank 0 of 2: 'all_reduce' raised" in zero.stderr
    assert "Rank 1 has not come to it. Start all processes anew" in zero.stderr
    for done in run(tmp_path, NEVER):
        assert done.returncode == 0, done.stderr
    engine = Engine(2)
    states = engine.run(lambda rank: undisturbed(rank, engine))
    files = [read_checkpoint(tmp_path / f"last{rank}.safetensors") for rank in range(2)]
    check_alike([*states, *files])
