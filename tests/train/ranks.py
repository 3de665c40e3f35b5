"""A few ranks in the threads of this process: an engine of 40 lines, for tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerngen import nn
from kerngen.runtime import Matrix, Vector, f32, u32
from kerngen.train import ProcessGroup, Trainer

from .networks import BATCH, CLASSES, INPUTS

T = TypeVar("T")
Arrays = list[NDArray[Any]]
Labels = NDArray[Any] | Vector[u32]

PATIENCE = 20.0
"""Seconds until a rank that waits for another gives up."""


@dataclass
class Engine:
    """Moves arrays between ranks that call it alike."""

    size: int
    patience: float = PATIENCE
    calls: list[int] = field(default_factory=list[int])
    _given: dict[int, Arrays] = field(default_factory=dict[int, Arrays])

    def __post_init__(self) -> None:
        self.arrivals = [0] * self.size
        self._barrier = Barrier(self.size, timeout=self.patience)

    def all_reduce(self, rank: int, arrays: Arrays) -> None:
        """Add each array up over the ranks, in their order."""
        self.calls.append(rank)
        self._given[rank] = [array.copy() for array in arrays]
        self._barrier.wait()
        for number, array in enumerate(arrays):
            parts = [self._given[other][number] for other in range(self.size)]
            array[...] = np.sum(parts, axis=0, dtype=array.dtype)
        self._barrier.wait()

    def all_gather(self, rank: int, arrays: Arrays) -> None:
        """Fill each array, of which each rank has an equal part."""
        self._given[rank] = [array.copy() for array in arrays]
        self._barrier.wait()
        for number, array in enumerate(arrays):
            for other, part in enumerate(np.split(array, self.size)):
                part[...] = np.split(self._given[other][number], self.size)[other]
        self._barrier.wait()

    def group(self, rank: int, timeout: float | None = None) -> ProcessGroup:
        """The group as a rank sees it."""
        return ProcessGroup(
            rank,
            self.size,
            lambda arrays: self.all_reduce(rank, arrays),
            lambda arrays: self.all_gather(rank, arrays),
            timeout,
            self.arrivals,
        )

    def mean(self, rank: int) -> Callable[[Arrays], None]:
        """The exchange of a rank that takes the mean."""

        def mean(arrays: Arrays) -> None:
            self.all_reduce(rank, arrays)
            for array in arrays:
                np.divide(array, self.size, out=array)

        return mean

    def reduce_scatter(self, rank: int) -> Callable[[Arrays], None]:
        """The exchange of a sharded rank: the mean in its part, and noise elsewhere."""

        def reduce_scatter(arrays: Arrays) -> None:
            self.mean(rank)(arrays)
            for array in arrays:
                for other, part in enumerate(np.split(array, self.size)):
                    if other != rank:
                        part.fill(np.nan)

        return reduce_scatter

    def run(self, work: Callable[[int], T]) -> list[T]:
        """Do the work of each rank in a thread of its own."""
        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(work, range(self.size)))


def batch_of(step: int, rank: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The inputs and labels of a rank's rows of the batch of a step."""
    rng = np.random.default_rng(step)
    x = rng.normal(size=(BATCH, INPUTS))[rank::size]
    return x, rng.integers(0, CLASSES, BATCH)[rank::size]


def loss_by(trainer: Trainer, x: Matrix[f32], labels: Labels) -> nn.Variable:
    """The loss of the network of `initial()`."""
    p = trainer.parameters
    hidden = nn.gelu(nn.linear(x, p["hidden.weight"], p["hidden.bias"]))
    return nn.cross_entropy(nn.linear(hidden, p["out.weight"], p["out.bias"]), labels)


def loss_of(trainer: Trainer, step: int, rank: int, size: int) -> nn.Variable:
    """The loss of a rank's rows of the batch of a step."""
    x, labels = batch_of(step, rank, size)
    return loss_by(trainer, trainer.ctx.matrix(x, f32), labels)


def check_alike(states: list[dict[str, NDArray[Any]]], within: float = 0.0) -> None:
    """Compare states; `within` is relative, of norms of differences."""
    first, *others = states
    for other in others:
        assert other.keys() == first.keys()
        for name, array in first.items():
            difference = np.linalg.norm(other[name] - array)
            assert difference <= within * np.linalg.norm(array), name
