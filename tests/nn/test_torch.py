"""Values and gradients of every function, against PyTorch's in double precision."""

from __future__ import annotations

import pytest

import kerngen.runtime as gpu

from .functions import FUNCTIONS, Function
from .gradients import check_gradients_of_computed, check_values_and_gradients

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_values_and_gradients_are_torchs(function: Function, ctx: gpu.Context) -> None:
    from .in_torch import by_autograd

    check_values_and_gradients(ctx, function, by_autograd)


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_gradients_of_what_is_computed_are_torchs(
    function: Function, ctx: gpu.Context
) -> None:
    from .in_torch import by_autograd

    check_gradients_of_computed(ctx, function, by_autograd)
