"""What a kernel moves and computes, by `kerngen show`, and which strategies run it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from kerngen.ir.staging.stages import Write
from kerngen.schedule.costs import Polynomial, bytes_moved, operations
from kerngen.schedule.program import KernelProgram


def dispatches(program: KernelProgram) -> Iterator[tuple[str, Polynomial, Polynomial]]:
    """Yield (strategy, bytes, operations) of each dispatch for large lengths.

    Of several schedules it is the one that covers most stages, else the last: the one
    for all that no guard sets apart.
    """
    number = 0
    while number < len(program.stages):
        schedules = program.stages[number].schedules
        chosen = max(reversed(schedules), key=lambda schedule: len(schedule.stages))
        stages = program.staged.stages[number : number + len(chosen.stages)]
        written = {s.tensor for x in stages for s in x.steps if isinstance(s, Write)}
        kept = [
            t
            for t in program.staged.temporaries
            if t in written and t.name not in chosen.bound
        ]
        moved = bytes_moved(stages, kept if len(chosen.stages) > 1 else ())
        yield chosen.strategy, moved, operations(stages, program.functions)
        number += len(chosen.stages)


def totals(program: KernelProgram, length: int = 64) -> tuple[float, float]:
    """Return all bytes and operations where every dim has one length."""
    moves = computes = 0.0
    for _, moved, computed in dispatches(program):
        moves += _value(moved, length)
        computes += _value(computed, length)
    return moves, computes


def _value(polynomial: Polynomial, length: int) -> float:
    total = 0.0
    for extents, factor in polynomial.items():
        total += factor * prod(e if isinstance(e, int) else length for e in extents)
    return total
