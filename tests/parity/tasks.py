"""What is trained on both sides: initial parameters, batches and settings.

All numbers come from generators with fixed seeds; nothing here knows who trains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

HEADS = 2
"""The heads of the transformer's attention."""


@final
@dataclass(frozen=True)
class Batch:
    """What a network is given, and what it should say: arrays of f32, or of numbers."""

    x: Array
    y: Array


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a step; the decay is large, so that it counts."""

    lr: float
    max_norm: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.1


@final
@dataclass(frozen=True)
class Task:
    """A network by its name, and all that its training depends on.

    A step has a batch, or several whose gradients are added up.
    """

    network: str
    parameters: Mapping[str, Array]
    steps: tuple[tuple[Batch, ...], ...]
    settings: Settings

    def but(self, **settings: float) -> Task:
        """Return the task with other settings."""
        return replace(self, settings=replace(self.settings, **settings))


@final
@dataclass(frozen=True)
class Draw:
    """Draws initial parameters."""

    rng: np.random.Generator

    def weight(self, outputs: int, inputs: int) -> Array:
        """Return a weight [outputs, inputs] that keeps the variance of its input."""
        return self.array((outputs, inputs), inputs**-0.5)

    def array(self, shape: tuple[int, ...], deviation: float, mean: float = 0) -> Array:
        """Return normally distributed numbers of f32."""
        return self.rng.normal(mean, deviation, shape).astype(np.float32)

    def norm(self, name: str, length: int) -> dict[str, Array]:
        """Return a gain near 1 and a bias near 0."""
        gain, bias = self.array((length,), 0.1, 1), self.array((length,), 0.1)
        return {f"{name}.gain": gain, f"{name}.bias": bias}

    def linear(self, name: str, outputs: int, inputs: int) -> dict[str, Array]:
        """Return a weight and a bias."""
        weight, bias = self.weight(outputs, inputs), self.array((outputs,), 0.1)
        return {f"{name}.weight": weight, f"{name}.bias": bias}


def two_layers() -> Task:
    """Classes that depend on the input, some of them drawn: the loss stays far from 0."""
    rng = np.random.default_rng(20)
    samples, features, hidden, classes = 24, 22, 36, 10
    teacher = rng.normal(size=(features, classes))

    def batch() -> Batch:
        x = rng.normal(size=(samples, features)).astype(np.float32)
        scores = x @ teacher + rng.normal(0, 3, (samples, classes))
        return Batch(x, scores.argmax(1))

    draw = Draw(np.random.default_rng(21))
    parameters = {
        **draw.linear("hidden", hidden, features),
        **draw.linear("out", classes, hidden),
    }
    settings = Settings(lr=3e-3, max_norm=1.0)
    return Task("two layers", parameters, _steps(200, batch), settings)


def transformer() -> Task:
    """Sequences of which most numbers follow from the one before.

    The keys have no bias: it adds the same to all scores of a query, so that its gradient
    is nothing but rounding, which AdamW would make a step of full size.
    """
    rng = np.random.default_rng(40)
    sequences, length, numbers, width = 3, 13, 30, 24
    follower = rng.permutation(numbers)

    def batch() -> Batch:
        drawn = rng.integers(0, numbers, (sequences, length + 1))
        for place in range(1, length + 1):
            certain = rng.random(sequences) < 0.7
            drawn[certain, place] = follower[drawn[certain, place - 1]]
        return Batch(drawn[:, :-1], drawn[:, 1:])

    draw = Draw(np.random.default_rng(41))
    parameters = {
        "table": draw.array((numbers, width), 0.5),
        "positions": draw.array((length, width), 0.5),
        **draw.norm("before", width),
        **draw.linear("query", width, width),
        "key.weight": draw.weight(width, width),
        **draw.linear("value", width, width),
        **draw.linear("attended", width, width),
        **draw.norm("between", width),
        **draw.linear("up", 2 * width, width),
        **draw.linear("down", width, 2 * width),
        **draw.norm("after", width),
        **draw.linear("head", numbers, width),
    }
    settings = Settings(lr=3e-3, max_norm=1.3)
    return Task("transformer", parameters, _steps(200, batch), settings)


def residual() -> Task:
    """Real targets, parameters that are used twice, and two batches to a step."""
    rng = np.random.default_rng(30)
    samples, features, hidden = 10, 18, 28
    teacher = rng.normal(0, features**-0.5, (features, features))

    def batch() -> Batch:
        x = rng.normal(size=(samples, features)).astype(np.float32)
        y = np.tanh(x @ teacher) + rng.normal(0, 0.1, x.shape)
        return Batch(x, y.astype(np.float32))

    draw = Draw(np.random.default_rng(31))
    parameters = {
        **draw.linear("in", hidden, features),
        **draw.linear("mix", hidden, hidden),
        "first.gain": draw.array((hidden,), 0.1, 1),
        "second.gain": draw.array((hidden,), 0.1, 1),
        "last.gain": draw.array((hidden,), 0.1, 1),
    }
    settings = Settings(lr=1e-2, max_norm=1.0)
    return Task("residual", parameters, _steps(40, batch, 2), settings)


def _steps(
    count: int, batch: Callable[[], Batch], batches: int = 1
) -> tuple[tuple[Batch, ...], ...]:
    return tuple(tuple(batch() for _ in range(batches)) for _ in range(count))


TASKS = {task.network: task for task in (two_layers(), transformer(), residual())}
"""All tasks, by the names of their networks."""
