"""What differences mean: ours from PyTorch beside those of PyTorch from itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from kerngen.runtime import Context
from tests.parity import ours, theirs
from tests.parity.record import Differences, compare
from tests.parity.tasks import Task

GATE = "kerngen from PyTorch"
THREADS = "PyTorch, 4 threads from 1"
ROUNDING = "PyTorch, float32 from float64"
EXACT = "kerngen from PyTorch in float64"


@final
@dataclass(frozen=True)
class Study:
    """A network, and the differences between the ways to train it, by title."""

    network: str
    differences: Mapping[str, Differences]


def study(ctx: Context, task: Task) -> Study:
    """Train in all ways."""
    found = ours.train(ctx, task).read()
    one, four = theirs.train(task, threads=1), theirs.train(task, threads=4)
    exact = theirs.train(task, dtype="float64")
    pairs = {
        GATE: (found, one),
        THREADS: (four, one),
        ROUNDING: (one, exact),
        EXACT: (found, exact),
    }
    return Study(task.network, {title: compare(*pair) for title, pair in pairs.items()})
