"""Limits of a verification: the number of calls, the seed, and the time."""

from __future__ import annotations

import signal
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import current_thread, main_thread
from typing import Final, final

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity

from kerngen.verify.calls.draw import Drawn, calls
from kerngen.verify.calls.sizes import Fitting

SPENT: Final = "the budget was spent"
_UNCHECKED: Final[tuple[HealthCheck, ...]] = (
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.too_slow,
    HealthCheck.large_base_example,
)
"""Hypothesis's health checks that are off: kernels refuse calls, and adapters are slow."""


@final
class StopError(BaseException):
    """Raised to end hypothesis's run early.

    `why` is the reason that the report gives, as 'the budget was spent'. It is empty where
    the calls themselves are the reason: a failure, or calls that the adapter refused.
    A BaseException, as hypothesis takes any Exception for a failing example.
    """

    def __init__(self, why: str = "") -> None:
        """Hold a reason."""
        super().__init__(why)
        self.why = why


@contextmanager
def limited(until: float) -> Generator[None]:
    """Raise `StopError` in a block that runs beyond a time of `time.monotonic`.

    A signal does that, as a large call may take minutes without a look at the clock.
    Where there are no interval timers (on Windows), and in other threads than the main
    one, there is no limit.
    """
    timed = hasattr(signal, "setitimer") and current_thread() is main_thread()
    if not timed or until == float("inf"):
        yield
        return

    def stop(*_: object) -> None:
        raise StopError(SPENT)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@final
@dataclass(frozen=True)
class Effort:
    """The limits of one run: calls for each way, the seed, and when to end.

    Once a way has had a call, it ends at the time `soon`, so that there is time for the
    others.
    """

    examples: int
    seed: int
    deadline: float = float("inf")
    soon: float = float("inf")

    def shared(self, left: int) -> Effort:
        """Return the limits of one way, if `left` ways share the remaining time."""
        now = time.monotonic()
        return replace(self, soon=now + (self.deadline - now) / max(left, 1))

    def check(self, cases: int) -> None:
        """Raise `StopError` if there is no time for another call after `cases` calls."""
        now = time.monotonic()
        if now > self.deadline or (cases and now > self.soon):
            raise StopError(SPENT)

    def leave(self, seconds: float) -> None:
        """Raise `StopError` if fewer than `seconds` remain."""
        if time.monotonic() + seconds > self.soon:
            raise StopError(SPENT)

    def hold(self, what: str, fitting: Fitting, check: Callable[[Drawn], None]) -> None:
        """Call `check` with random calls from hypothesis; a failing one is simplified.

        The seed is computed by crc32, which is the same in every process; `hash` is not.
        """

        @hypothesis.seed(zlib.crc32(f"{self.seed} {what}".encode()))
        @hypothesis.settings(
            max_examples=self.examples,
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=_UNCHECKED,
            verbosity=Verbosity.quiet,
            print_blob=False,
        )
        @hypothesis.given(calls(fitting))
        def hold(drawn: Drawn) -> None:
            check(drawn)

        hold()
