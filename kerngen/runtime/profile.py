"""Profiles: the time of each dispatch, as a table and as a trace for ui.perfetto.dev."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, final

from kerngen.runtime.errors import StateError

Row: TypeAlias = tuple[str, ...]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
"""The units of times in a table, the largest first, each with its seconds."""
_HEAD = ("kernel", "shader", "calls", "total", "mean", "share")
"""The head of a table."""
_LANES = ("kernels", "shaders")
"""The lanes of a trace: the calls, and below them their dispatches."""


@final
@dataclass(frozen=True, slots=True)
class Event:
    """One timed dispatch: where it comes from, and when it ran.

    `call` numbers the calls of the context; several dispatches of one call share it.  `start`
    counts from the begin of the profile's first event, on the reference from that of its
    block.  Both times are in seconds.
    """

    kernel: str
    stage: str
    strategy: str
    shader: str
    call: int
    start: float
    seconds: float


@final
class Profile:
    """The timed dispatches of a `profile()` block."""

    def __init__(self, adapter: str) -> None:
        """Begin; the block is still open."""
        self.adapter = adapter
        self._events: tuple[Event, ...] | None = None

    def finish(self, events: tuple[Event, ...]) -> None:
        """Set the events, as is done at the end of the block."""
        self._events = events

    @property
    def events(self) -> tuple[Event, ...]:
        """The dispatches in order; raises StateError within the block."""
        if self._events is None:
            raise StateError("events: the profile() block has not ended yet.")
        return self._events

    def table(self) -> str:
        """Return the total time of each shader, the longest first, as plain text."""
        events = sorted(self.events, key=_origin)
        groups = [list(group) for _, group in groupby(events, _origin)]
        groups.sort(key=_total, reverse=True)
        whole = _total(events)
        rows = [_row(group, whole) for group in groups]
        total = ("total", "", str(_calls(events)), _time(whole), "", "")
        return _aligned([_HEAD, *rows, total])

    def save(self, path: str | PathLike[str]) -> None:
        """Write a trace in Chrome's format, for ui.perfetto.dev or chrome://tracing."""
        # Not at the top: importing kerngen.runtime must stay cheap.
        json = import_module("json")
        trace = {"traceEvents": [*_names(self.adapter), *_slices(self.events)]}
        Path(path).write_text(json.dumps(trace), encoding="utf-8")

    def __repr__(self) -> str:
        """Return how many dispatches were timed."""
        count = "open" if self._events is None else f"{len(self._events)} events"
        return f"Profile({self.adapter}: {count})"


def within_profile(what: str) -> StateError:
    """Return the error for an operation that `profile()` does not allow."""
    return StateError(f"{what} can't begin within a profile() block.")


# ---- the table


def _origin(event: Event) -> Row:
    return event.kernel, event.shader or event.strategy


def _total(events: Iterable[Event]) -> float:
    return sum(event.seconds for event in events)


def _calls(events: Iterable[Event]) -> int:
    return len({event.call for event in events})


def _row(group: Sequence[Event], whole: float) -> Row:
    total, count = _total(group), _calls(group)
    share = f"{total / whole:.1%}" if whole else "-"
    return (*_origin(group[0]), str(count), _time(total), _time(total / count), share)


def _time(seconds: float) -> str:
    """Return a time with three digits or more, and its unit: `1.23 ms`, `45.6 us`."""
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    digits = next(n for n in (2, 1, 0) if seconds / size < 10 ** (3 - n) or n == 0)
    return f"{seconds / size:.{digits}f} {unit}"


def _aligned(rows: Sequence[Row]) -> str:
    """Return rows as lines: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if number < 2 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)


# ---- the trace


def _names(adapter: str) -> Iterable[dict[str, Any]]:
    """Yield the metadata events that name the process after the adapter, and the lanes."""
    yield _named("process_name", 0, name=adapter)
    for lane, name in enumerate(_LANES, start=1):
        yield _named("thread_name", lane, name=name)
        yield _named("thread_sort_index", lane, sort_index=lane)


def _named(what: str, lane: int, **args: object) -> dict[str, Any]:
    # `ph` is the phase of Chrome's trace format: M for metadata, X for a complete event.
    return {"ph": "M", "name": what, "pid": 1, "tid": lane, "args": args}


def _slices(events: Sequence[Event]) -> Iterable[dict[str, Any]]:
    """Yield a slice for each call, and one for each of its dispatches below it."""
    for _, group in groupby(events, attrgetter("call", "kernel")):
        parts = list(group)
        first, last = parts[0], parts[-1]
        whole = last.start + last.seconds - first.start
        yield _slice(1, first.kernel, first.start, whole, call=first.call)
        for each in parts:
            yield _slice(
                2,
                each.shader or each.strategy,
                each.start,
                each.seconds,
                stage=each.stage,
                strategy=each.strategy,
            )


def _slice(
    lane: int, name: str, start: float, seconds: float, **args: object
) -> dict[str, Any]:
    """Return a complete event, in microseconds.

    The duration is the difference of rounded times, so that a slice that ends where the next
    one begins does not overlap it by rounding.
    """
    ts, end = round(start * 1e6, 3), round((start + seconds) * 1e6, 3)
    return {
        "ph": "X",
        "name": name,
        "ts": ts,
        "dur": round(end - ts, 3),
        "pid": 1,
        "tid": lane,
        "args": args,
    }
