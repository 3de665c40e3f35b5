"""The CPU seconds of each test file, its processes' included: the ten dearest are printed.

A pytest plugin, which `tools/test` asks for by `-p tests.spent`.  Seconds on a clock say
little where other work shares the cores; these hardly change.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from typing import Any

import pytest

NAME = "CPU seconds"
"""What the figure is called in a test's report, by which it comes from a worker."""

SHOWN = 10


def cpu_seconds() -> float:
    """Return what this process has used, and those that it has seen end."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Spent:
    """Takes the time of each test where it runs, and sums it up where it is reported."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.files = defaultdict[str, float](float)
        self._start = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Note when a test begins."""
        self._start = cpu_seconds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> None:
        """Put the figure into the last report of a test."""
        if call.when == "teardown":
            item.user_properties.append((NAME, cpu_seconds() - self._start))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a file's tests took."""
        if report.when == "teardown":
            file = report.nodeid.partition("::")[0]
            figures: dict[str, Any] = dict(report.user_properties)
            self.files[file] += figures.get(NAME, 0.0)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the dearest files, and the sum of all."""
        total = sum(self.files.values())
        terminalreporter.section(f"{total:.0f} CPU seconds in tests; the dearest files")
        dearest = sorted(self.files.items(), key=lambda entry: -entry[1])
        for file, seconds in dearest[:SHOWN]:
            terminalreporter.write_line(f"{seconds:7.1f}  {file}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    config.pluginmanager.register(Spent())
