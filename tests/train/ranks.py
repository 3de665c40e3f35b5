"""A few ranks in the threads of this process: an engine of 40 lines, for tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kerngen.train import ProcessGroup

T = TypeVar("T")
Arrays = list[NDArray[Any]]

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
        )

    def mean(self, rank: int) -> Callable[[Arrays], None]:
        """The exchange of a rank that takes the mean."""

        def mean(arrays: Arrays) -> None:
            self.all_reduce(rank, arrays)
            for array in arrays:
                np.divide(array, self.size, out=array)

        return mean

    def run(self, work: Callable[[int], T]) -> list[T]:
        """Do the work of each rank in a thread of its own."""
        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(work, range(self.size)))
