"""What the tests of random programs share, and the report that they make together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator

import pytest

import kerngen.runtime as gpu
from tests.conftest import open_software_context

from . import judges
from .campaign import COUNTS
from .constructs import table
from .trial import Trial


@pytest.fixture
def trial() -> Generator[Trial]:
    """Try programs on the software adapter, before both judges.

    Each test has a context of its own: one remembers every kernel that it ever ran.
    """
    with (
        judges.both() as asked,
        open_software_context() as ctx,
        gpu.open(adapter="reference") as reference,
    ):
        yield Trial(ctx, reference, asked)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many programs ran, and how many of them use each construct."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == COUNTS:
                found: dict[str, int] = json.loads(str(value))
                counts.update(found)
    programs = counts.pop("programs", 0)
    if programs:
        discarded = counts.pop("discarded", 0)
        terminalreporter.section(f"{programs} random programs, {discarded} discarded")
        terminalreporter.write_line(table(counts, programs))
