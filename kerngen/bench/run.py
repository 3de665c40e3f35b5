"""A run: every case on every contestant, within a budget of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.bench.case import Case
from kerngen.bench.measure import Clock, Effort, Timing, clock_of, measure
from kerngen.bench.peers import Peer
from kerngen.runtime import Context, Error

Contestant: TypeAlias = Callable[[Case], AbstractContextManager[Clock | str]]
"""Yields what times a case, or why nothing does; what it takes is freed behind it."""


class PeerError(Exception):
    """What another library raised, in its words."""


@final
@dataclass(frozen=True, slots=True)
class Result:
    """A case with its timings by contestant, and why others have none."""

    case: Case
    timings: Mapping[str, Timing]
    notes: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds for all cases; each gets an equal part of what is left."""

    seconds: float
    begin: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.begin + self.seconds - time.monotonic()

    def effort(self, wanted: Effort, measurements: int) -> Effort:
        """Return the effort for the next of so many measurements."""
        share = self.left / max(measurements, 1) / 2
        return Effort(wanted.samples, wanted.launches, min(wanted.seconds, share))


def on_context(ctx: Context) -> Contestant:
    """Return the contestant that runs a case on a context."""

    @contextmanager
    def contest(case: Case) -> Generator[Clock | str]:
        refusal = case.refusal(ctx)
        if refusal:
            yield refusal
            return
        try:
            yield clock_of(ctx, case.prepare(ctx))
        finally:
            ctx.trim()

    return contest


def on_peer(peer: Peer) -> Contestant:
    """Return the contestant that runs a case's twin in another library."""

    @contextmanager
    def contest(case: Case) -> Generator[Clock | str]:
        try:
            with peer.clock(case) as clock:
                yield clock or "it has no twin here"
        except Exception as error:
            raise PeerError(f"{type(error).__name__}: {error}") from error

    return contest


def run(
    cases: Sequence[Case],
    contestants: Mapping[str, Contestant],
    effort: Effort,
    budget: Budget,
) -> Iterator[Result]:
    """Yield the result of each case, as it comes."""
    for number, case in enumerate(cases):
        timings: dict[str, Timing] = {}
        notes: dict[str, str] = {}
        for place, (name, contestant) in enumerate(contestants.items()):
            if budget.left <= 0:
                notes[name] = f"the budget of {budget.seconds:g} s was used up"
                continue
            after = (len(cases) - number) * len(contestants) - place
            found = _contest(contestant, case, budget.effort(effort, after))
            if isinstance(found, Timing):
                timings[name] = found
            else:
                notes[name] = found
        yield Result(case, timings, notes)


def _contest(contestant: Contestant, case: Case, effort: Effort) -> Timing | str:
    """Return a timing, or why there is none, in the runtime's or the peer's words."""
    try:
        with contestant(case) as clock:
            found = clock if isinstance(clock, str) else measure(clock, effort)
            del clock  # what it holds is freed at the end of the block
            return found
    except (Error, PeerError, MemoryError) as error:
        return str(error) or type(error).__name__
