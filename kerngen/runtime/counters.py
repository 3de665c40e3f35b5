"""Counts of the work of a context, for tests, benchmarks and the curious.

Of one call:

    before = ctx.counters.snapshot()
    relu(x, out=y)
    print(ctx.counters - before)    # Counters(calls=1, dispatches=1, ...)
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import final


@final
@dataclass(slots=True)
class Counters:
    """Counts of a context's work since it was opened; subtract snapshots of it."""

    calls: int = 0
    """Kernels called, by `Kernel.launch`."""
    dispatches: int = 0
    copies: int = 0
    """Copies and clears on the device."""
    encoders: int = 0
    passes: int = 0
    submits: int = 0
    uploads: int = 0
    """Arrays written to the device; uniforms are not counted."""
    readbacks: int = 0
    buffers_created: int = 0
    pipelines_created: int = 0
    bind_groups_created: int = 0

    def snapshot(self) -> Counters:
        """Return a copy, which later work does not change."""
        return replace(self)

    def __sub__(self, before: Counters) -> Counters:
        """Return the counts since a snapshot."""
        return Counters(
            *(getattr(self, f.name) - getattr(before, f.name) for f in fields(self))
        )
