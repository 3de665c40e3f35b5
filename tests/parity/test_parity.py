"""Networks trained here and in PyTorch go the same way, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from kerngen.runtime import Context
from tests.parity import ours
from tests.parity.record import LIMIT, Record, compare
from tests.parity.tasks import TASKS, Task

pytestmark = pytest.mark.torch

ROUNDING_FACTOR = 5
"""How much further from float64 our training may be than PyTorch's in float32."""


def train(task: Task, **options: Any) -> Record:
    """Train in PyTorch."""
    from tests.parity import theirs

    return theirs.train(task, **options)


@cache
def expected(network: str) -> Record:
    return train(TASKS[network])


@cache
def exact(network: str) -> Record:
    return train(TASKS[network], dtype="float64")


def is_as_exact(found: Record, network: str) -> bool:
    """Return whether rounding alone explains how far a record is from float64.

    The limits leave room for 100 times what rounding does, and so for small faults.
    """
    rounding = compare(expected(network), exact(network)).largest()
    distance = compare(found, exact(network)).largest()
    return bool((distance <= ROUNDING_FACTOR * rounding).all())


def by_adam(task: Task) -> Record:
    """Add the decay to the gradients, as Adam does."""
    return train(task, optimizer="Adam")


FAULTS: dict[str, Callable[[Task], Record]] = {
    "a learning rate of 1 % more": lambda task: train(
        task.but(lr=1.01 * task.settings.lr)
    ),
    "another beta1": lambda task: train(task.but(beta1=0.899)),
    "another beta2": lambda task: train(task.but(beta2=0.998)),
    "coupled decay": by_adam,
    "no clipping": lambda task: train(task.but(max_norm=1e9)),
}
"""Trainings that are wrong."""


@pytest.mark.parametrize("network", TASKS)
def test_a_training_is_pytorchs(ctx: Context, network: str) -> None:
    before = ctx.counters.snapshot()
    trained = ours.train(ctx, TASKS[network])
    assert (ctx.counters - before).readbacks == 0
    found = trained.read()
    assert compare(found, expected(network)).faults() == []
    assert is_as_exact(found, network)


@pytest.mark.parametrize("network", TASKS)
def test_clipping_acts_on_some_steps(network: str) -> None:
    clipped = expected(network).norms > TASKS[network].settings.max_norm
    assert 0.1 < clipped.mean() < 0.9


@pytest.mark.parametrize("fault", FAULTS)
def test_the_gate_rejects(fault: str) -> None:
    found = FAULTS[fault](TASKS["two layers"])
    assert compare(found, expected("two layers")).faults() != []


def test_a_small_fault_is_no_rounding() -> None:
    found = train(TASKS["residual"].but(eps=1e-7))
    assert compare(found, expected("residual")).faults() == []
    assert not is_as_exact(found, "residual")


def test_what_is_no_number_is_a_fault() -> None:
    good = expected("two layers")
    losses = good.losses.copy()
    losses[7] = np.nan
    differences = compare(replace(good, losses=losses), good)
    assert differences.faults() == ["loss at step 8: nan"]


def test_a_parameter_at_the_end_counts() -> None:
    good = expected("two layers")
    bias = good.parameters["out.bias"] * (1 + 2 * LIMIT)
    found = replace(good, parameters={**good.parameters, "out.bias": bias})
    assert compare(found, good).faults() == ["out.bias: 0.002"]
