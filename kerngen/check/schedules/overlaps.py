"""Schedules that two files give for the same calls of one kernel."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.check.files.unused import Unused
from kerngen.ir.nodes import Expr, Kernel, Schedule


def find_overlaps(kernel: Kernel) -> Iterator[Unused]:
    """Yield the schedules that come second to another file's with the same guard.

    Those of the kernel's own file are what others are to come before, and in one file
    the next is for where a strategy doesn't fit.
    """
    first: dict[tuple[str | None, Expr | None], Schedule] = {}
    for schedule in kernel.schedules:
        source = schedule.span.source
        if source == kernel.span.source:
            continue
        before = first.setdefault((schedule.stage, schedule.guard), schedule)
        if before.span.source != source:
            text = (
                f"'{before.span.source.path}' has a schedule of '{kernel.name}' for "
                "the same calls, and that one is used where it fits."
            )
            yield Unused(schedule.span, text)
