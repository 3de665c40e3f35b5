"""Ends a run in which no test ends any more, and says which ones were at work.

pytest-timeout ends a test that hangs, by a thread of its process.  Left to this are
processes in which that thread never gets its turn, and those that ended while a child of
theirs holds their pipe: the run would wait for it for ever.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, final


@final
class Watchdog:
    """Watches processes that run tests, each the leader of a session, from another."""

    def __init__(self, patience: float) -> None:
        """Watch a run in which some test ends at least every so many seconds."""
        self._patience = patience
        self._news = monotonic()
        self._running: set[str] = set()
        self._workers: dict[str, int] = {}
        self._over = Event()

    def pytest_sessionstart(self) -> None:
        """Begin."""
        Thread(target=self._watch, daemon=True).start()

    def pytest_unconfigure(self) -> None:
        """End."""
        self._over.set()

    def pytest_xdist_newgateway(self, gateway: Any) -> None:
        """Note a process."""
        self._workers[gateway.id] = gateway._rinfo().pid

    def pytest_testnodedown(self, node: Any) -> None:
        """End what a process has left running."""
        if worker := self._workers.pop(node.gateway.id, 0):  # it may be told twice
            _kill(worker, signal.SIGKILL)

    def pytest_keyboard_interrupt(self) -> None:
        """End all processes, which no terminal's Ctrl-C reaches."""
        self._kill(signal.SIGKILL)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins."""
        self._news = monotonic()
        self._running.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test has ended."""
        self._news = monotonic()
        self._running.discard(nodeid)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            if monotonic() - self._news > self._patience:
                self._end()

    def _end(self) -> None:
        running = "".join(f"\n    {test}" for test in sorted(self._running))
        told = sys.__stderr__ or sys.stderr
        told.write(f"\nNo test has ended for {self._patience:g} s. At work:{running}\n")
        told.flush()
        self._kill(signal.SIGABRT)  # pytest lets them print where their threads are
        sleep(5)
        self._kill(signal.SIGKILL)
        os._exit(1)

    def _kill(self, how: signal.Signals) -> None:
        for worker in tuple(self._workers.values()):
            _kill(worker, how)


def _kill(worker: int, how: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(worker, how)
