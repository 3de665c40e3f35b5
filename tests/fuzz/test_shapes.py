"""Large files of one shape each: checked in good time, or refused."""

from __future__ import annotations

from typing import Final

import pytest

from .measure import measured
from .shapes import SHAPES

SECONDS: Final = 2.5
"""The seconds that checking 64 KiB may take where the pace is `PACE`."""

PACE: Final = 0.06
"""The pace (`Cost.pace`) of one of two cores, of which the other is idle.

Where both are busy it is 0.1, and checking takes as much longer.
"""

MOST_MIB: Final = 500
SMALL: Final = 2000


@pytest.mark.parametrize("size", [SMALL])
@pytest.mark.parametrize(
    "name",
    [
        "wrong types",
        pytest.param("kernels", marks=pytest.mark.nightly),
        pytest.param("circles of files", marks=pytest.mark.nightly),
    ],
)
def test_few_shapes_that_are_small(name: str, size: int) -> None:
    ((_, costs),) = measured([name], ["check"], size)
    assert (costs["check"].errors > 0) == (name != "kernels")


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHAPES)
def test_64_kib_are_checked_within_the_limits(name: str) -> None:
    ((_, costs),) = measured([name], ["check"])
    cost = costs["check"]
    assert cost.seconds / cost.pace < SECONDS / PACE
    assert cost.mib < MOST_MIB
