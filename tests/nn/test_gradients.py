"""Values and gradients of every function, against torch in double precision."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32
from kerngen.train import Trainer

from .functions import FUNCTIONS, Function

Arrays = Mapping[str, NDArray[np.float32]]

TOLERANCE = 2e-5
"""Of the largest element: some rounding errors of f32, of about 6e-8 each."""


def draw(function: Function) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(len(str(function)))
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in function.shapes.items()
    }


def expected(
    function: Function, arrays: Arrays, target: NDArray[np.float32] | None
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """The value, and the gradients of its distance to a target (itself if None)."""
    given = {
        name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for name, array in arrays.items()
    }
    y = function.theirs(*given.values())
    loss = y if target is None else ((y - torch.tensor(target)) ** 2).mean()
    found = torch.autograd.grad(loss, list(given.values()))
    gradients = {name: g.numpy() for name, g in zip(given, found, strict=True)}
    return y.detach().numpy(), gradients


def assert_close(actual: NDArray[np.float32], wanted: NDArray[np.float64]) -> None:
    assert actual.shape == wanted.shape
    scale = np.abs(wanted).max(initial=1e-6)
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=TOLERANCE * scale)


def target_for(y: nn.Variable) -> NDArray[np.float32] | None:
    if y.shape == ():
        return None
    return np.random.default_rng(1).normal(size=y.shape).astype(np.float32)


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_values_and_gradients_are_torchs(function: Function, ctx: gpu.Context) -> None:
    arrays = draw(function)
    trainer = Trainer(ctx, arrays)
    y = function.ours(*trainer.parameters.values())
    target = target_for(y)
    value, gradients = expected(function, arrays, target)
    assert_close(y.numpy(), value)
    loss = y if target is None else nn.mean_squared_error(y, ctx.tensor(target, f32))
    trainer.backward(loss)
    for name, gradient in gradients.items():
        assert_close(trainer.gradients[name].numpy(), gradient)


@pytest.mark.parametrize("function", FUNCTIONS, ids=str)
def test_gradients_flow_through_what_is_computed(
    function: Function, ctx: gpu.Context
) -> None:
    """The inputs are twice the parameters, and so no places that an arena could give."""
    arrays = draw(function)
    trainer = Trainer(ctx, arrays)
    inputs = [nn.scale(p, 2.0) for p in trainer.parameters.values()]
    y = function.ours(*inputs)
    target = target_for(y)
    doubled = {name: 2 * array for name, array in arrays.items()}
    _, gradients = expected(function, doubled, target)
    loss = y if target is None else nn.mean_squared_error(y, ctx.tensor(target, f32))
    trainer.backward(loss)
    for name, gradient in gradients.items():
        assert_close(trainer.gradients[name].numpy(), 2 * gradient)


def test_every_function_is_here() -> None:
    tested = {function.name.split("_causal")[0] for function in FUNCTIONS}
    others = {"backward", "parameter", "dropout", "attention"}
    functions = {n for n in nn.__all__ if n.islower()}
    assert functions <= tested | others
