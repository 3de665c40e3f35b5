"""Write the winners as a file of schedules with guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Final, final

from kerngen.bench.arguments import Sizes
from kerngen.bench.words import duration
from kerngen.format.form import formatted
from kerngen.schedule.program import EVERYWHERE, ScheduledStage
from kerngen.source.text import Source
from kerngen.tune.candidates import TuneCandidate
from kerngen.tune.checked import EXACT_BELOW, words
from kerngen.tune.merge import earlier, subject_of

HEADING: Final = "//! Schedules found by 'kerngen tune'."


@final
@dataclass(frozen=True, slots=True)
class Winner:
    """The result of a stage at some sizes: a candidate, or None for no change.

    `scheduled` is the candidate's schedule of the stage, if there is one.
    """

    stage: str
    sizes: Sizes
    candidate: TuneCandidate | None
    scheduled: ScheduledStage | None
    before: float
    after: float


@final
@dataclass(frozen=True, slots=True)
class WinnerData:
    """A winner as plain data: its `schedule` as text, "" if nothing was faster.

    `needs` are the schedule's requirements of the adapter.
    """

    stage: str
    sizes: Mapping[str, int]
    schedule: str
    needs: tuple[str, ...]
    before: float
    after: float


def line_of(winner: Winner) -> WinnerData:
    """Return a winner as plain data."""
    stage, sizes, found = winner.stage, dict(winner.sizes), winner.scheduled
    if winner.candidate is None or found is None:
        return WinnerData(stage, sizes, "", (), winner.before, winner.after)
    needs = tuple(_needs(found))
    text = winner.candidate.text
    return WinnerData(stage, sizes, text, needs, winner.before, winner.after)


@final
@dataclass(frozen=True, slots=True)
class Written:
    """The new text of a file, and how much of the old text it keeps."""

    text: str
    kept: int


def write_lines(
    lines: Sequence[WinnerData],
    *,
    kernel: str,
    used: str,
    whole: bool,
    about: Mapping[str, str],
    present: str = "",
) -> Written:
    """Return the text of the file of schedules.

    `used` is the path of the kernel's file from there; `about` has adapter, versions and
    date, for comments.  A kernel of one stage (`whole`) is named without it.  Schedules of
    the `present` text for other sizes and kernels come behind the new ones, so that where
    both guards are true, the new one counts:

        // matmul, m = 64, n = 64, k = 64: 18.5 us, before 22.1 us.
        schedule matmul when m >= 32 and m <= 128 and ... { gemm tile(64, 64, 16) }
    """
    shapes = [line.sizes for line in lines]
    blocks = ["\n".join(_item(line, kernel, shapes, whole=whole)) for line in lines]
    kept = earlier(present, {subject_of(block) for block in blocks})
    said = [*(f"{name}: {text}" for name, text in about.items()), *kept.origins]
    heading = [HEADING, "//!", *(f"//! {line}" for line in dict.fromkeys(said))]
    uses = dict.fromkeys((f'use "{used}";', *kept.uses))
    parts = ["\n".join(heading), "\n".join(uses), *blocks, *kept.blocks]
    text = formatted(Source("tuned.kern", "\n\n".join(parts) + "\n"))
    return Written(text, len(kept.blocks))


def subject(kernel: str, stage: str, sizes: Sizes, *, whole: bool) -> str:
    """Return the subject of a block: stage and sizes, as its comment names them."""
    target = _target(kernel, stage, whole=whole)
    return f"{target}, {words(sizes)}" if sizes else target


def _target(kernel: str, stage: str, *, whole: bool) -> str:
    return kernel if whole else f"{kernel}.{stage}"


def _item(
    winner: WinnerData, kernel: str, shapes: Iterable[Sizes], *, whole: bool
) -> Iterator[str]:
    target = _target(kernel, winner.stage, whole=whole)
    at = subject(kernel, winner.stage, winner.sizes, whole=whole)
    if not winner.schedule:
        yield f"// {at}: {duration(winner.before)}; nothing was faster."
        return
    before, after = duration(winner.before), duration(winner.after)
    yield f"// {at}: {after}, before {before}."
    bounds = " and ".join((*_range(winner.sizes, shapes), *winner.needs))
    when = f" when {bounds}" if bounds else ""
    yield f"schedule {target}{when} {{ {winner.schedule} }}"


def _range(sizes: Sizes, shapes: Iterable[Sizes]) -> Iterator[str]:
    """Yield the guard for calls near some sizes, dim by dim.

    It covers a factor of two to either side, but only up to the geometric mean with the
    next tuned length; a length below 16 is alone. Tuned at 64 and 128, the guards are
    `n >= 32 and n <= 90` and `n >= 91 and n <= 256`.
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
    """Yield a schedule's needs beyond WebGPU's default limits."""
    needs = scheduled.needs
    if needs.workgroup_bytes > EVERYWHERE.workgroup_bytes:
        yield f"adapter.workgroup_bytes >= {needs.workgroup_bytes}"
    if needs.invocations > EVERYWHERE.invocations:
        yield f"adapter.invocations >= {needs.invocations}"
    if needs.subgroups:
        yield "adapter.subgroups"
