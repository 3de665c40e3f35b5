"""Sharding: each rank keeps the optimizer's moments for its part only (ZeRO, stage 1).

A part is an equal share of each segment of an arena, and may begin in the middle of a tensor:

    segment   │ weight          │ bias │ other     │
    ranks     │ 0          │ 1          │ 2        │

Tensors that are gathered are whole, so a checkpoint does not depend on the number of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime import ArgumentError
from kerngen.train.arena import Arena, Array, Layout, Span
from kerngen.train.checkpoint import write_checkpoint
from kerngen.train.errors import ExchangeError
from kerngen.train.group import Exchange, ProcessGroup, exchange


@final
class Shard:
    """A rank's part of the parameters, and the exchange of parts among ranks."""

    def __init__(self, group: ProcessGroup | None) -> None:
        """Refuse a group that can't gather."""
        if group is None or group.all_gather is None:
            raise ArgumentError(
                "Trainer: sharded needs a group with an all_gather: "
                "ProcessGroup(rank, size, all_reduce, all_gather)."
            )
        self._group = group
        self._all_gather: Exchange = group.all_gather
        self._arrays: list[Array] = []

    def of(self, layout: Layout) -> list[Span]:
        """Return the spans that belong to this rank."""
        return layout.share(self._group.rank, self._group.size)

    def gather_parameters(self, arena: Arena, where: str) -> None:
        """Gather the parameters, each part from the rank that updated it."""
        if not self._arrays:
            lengths = arena.layout.segments
            self._arrays = [np.empty(length, np.float32) for length in lengths]
        for span in self.of(arena.layout):
            own = self._arrays[span.segment][span.start : span.stop]
            arena.part(span).numpy(out=own)
        try:
            exchange(self._all_gather, self._arrays, where, self._group)
        except ExchangeError:
            self._arrays = []  # a function that is late may still write to them
            raise
        for segment, array in zip(arena.segments, self._arrays, strict=True):
            segment.copy_from(array)

    def gather(self, arena: Arena, where: str) -> dict[str, Array]:
        """Return copies of all tensors of an arena, gathered from all ranks."""
        segments = arena.read_segments()
        if not arena.is_whole:
            exchange(self._all_gather, segments, where, self._group)
        return arena.named(segments)

    def write(self, goal: Path, state: Mapping[str, NDArray[Any]]) -> None:
        """Write a checkpoint on the first rank, while the others wait.

        Raises:
            OSError: On the first rank, if the file can't be written.
            ExchangeError: On the other ranks, if the first one can't write.
        """
        failure: OSError | None = None
        if self._group.rank == 0:
            try:
                write_checkpoint(goal, state)
            except OSError as error:
                failure = error
        own = np.array([failure is not None], np.float32)
        failed = self._group.rows(own, "save")[0, 0]
        if failure is not None:
            raise failure
        if failed:
            raise ExchangeError(f"save on {self._group.name}: rank 0 could not write.")
