"""Every case under every strategy that accepts it, and its reference, bit for bit."""

from __future__ import annotations

import pytest

import kerngen.runtime as gpu
from kerngen.ir.strategies import OPTIONS
from tests.compile import built, unless_unfit
from tests.language.cases import Case
from tests.language.every import EVERY
from tests.language.meaning import check, fitting

SMALL_TILES = "gemm tile(16, 32, 8) micro(4, 4)"
STRATEGIES = (
    "",
    *(name for name in OPTIONS if name != "gemm"),
    "gemv rows(3)",
    f"{SMALL_TILES} pad(1)",
    f"{SMALL_TILES} buffers(2) stream(3)",
)
OPTIONAL = ("rows lanes(8)", "rows lanes(128) subgroups(1)", "reduce subgroups(1)")
SIZES = (1, 3, 64, 67)
LARGE = 130
"""What cuts terms in parts; where nothing does, it would take long and tell no more."""


def shown(case: Case, strategy: str) -> str:
    return f"{case}-{strategy.replace(' ', '-') or 'chosen'}"


TURNS = 16
"""A case takes one of so many strategies by default, beside the one chosen for it.

Most cases fit few strategies, and a strategy writes its shaders alike for all that it
fits.
"""


def marks(case: int, strategy: int) -> list[pytest.MarkDecorator]:
    """Mark as nightly all pairs of a case and a strategy but those whose turn it is."""
    is_due = strategy == 0 or (case + strategy) % TURNS == 0
    return [] if is_due and strategy < len(STRATEGIES) else [pytest.mark.nightly]


ALL = [
    pytest.param(
        case, strategy, id=shown(case, strategy), marks=marks(number, position)
    )
    for number, case in enumerate(EVERY)
    for position, strategy in enumerate((*STRATEGIES, *OPTIONAL))
]


@pytest.mark.parametrize(("case", "strategy"), ALL)
def test_schedules_give_what_numpy_gives(
    ctx: gpu.Context, case: Case, strategy: str
) -> None:
    with unless_unfit(strategy), built(fitting(case, strategy)) as (kernel,):
        for size in SIZES:
            check(ctx, case, kernel, size)
        if not strategy or "stream" in strategy:
            check(ctx, case, kernel, LARGE)
