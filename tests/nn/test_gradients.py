"""Values and gradients of every function, against NumPy's in double precision."""

from __future__ import annotations

from typing import Any

import pytest

import kerngen.runtime as gpu
from kerngen import nn

from .functions import FUNCTIONS, Function
from .gradients import (
    by_differences,
    check_gradients_of_computed,
    check_values_and_gradients,
)


def several_of(every: int) -> list[Any]:
    """Each so-manieth by default, but no attention: that takes 30 seconds to compile."""
    return [
        pytest.param(
            function,
            id=str(function),
            marks=(
                [pytest.mark.nightly]
                if number % every or "attention" in function.name
                else []
            ),
        )
        for number, function in enumerate(FUNCTIONS)
    ]


@pytest.mark.parametrize("function", several_of(3))
def test_values_and_gradients_are_numpys(function: Function, ctx: gpu.Context) -> None:
    check_values_and_gradients(ctx, function, by_differences)


@pytest.mark.parametrize("function", several_of(4))
def test_gradients_flow_through_what_is_computed(
    function: Function, ctx: gpu.Context
) -> None:
    check_gradients_of_computed(ctx, function, by_differences)


def test_every_function_is_here() -> None:
    tested = {function.name.split("_causal")[0] for function in FUNCTIONS}
    others = {"backward", "parameter", "differentiable", "dropout", "attention"}
    functions = {n for n in nn.__all__ if n.islower()}
    assert functions <= tested | others
