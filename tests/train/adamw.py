"""Holding a trainer's steps of AdamW to those that something else takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.train import Trainer
from tests.numeric.oracles_optim import adamw

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Settings: TypeAlias = Mapping[str, float]

LR, BETA1, BETA2, EPS, WEIGHT_DECAY = 0.02, 0.8, 0.98, 1e-6, 0.1


class Optimizer(Protocol):
    """What takes the same steps, and has the parameters that come of them."""

    @property
    def parameters(self) -> Arrays:
        """The parameters after the last step."""
        ...

    def step(self, gradients: Arrays, max_norm: float) -> float:
        """Clip the gradients, take a step, and return the norm before the clipping."""
        ...


MakeOptimizer: TypeAlias = Callable[[Arrays, Mapping[str, Settings]], Optimizer]
"""From parameters, and the settings of each that differ from the usual ones."""


class AdamW:
    """AdamW in NumPy and float64, a parameter at a time."""

    def __init__(self, parameters: Arrays, settings: Mapping[str, Settings]) -> None:
        self._settings = settings
        self._step = 0
        self._state = {
            name: (
                array.astype(np.float64),
                np.zeros(array.shape),
                np.zeros(array.shape),
            )
            for name, array in parameters.items()
        }

    @property
    def parameters(self) -> Arrays:
        return {name: parameter for name, (parameter, _, _) in self._state.items()}

    def step(self, gradients: Arrays, max_norm: float) -> float:
        self._step += 1
        exact = {name: array.astype(np.float64) for name, array in gradients.items()}
        norm = math.sqrt(sum((array**2).sum() for array in exact.values()))
        for name, gradient in exact.items():
            parameter, m, v = self._state[name]
            self._state[name] = adamw(
                parameter,
                gradient * min(1.0, max_norm / norm),
                m,
                v,
                step=self._step,
                **self._settings[name],
            )
        return norm


def many(count: int) -> dict[str, NDArray[np.float32]]:
    """Parameters p0, p1 and so on, of 3, 4 and so on elements."""
    rng = np.random.default_rng(count)
    return {f"p{i}": rng.normal(size=3 + i).astype(np.float32) for i in range(count)}


def check_steps(ctx: gpu.Context, clip: float, make: MakeOptimizer) -> Trainer:
    """Take steps by drawn gradients here and there, and compare everything."""
    arrays = many(40)
    settings = {
        "lr": LR,
        "beta1": BETA1,
        "beta2": BETA2,
        "eps": EPS,
        "weight_decay": WEIGHT_DECAY,
    }
    trainer, theirs = Trainer(ctx, arrays), make(
        arrays, dict.fromkeys(arrays, settings)
    )
    for gradients in _drawn(trainer, 20):
        wanted = theirs.step(gradients, clip)
        assert abs(trainer.clip_gradients(clip).item() - wanted) <= 1e-5 * wanted
        trainer.adamw_step(
            lr=LR, beta1=BETA1, beta2=BETA2, eps=EPS, weight_decay=WEIGHT_DECAY
        )
    _assert_same(trainer, theirs)
    return trainer


def check_settings_by_name(ctx: gpu.Context, make: MakeOptimizer) -> Trainer:
    """Take steps with a rate and a decay for each parameter, and compare."""
    arrays = many(6)
    rates = {name: 0.01 * (1 + number) for number, name in enumerate(arrays)}
    decays = {name: 0.3 * (number % 2) for number, name in enumerate(arrays)}
    settings = {n: {"lr": rates[n], "weight_decay": decays[n]} for n in arrays}
    trainer, theirs = Trainer(ctx, arrays), make(arrays, settings)
    for gradients in _drawn(trainer, 5):
        theirs.step(gradients, math.inf)
        trainer.adamw_step(lr=rates, weight_decay=decays)
    _assert_same(trainer, theirs)
    return trainer


def _drawn(trainer: Trainer, count: int) -> Iterator[Arrays]:
    """Yield gradients of so many steps, each given to the trainer."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        gradients = {
            name: rng.normal(size=tensor.shape).astype(np.float32)
            for name, tensor in trainer.tensors.items()
        }
        for name, gradient in gradients.items():
            trainer.gradients[name].copy_from(gradient)
        yield gradients


def _assert_same(trainer: Trainer, theirs: Optimizer) -> None:
    for name, parameter in theirs.parameters.items():
        ours = trainer.tensors[name].numpy()
        np.testing.assert_allclose(ours, parameter, rtol=3e-6, atol=3e-6)
