"""Every case under every strategy that accepts it, and its reference, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kerngen.runtime as gpu
from kerngen.ir.strategies import OPTIONS
from tests.budget import in_turn, is_night
from tests.compile import unless_unfit
from tests.language.cases import Case
from tests.language.every import EVERY
from tests.language.meaning import SMALL_TILES, check, kernel_of

pytestmark = pytest.mark.usefixtures("always_shared")

STRATEGIES = (
    *(name for name in OPTIONS if name != "gemm"),
    "gemv rows(3)",
    f"{SMALL_TILES} pad(1)",
    f"{SMALL_TILES} buffers(2) stream(3)",
)
OPTIONAL = ("rows lanes(8)", "rows lanes(128) subgroups(1)", "reduce subgroups(1)")
SIZES = (1, 3, 64, 67)
LARGE = 130
"""What cuts terms in parts; where nothing does, it would take long and tell no more."""


def sizes(case: Case, strategy: str) -> Iterator[int]:
    """Yield sizes: all at night, by default two of one case and the others of the next."""
    number = EVERY.index(case)
    yield from SIZES if is_night() else SIZES[number % 2 :: 2]
    if "stream" in strategy or (not strategy and (number % 4 == 1 or is_night())):
        yield LARGE


TURNS = 24
"""A case takes one of so many strategies by default, beside the one chosen for it.

Most cases fit few strategies, and a strategy writes its shaders alike for all that it
fits.
"""


LARGE_TILES = 37
"""Each so-manieth case takes the tiles chosen for it by day, if any.

They were two thirds of this file's time.
"""


@pytest.mark.parametrize(
    ("case", "strategy"), in_turn(EVERY, (*STRATEGIES, *OPTIONAL), TURNS)
)
def test_schedules_give_what_numpy_gives(
    ctx: gpu.Context, case: Case, strategy: str
) -> None:
    large = EVERY.index(case) % LARGE_TILES == 0
    with unless_unfit(strategy), kernel_of(case, strategy, large=large) as kernel:
        for size in sizes(case, strategy):
            check(ctx, case, kernel, size)
