"""A benchmark run: every case on every contestant, within a time budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

from kerngen.bench.case import BenchCase
from kerngen.bench.measure import (
    Clock,
    Clocks,
    Ramp,
    SamplingLimits,
    Timing,
    WallClock,
    clocks_of,
    measure_in_turn,
    no_ramp,
)
from kerngen.bench.peers import Peer
from kerngen.runtime import Context, Error

Contest: TypeAlias = Callable[[BenchCase], AbstractContextManager[Clock | str]]
"""A context manager that yields the clock of a case, or the reason why there is none.

The memory that a case takes is freed at the end of the block.
"""


@final
@dataclass(frozen=True, slots=True)
class Contestant:
    """A context or a peer that runs cases; those `in_turn` are sampled in turn."""

    contest: Contest
    in_turn: bool = False


_SAMPLES = 7
"""The samples of the host's clock: enough for a median that need not be exact."""

_LOOP_SECONDS = 0.02
"""Seconds of a loop: long enough that the wait at its end, 0.1 to 0.2 ms, is negligible."""

_MOST_IN_LOOP = 4000
"""The most launches of a loop."""


class PeerError(Exception):
    """Raised for an error of another library."""


@final
@dataclass(frozen=True, slots=True)
class Walls:
    """Timings of a launch by the host's clock: in a loop, and with a read."""

    loop: Timing
    read: Timing


Measured: TypeAlias = tuple[Timing, Walls | None]
"""The time of a launch on its device, and by the host's clock, if that was measured."""


@final
@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case: timings by contestant, and why some are missing."""

    case: BenchCase
    timings: Mapping[str, Timing]
    notes: Mapping[str, str]
    walls: Mapping[str, Walls] = field(default_factory=dict[str, Walls])


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """A time budget for all cases, shared equally by those that are left."""

    seconds: float
    begin: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """The seconds left."""
        return self.begin + self.seconds - time.monotonic()

    def effort(self, wanted: SamplingLimits, measurements: int) -> SamplingLimits:
        """Return the limits of the next of `measurements` that are still to come."""
        # Half, as the samples of `measure_in_turn` may take twice the seconds of its limits.
        share = self.left / max(measurements, 1) / 2
        return SamplingLimits(
            wanted.samples, wanted.launches, min(wanted.seconds, share)
        )


def on_context(ctx: Context) -> Contestant:
    """Return the contestant that runs cases on a context."""

    @contextmanager
    def contest(case: BenchCase) -> Generator[Clock | str]:
        refusal = case.refusal(ctx)
        if refusal:
            yield refusal
            return
        try:
            yield clocks_of(ctx, case.prepare(ctx))
        finally:
            ctx.trim()

    return Contestant(contest, in_turn=True)


def on_peer(peer: Peer) -> Contestant:
    """Return the contestant that runs cases in another library."""

    @contextmanager
    def contest(case: BenchCase) -> Generator[Clock | str]:
        try:
            with peer.clock(case) as clock:
                yield clock or "it has no such kernel"
        except Exception as error:
            raise PeerError(f"{type(error).__name__}: {error}") from error

    return Contestant(contest)


def run(
    cases: Sequence[BenchCase],
    contestants: Mapping[str, Contestant],
    effort: SamplingLimits,
    budget: Budget,
    ramp: Ramp = no_ramp,
) -> Iterator[CaseResult]:
    """Yield the result of each case when it is done."""
    for number, case in enumerate(cases):
        found: dict[str, Measured | str] = {}
        for group in _groups(contestants):
            if budget.left <= 0:
                used_up = f"the budget of {budget.seconds:g} s was used up"
                found |= dict.fromkeys(group, used_up)
                continue
            after = (len(cases) - number) * len(contestants) - len(found)
            found |= _together(group, case, budget.effort(effort, after), ramp)
        timed = {n: each for n, each in found.items() if not isinstance(each, str)}
        timings = {name: timing for name, (timing, _) in timed.items()}
        notes = {n: each for n, each in found.items() if isinstance(each, str)}
        walls = {name: wall for name, (_, wall) in timed.items() if wall is not None}
        yield CaseResult(case, timings, notes, walls)


def _groups(contestants: Mapping[str, Contestant]) -> list[dict[str, Contest]]:
    """Return the groups of contestants that are timed together, those in turn first."""
    in_turn = {n: each.contest for n, each in contestants.items() if each.in_turn}
    others = [{n: e.contest} for n, e in contestants.items() if not e.in_turn]
    return [in_turn, *others] if in_turn else others


def _together(
    group: Mapping[str, Contest], case: BenchCase, effort: SamplingLimits, ramp: Ramp
) -> dict[str, Measured | str]:
    """Return timings, or why there are none; if a group fails, time each member alone.

    So an error is reported of the member that fails only, and a member for which there was
    no memory beside the others may still run.
    """
    try:
        return _measured(group, case, effort, ramp)
    except (Error, PeerError, MemoryError) as error:
        why = str(error) or type(error).__name__
    # Outside of the `except`: in it, the error's traceback keeps the memory that was taken.
    found: dict[str, Measured | str] = {}
    for name, contest in group.items():
        alone = {name: contest}
        found |= (
            {name: why} if len(group) == 1 else _together(alone, case, effort, ramp)
        )
    return found


def _measured(
    group: Mapping[str, Contest], case: BenchCase, effort: SamplingLimits, ramp: Ramp
) -> dict[str, Measured | str]:
    found: dict[str, Measured | str] = {}
    with ExitStack() as stack:
        clocks: dict[str, Clock] = {}
        for name, contest in group.items():
            clock = stack.enter_context(contest(case))
            if isinstance(clock, str):
                found[name] = clock
            else:
                clocks[name] = clock
            del clock  # `clocks` alone refers to it, and is cleared below
        if all(isinstance(each, WallClock) for each in clocks.values()):
            ramp = no_ramp  # they compute on the host, as NumPy does
        timings = measure_in_turn([*clocks.values()], effort, ramp)
        timed = dict(zip(clocks, timings, strict=True))
        walls = _by_the_wall(clocks, timed, effort, ramp)
        found |= {name: (timed[name], walls.get(name)) for name in timed}
        clocks.clear()
    return found


def _by_the_wall(
    clocks: Mapping[str, Clock],
    timed: Mapping[str, Timing],
    effort: SamplingLimits,
    ramp: Ramp,
) -> dict[str, Walls]:
    """Return the times by the host's clock, from fewer samples.

    A contestant that computes on the host, such as NumPy, is done when its launch returns:
    its one timing is also that of the loop and of the read.
    """
    both = {n: each for n, each in clocks.items() if isinstance(each, Clocks)}
    less = replace(
        effort, samples=min(effort.samples, _SAMPLES), seconds=effort.seconds / 4
    )
    long = SamplingLimits(samples=3, launches=_MOST_IN_LOOP, seconds=3 * _LOOP_SECONDS)
    loops = measure_in_turn([each.loop for each in both.values()], long, ramp)
    reads = measure_in_turn([each.read for each in both.values()], less, ramp)
    found = dict(zip(both, map(Walls, loops, reads), strict=True))
    own = (n for n, each in clocks.items() if isinstance(each, WallClock))
    return found | {name: Walls(timed[name], timed[name]) for name in own}
