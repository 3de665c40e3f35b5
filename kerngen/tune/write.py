"""The file of the winners: schedules with guards, for a build to take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Final, final

from kerngen.bench.arguments import Sizes
from kerngen.bench.words import duration
from kerngen.schedule.program import (
    EVERYWHERE_BYTES,
    EVERYWHERE_INVOCATIONS,
    ScheduledStage,
)
from kerngen.tune.candidates import Candidate
from kerngen.tune.checked import EXACT_BELOW, words

HEADING: Final = "//! Schedules found by 'kerngen tune'."


@final
@dataclass(frozen=True, slots=True)
class Winner:
    """What was found for a stage at some sizes: a candidate, or None for what there was.

    `scheduled` is how the candidate runs the stage, if there is one.
    """

    stage: str
    sizes: Sizes
    candidate: Candidate | None
    scheduled: ScheduledStage | None
    before: float
    after: float


def write_winners(
    winners: Sequence[Winner],
    *,
    kernel: str,
    used: str,
    whole: bool,
    about: Mapping[str, str],
) -> str:
    """Return the text of the file.

    `used` is the path of the kernel's file from there; `about` says where and when, in
    comments.  A kernel that is a `whole` stage is named without it.
    """
    lines = [HEADING, "//!", *(f"//! {name}: {text}" for name, text in about.items())]
    lines += ["", f'use "{used}";']
    shapes = [winner.sizes for winner in winners]
    for winner in winners:
        lines += ["", *_item(winner, kernel, shapes, whole=whole)]
    return "\n".join(lines) + "\n"


def _item(
    winner: Winner, kernel: str, shapes: Iterable[Sizes], *, whole: bool
) -> Iterator[str]:
    target = kernel if whole else f"{kernel}.{winner.stage}"
    if winner.candidate is None or winner.scheduled is None:
        at = f"{target}, {words(winner.sizes)}" if winner.sizes else target
        yield f"// {at}: {duration(winner.before)}; nothing was faster."
        return
    before, after = duration(winner.before), duration(winner.after)
    at = f"{words(winner.sizes)}: " if winner.sizes else ""
    yield f"// {at}{after}, before {before}."
    bounds = " and ".join((*_range(winner.sizes, shapes), *_needs(winner.scheduled)))
    when = f" when {bounds}" if bounds else ""
    yield f"schedule {target}{when} {{ {winner.candidate.text} }}"


def _range(sizes: Sizes, shapes: Iterable[Sizes]) -> Iterator[str]:
    """Yield the bounds of the cell around some sizes.

    It reaches a factor of two to either side, but less where the geometric mean with the
    next length that was tuned is nearer; a small length stands alone.
    """
    known = [*shapes]
    for dim, size in sizes.items():
        values = sorted({each[dim] for each in known})
        place = values.index(size)
        low, high = _reach(size)
        if place:
            low = max(low, isqrt(values[place - 1] * size) + 1)
        if size < values[-1]:
            high = min(high, isqrt(size * values[place + 1]))
        if low == high:
            yield f"{dim} == {size}"
        else:
            yield f"{dim} >= {low} and {dim} <= {high}"


def _reach(size: int) -> tuple[int, int]:
    return (size, size) if size < EXACT_BELOW else (size // 2, size * 2)


def _needs(scheduled: ScheduledStage) -> Iterator[str]:
    """Yield what a schedule asks of the adapter beyond what WebGPU promises."""
    shaders = [s for variant in scheduled.variants for s in variant.shaders]
    memory = max(shader.workgroup_bytes for shader in shaders)
    invocations = max(shader.workgroup_size for shader in shaders)
    if memory > EVERYWHERE_BYTES:
        yield f"adapter.workgroup_bytes >= {memory}"
    if invocations > EVERYWHERE_INVOCATIONS:
        yield f"adapter.invocations >= {invocations}"
    if any(shader.subgroups for shader in shaders):
        yield "adapter.subgroups"
