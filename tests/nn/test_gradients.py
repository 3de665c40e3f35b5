"""Values and gradients of every function, against NumPy's in double precision."""

from __future__ import annotations

import pytest

import kerngen.runtime as gpu
from kerngen import nn
from tests.budget import sampled

from .functions import FUNCTIONS, Function
from .gradients import (
    by_differences,
    check_gradients_of_computed,
    check_values_and_gradients,
)


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 3))
def test_values_and_gradients_are_numpys(function: Function, ctx: gpu.Context) -> None:
    check_values_and_gradients(ctx, function, by_differences)


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 4))
def test_gradients_flow_through_what_is_computed(
    function: Function, ctx: gpu.Context
) -> None:
    check_gradients_of_computed(ctx, function, by_differences)


def test_every_function_is_here() -> None:
    tested = {function.name.split("_causal")[0] for function in FUNCTIONS}
    others = {"backward", "parameter", "differentiable", "dropout", "attention"}
    functions = {n for n in nn.__all__ if n.islower()}
    assert functions <= tested | others
