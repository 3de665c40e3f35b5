"""Random sequences of all that a context is asked to do, held to NumPy; nothing is left."""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from kerngen.runtime import Context
from tests.runtime.machine import Machine

quick = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture
def machine(ctx: Context) -> type[Machine]:
    """The machine, on the adapter of `ctx` and a device of its own."""
    features = list(ctx.device.features)
    Machine.device = ctx.device.adapter.request_device_sync(required_features=features)
    gc.collect()
    gc.freeze()  # the machine collects often, and other tests have left much
    return Machine


def test_sequences_agree_with_numpy(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=quick)


# Other sequences each night.  Many in one test take much longer, as Hypothesis keeps what it
# has tried, and the machine collects garbage at any point.
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_long_sequences_agree_with_numpy(machine: type[Machine], part: int) -> None:
    del part  # Hypothesis draws others
    long = settings(
        quick,
        max_examples=150,
        stateful_step_count=100,
        database=None,
        derandomize=False,  # with CI's settings all parts would be the same
    )
    before = gc.get_threshold()
    gc.set_threshold(50, 2, 2)  # at any point, nearly
    try:
        run_state_machine_as_test(machine, settings=long)
    finally:
        gc.set_threshold(*before)
