"""Holding values and gradients of functions to those that something else computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32
from kerngen.train import Trainer

from .functions import Array, Arrays, Function

Oracle: TypeAlias = Callable[
    [Function, Arrays, Array | None], tuple[Array, dict[str, Array]]
]
"""From arguments and a target to the value, and the gradients of what is minimised.

That is the mean squared distance to the target, or, without one, the value itself.
"""

TOLERANCE = 2e-5
"""Of the largest element: some rounding errors of f32, of about 6e-8 each."""

STEP = 1e-5
"""How far arguments are moved: the error is about 1e-10, a fifth of a millionth of TOLERANCE."""


def by_differences(
    function: Function, arrays: Arrays, target: Array | None
) -> tuple[Array, dict[str, Array]]:
    """An oracle: central differences of NumPy's value, in float64."""
    given = {name: np.array(array, np.float64) for name, array in arrays.items()}

    def loss() -> float:
        y = function.theirs(*given.values())
        return float(y if target is None else ((y - target) ** 2).mean())

    gradients: dict[str, Array] = {}
    for name, array in given.items():
        gradient = gradients[name] = np.empty_like(array)
        for place in np.ndindex(array.shape):
            middle = array[place]
            array[place] = middle + STEP
            after = loss()
            array[place] = middle - STEP
            gradient[place] = (after - loss()) / (2 * STEP)
            array[place] = middle
    return function.theirs(*given.values()), gradients


def check_values_and_gradients(
    ctx: gpu.Context, function: Function, oracle: Oracle
) -> None:
    """Hold a function of parameters to an oracle."""
    arrays = _draw(function)
    trainer = Trainer(ctx, arrays)
    y = function.ours(*trainer.parameters.values())
    target = _target(y)
    value, gradients = oracle(function, arrays, target)
    _assert_close(y.numpy(), value)
    trainer.backward(_loss(ctx, y, target))
    for name, gradient in gradients.items():
        _assert_close(trainer.gradients[name].numpy(), gradient)


def check_gradients_of_computed(
    ctx: gpu.Context, function: Function, oracle: Oracle
) -> None:
    """Hold a function of twice the parameters to an oracle.

    Its inputs are not parameters, and so not places that an arena could give.
    """
    arrays = _draw(function)
    trainer = Trainer(ctx, arrays)
    y = function.ours(*(nn.scale(p, 2.0) for p in trainer.parameters.values()))
    target = _target(y)
    doubled = {name: 2 * array for name, array in arrays.items()}
    _, gradients = oracle(function, doubled, target)
    trainer.backward(_loss(ctx, y, target))
    for name, gradient in gradients.items():
        _assert_close(trainer.gradients[name].numpy(), 2 * gradient)


def _draw(function: Function) -> dict[str, Array]:
    rng = np.random.default_rng(len(str(function)))
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in function.shapes.items()
    }


def _target(y: nn.Variable) -> Array | None:
    if y.shape == ():
        return None
    return np.random.default_rng(1).normal(size=y.shape).astype(np.float32)


def _loss(ctx: gpu.Context, y: nn.Variable, target: Array | None) -> nn.Variable:
    return y if target is None else nn.mean_squared_error(y, ctx.tensor(target, f32))


def _assert_close(actual: Array, wanted: Array) -> None:
    assert actual.shape == wanted.shape
    scale = np.abs(wanted).max(initial=1e-6)
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=TOLERANCE * scale)
