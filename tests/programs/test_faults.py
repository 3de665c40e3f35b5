"""The tests of random programs are tested: they find faults planted in the compiler."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from .faults import FAULTS, PlantedFault
from .programs import CHOICES, program_of
from .trial import FaultFoundError, Trial

MOST = 500
QUICK = frozenset(
    {
        "a swapped operand",
        "an unclamped gather",
        "a compound assignment by the wrong operator",
    }
)
"""Faults that few programs get past."""

SELDOM = frozenset(
    {
        "stages that are skipped behind one that runs alone",
        "a prefix that is a term too long",
        "vectors of a row that overlap",
    }
)
"""Faults that too few random programs meet: `kerngen verify` finds them in its battery, and
the tests of plans and of scans by day."""


def found_after(trial: Trial, fault: PlantedFault, seed: int) -> int | None:
    """Return how many programs it takes to find the fault; None for too many."""
    drawn = random.Random(seed)
    for number in range(1, MOST + 1):
        program = program_of(drawn.randbytes(CHOICES))
        try:
            with fault.planted():
                trial.check(program)
        except FaultFoundError:
            # It is the fault that was found only if the sound compiler has none here.
            trial.check(program)
            return number
    return None


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 25
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.name for fault in FAULTS} >= QUICK


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.name in QUICK], ids=str)
def test_a_fault_is_found(
    trial: Trial, fault: PlantedFault, record_property: Callable[[str, object], None]
) -> None:
    taken = found_after(trial, fault, seed=1)
    assert taken is not None
    record_property("programs until the fault was found", taken)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if f.name not in QUICK | SELDOM], ids=str
)
def test_every_fault_is_found(
    trial: Trial, fault: PlantedFault, record_property: Callable[[str, object], None]
) -> None:
    taken = found_after(trial, fault, seed=1)
    assert taken is not None
    record_property("programs until the fault was found", taken)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_planted_and_taken_out(fault: PlantedFault) -> None:
    with fault.planted():
        pass
