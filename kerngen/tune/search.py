"""The search: coordinate descent over options, within a time limit.

One option is varied at a time, or a few that depend on each other:

    gemm → gemm tile(128, 64, 16) micro(8, 8) → gemm tile(128, 64, 16) micro(8, 8) pad(1)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.tune.candidates import TuneCandidate, groups, variations
from kerngen.tune.trial import Outcome, TrialVerdict

Attempt: TypeAlias = Callable[[TuneCandidate | None, float], Outcome]
"""A function that tries a candidate (None: the present schedule), given the best seconds."""


@final
@dataclass(slots=True)
class Search:
    """The state of a search, which ends when `time.monotonic` reaches `end`."""

    attempt: Attempt
    end: float
    found: dict[TuneCandidate | None, Outcome] = field(default_factory=dict)

    @property
    def best(self) -> TuneCandidate | None:
        """The fastest candidate with right results, or None."""
        return min(self.found, key=lambda candidate: self.found[candidate].seconds)

    @property
    def seconds(self) -> float:
        """The time of the best candidate."""
        return min((o.seconds for o in self.found.values()), default=float("inf"))

    @property
    def verdicts(self) -> Counter[TrialVerdict]:
        """The number of candidates with each verdict."""
        return Counter(outcome.verdict for outcome in self.found.values())

    def fastest(self, count: int) -> list[TuneCandidate]:
        """Return the fastest candidates."""
        timed = [c for c, o in self.found.items() if o.verdict is TrialVerdict.TIMED]
        ordered = sorted(timed, key=lambda candidate: self.found[candidate].seconds)
        return [candidate for candidate in ordered if candidate is not None][:count]

    def run(self, starts: Iterable[TuneCandidate]) -> Iterator[None]:
        """Try the present schedule, the starts, and variations of the best candidates.

        The starts are varied in the order of their times, each option by option, until no
        change helps.  It yields after every trial, so that the caller can show progress.
        """
        # The present schedule first: it sets the time that the others must beat.
        given = [*dict.fromkeys(starts)]
        yield from self._try([None, *given])
        for start in sorted(filter(self._is_fit, given), key=self._seconds):
            yield from self._descend(start)

    def _descend(self, start: TuneCandidate) -> Iterator[None]:
        """Move to the best variation of each group of options, until none is better."""
        here = start
        while True:
            before = here
            for group in groups(start.strategy):
                tried = [*variations(here, group)]
                yield from self._try(tried)
                here = min((here, *tried), key=self._seconds)
            if here == before or self._is_over():
                return

    def _try(self, candidates: Iterable[TuneCandidate | None]) -> Iterator[None]:
        for candidate in candidates:
            if self._is_over() and self.found:
                return
            if candidate not in self.found:
                self.found[candidate] = self.attempt(candidate, self.seconds)
                yield

    def _is_fit(self, candidate: TuneCandidate) -> bool:
        outcome = self.found.get(candidate)
        return outcome is not None and outcome.verdict is not TrialVerdict.UNFIT

    def _is_over(self) -> bool:
        return time.monotonic() >= self.end

    def _seconds(self, candidate: TuneCandidate) -> float:
        outcome = self.found.get(candidate)
        return outcome.seconds if outcome else float("inf")
