"""The CPU time that each test file takes; the dearest are printed behind a long run.

It includes child processes, and is about the same on a busy machine, where the time on the
clock is not.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Final, final

import pytest

_SHOWN: Final = 10
"""How many files are printed."""

_LONG: Final = 30.0
"""CPU seconds from which a run is a long one."""


def _cpu() -> float:
    """Return the CPU time so far, children included."""
    return sum(os.times()[:4])


@final
class Costs:
    """A plugin of pytest, in each process of a run.

    A process that runs tests sends their costs along with its reports; the one that
    collects the reports adds them up.
    """

    def __init__(self) -> None:
        """Begin to count."""
        self._last = 0.0
        self._files: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        """Leave out what imports took."""
        self._last = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the cost of a test's set-up, call or end in the report of it."""
        report = yield
        now = _cpu()
        vars(report)["cpu"] = now - self._last
        self._last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the costs of a file."""
        self._files[report.nodeid.partition("::")[0]] += vars(report).get("cpu", 0.0)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the dearest files."""
        total = sum(self._files.values())
        if total < _LONG:
            return
        terminalreporter.section(f"{total:.0f} CPU seconds, imports aside")
        for file, seconds in self._files.most_common(_SHOWN):
            terminalreporter.line(f"{seconds:7.1f} s {file}")
