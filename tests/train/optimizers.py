"""Holding a trainer's steps to those that something else takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.train import Trainer
from kerngen.train.optimizers import Name
from tests.numeric.oracles_optim import STEPS

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Settings: TypeAlias = Mapping[str, float]


@final
@dataclass(frozen=True)
class Case:
    """An optimizer, and settings that differ from its own."""

    name: Name
    settings: Settings = field(default_factory=dict[str, float])

    def __str__(self) -> str:
        """Its name, and what is set."""
        return "-".join([self.name, *self.settings])

    def trainer(self, ctx: gpu.Context, parameters: Arrays) -> Trainer:
        """Return a trainer by this optimizer."""
        return Trainer(ctx, parameters, optimizer=self.name)

    def step(self, trainer: Trainer, **more: float | Settings) -> None:
        """Take a step."""
        getattr(trainer, f"{self.name}_step")(**self.settings, **more)


ADAMW = Case("adamw", {"beta1": 0.8, "beta2": 0.98, "eps": 1e-6})
CASES = (
    ADAMW,
    Case("adam", {"beta1": 0.8, "beta2": 0.98, "eps": 1e-6}),
    Case("sgd"),
    Case("sgd", {"momentum": 0.9}),
    Case("sgd", {"momentum": 0.9, "nesterov": True}),
    Case("lion", {"beta1": 0.8, "beta2": 0.98}),
)
each_optimizer = pytest.mark.parametrize("case", CASES, ids=str)


class Optimizer(Protocol):
    """What takes the same steps, and has the parameters that come of them."""

    @property
    def parameters(self) -> Arrays:
        """The parameters after the last step."""
        ...

    def step(self, gradients: Arrays, max_norm: float) -> float:
        """Clip the gradients, take a step, and return the norm before the clipping."""
        ...


MakeOptimizer: TypeAlias = Callable[[Name, Arrays, Mapping[str, Settings]], Optimizer]
"""From a name, parameters, and the settings of each that differ from the usual ones."""


class InNumPy:
    """An optimizer in NumPy and float64, a parameter at a time."""

    def __init__(
        self, name: Name, parameters: Arrays, settings: Mapping[str, Settings]
    ) -> None:
        self._take = STEPS[name]
        self._counts = name in {"adamw", "adam"}
        self._settings = settings
        self._step = 0
        moments = 2 if self._counts else 1
        self._state: dict[str, tuple[NDArray[Any], ...]] = {
            name: (
                array.astype(np.float64),
                *(np.zeros(array.shape) for _ in range(moments)),
            )
            for name, array in parameters.items()
        }

    @property
    def parameters(self) -> Arrays:
        return {name: parameter for name, (parameter, *_) in self._state.items()}

    def step(self, gradients: Arrays, max_norm: float) -> float:
        self._step += 1
        exact = {name: array.astype(np.float64) for name, array in gradients.items()}
        norm = math.sqrt(sum((array**2).sum() for array in exact.values()))
        number = {"step": self._step} if self._counts else {}
        for name, gradient in exact.items():
            parameter, *moments = self._state[name]
            clipped = gradient * min(1.0, max_norm / norm)
            settings = {**self._settings[name], **number}
            self._state[name] = self._take(parameter, clipped, *moments, **settings)
        return norm


def many(count: int) -> dict[str, NDArray[np.float32]]:
    """Parameters p0, p1 and so on, of 3, 4 and so on elements."""
    rng = np.random.default_rng(count)
    return {f"p{i}": rng.normal(size=3 + i).astype(np.float32) for i in range(count)}


def check_steps(
    ctx: gpu.Context, clip: float, make: MakeOptimizer, case: Case = ADAMW
) -> Trainer:
    """Take steps by drawn gradients here and there, and compare everything."""
    arrays = many(40)
    settings = {"lr": 0.02, "weight_decay": 0.1}
    each = {name: {**case.settings, **settings} for name in arrays}
    trainer, theirs = case.trainer(ctx, arrays), make(case.name, arrays, each)
    for gradients in _drawn(trainer, 20):
        wanted = theirs.step(gradients, clip)
        assert abs(trainer.clip_gradients(clip).item() - wanted) <= 1e-5 * wanted
        case.step(trainer, **settings)
    _assert_same(trainer, theirs)
    return trainer


def check_settings_by_name(
    ctx: gpu.Context, make: MakeOptimizer, case: Case
) -> Trainer:
    """Take steps with a rate and a decay for each parameter, and compare."""
    arrays = many(6)
    rates = {name: 0.01 * (1 + number) for number, name in enumerate(arrays)}
    decays = {name: 0.3 * (number % 2) for number, name in enumerate(arrays)}
    settings = {
        name: {**case.settings, "lr": rates[name], "weight_decay": decays[name]}
        for name in arrays
    }
    trainer, theirs = case.trainer(ctx, arrays), make(case.name, arrays, settings)
    for gradients in _drawn(trainer, 5):
        theirs.step(gradients, math.inf)
        case.step(trainer, lr=rates, weight_decay=decays)
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
