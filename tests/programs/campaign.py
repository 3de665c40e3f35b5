"""Many programs at once: drawn by hypothesis, tried one after the other, and counted."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hypothesis import HealthCheck, Phase, given, reject, seed, settings

from .constructs import CONSTRUCTS, constructs_of
from .programs import Program, programs
from .trial import Trial
from .typed_constructs import TYPED

COUNTS: Final = "constructs of random programs"
"""The name under which a test reports its counts."""

_SLOW: Final = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)

RAREST: Final = 0.1
"""The least share of the programs that uses each construct."""

RAREST_TYPED: Final = 0.02
"""The same for each construct of structs, vectors and matrices.

Of many programs at least 5 in 100 use each; of few, fewer may.
"""

RAREST_ORDERED: Final = 0.004
"""The same for each construct of `ORDERED`: `test_ordered` draws programs of nothing else."""

ORDERED: Final = ("argmax", "argmin", "condition by a key")
"""The constructs of ordered programs that these programs have, too: 1.6 to 9 in 100 use each."""


def campaign(trial: Trial, number: int, count: int) -> Counter[str]:
    """Try `count` programs, always the same ones; return how many use what.

    Beside the constructs, the counts hold the programs and those discarded.
    """
    counts: Counter[str] = Counter(programs=0, discarded=0)

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(
            Phase.generate,
        ),  # shrinking takes minutes: add it where that is worth it
        report_multiple_bugs=False,
        suppress_health_check=_SLOW,
    )
    @given(programs())
    def try_one(program: Program) -> None:
        outcome = trial.check(program)
        if outcome.discarded:
            counts["discarded"] += 1
            reject()
        counts["programs"] += 1
        counts.update(constructs_of(outcome.text) | outcome.noted & {*TYPED})

    try_one()
    return counts


def rare(counts: Counter[str]) -> list[str]:
    """Return the constructs that too few programs use."""
    programs = counts["programs"]
    least = dict.fromkeys(CONSTRUCTS, RAREST) | dict.fromkeys(TYPED, RAREST_TYPED)
    least |= dict.fromkeys(ORDERED, RAREST_ORDERED)
    return [name for name, share in least.items() if counts[name] < share * programs]
