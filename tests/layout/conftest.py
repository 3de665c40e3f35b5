"""What the tests of layouts share: the judges, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kerngen.runtime as gpu
from tests.judges.tint import Tint

from .bench import Bench
from .judged import Judges


@pytest.fixture(scope="session")
def judges(ctx: gpu.Context) -> Iterator[Judges]:
    """Return the judges, on the device of the software adapter."""
    device = ctx.device
    tint = Tint()
    yield Judges(Bench(device), tint)
    tint.close()
