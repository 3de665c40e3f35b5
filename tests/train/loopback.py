"""One of two processes that train together over TCP: `RANK FOLDER STEPS VICTIM STEP AFTER`.

Rank 0 listens, rank 1 connects; each sends its arrays and adds up what it gets.  The rank
`VICTIM` kills itself so many milliseconds after it has taken `STEP` steps.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Timer
from typing import Any, Final

import numpy as np

import kerngen.runtime as gpu
from kerngen.train import ProcessGroup, Trainer

from .networks import initial
from .ranks import Arrays, loss_of

SIZE: Final = 2
PATIENCE: Final = 20.0
KEY: Final = b"loopback"


def connect(rank: int, folder: Path) -> Any:  # a Connection, of Windows another one
    """Connect the two processes; the port is in a file."""
    port = folder / "port"
    if rank == 0:
        with Listener(("127.0.0.1", 0), authkey=KEY) as listener:
            part = folder / "port.part"
            part.write_text(str(listener.address[1]), "utf-8")
            part.replace(port)
            return listener.accept()
    until = time.monotonic() + PATIENCE
    while not port.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return Client(("127.0.0.1", int(port.read_text("utf-8"))), authkey=KEY)


def join(rank: int, folder: Path) -> ProcessGroup:
    """Return the group of a process, in which it can be seen who has come."""
    peer = connect(rank, folder)

    def all_reduce(arrays: Arrays) -> None:
        for array in arrays:
            peer.send_bytes(array.tobytes())
            got = np.frombuffer(peer.recv_bytes(), array.dtype)
            np.add(array, got, out=array)

    arrivals = np.memmap(folder / "arrivals", np.int64, "r+", shape=SIZE)
    return ProcessGroup(rank, SIZE, all_reduce, timeout=PATIENCE, arrivals=arrivals)


def die(after: int) -> None:
    """End this process as if it had crashed, some milliseconds from now."""
    if after == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    timer = Timer(after / 1000, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def main(
    rank: int, folder: Path, steps: int, victim: int, step: int, after: int
) -> None:
    """Train from the checkpoint on, if there is one, and save each step."""
    group, file = join(rank, folder), folder / "run.safetensors"

    def mean(arrays: Arrays) -> None:
        group.all_reduce(arrays)
        for array in arrays:
            np.divide(array, SIZE, out=array)

    with gpu.open(adapter="reference") as ctx:
        trainer = Trainer(ctx, initial(), group=group)
        if file.exists():
            trainer.load(file)
        while trainer.step_count < steps:
            if (rank, trainer.step_count) == (victim, step):
                die(after)
            trainer.backward(loss_of(trainer, trainer.step_count, rank, SIZE))
            trainer.exchange(mean)
            trainer.clip_gradients(1.0)
            trainer.adamw_step(lr=1e-2)
            if rank == 0:
                trainer.save(file)
        trainer.save(folder / f"last{rank}.safetensors")


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
    except gpu.Error as error:
        sys.exit(str(error))
