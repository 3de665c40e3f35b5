"""Arguments for the standard kernels: which values make sense where.

Terms of sums are of like size, with random signs, so that a term left out shows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.kernel import Kernel, TensorSpec

from .oracles import ORACLES
from .tolerance import Oracle

Shape: TypeAlias = tuple[int, ...]
Draw: TypeAlias = Callable[[np.random.Generator, Shape], NDArray[Any]]
Arrays: TypeAlias = dict[str, NDArray[Any]]


def like_size(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Magnitudes within a factor of three of each other, either sign."""
    return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice((-1.0, 1.0), shape))


def spread(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Where activations bend, and beyond."""
    return rng.uniform(-8.0, 8.0, shape)


def positive(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """From small to large, never 0."""
    return np.asarray(np.exp(rng.uniform(-8.0, 8.0, shape)))


def logits(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Rows of like-sized scores, some of them far from 0."""
    return np.asarray(like_size(rng, shape) + rng.choice((0.0, -100.0, 100.0)))


def labels(rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
    """Mostly classes; some that are none, and one that is negative as an i32."""
    return rng.choice((0, 1, 2, 3, 5, 1000, 2**32 - 1), shape)


_INPUTS: Mapping[str, Draw] = {
    "log.x": positive,
    "sqrt.x": positive,
    "div.b": like_size,
    "adamw.v": positive,
    "clip_by_norm.total": positive,
    "softmax.x": logits,
    "log_softmax.x": logits,
    "cross_entropy.logits": logits,
    "cross_entropy.labels": labels,
    "cross_entropy_gradient.logits": logits,
    "cross_entropy_gradient.labels": labels,
}
_SCALARS: Mapping[str, Sequence[float]] = {
    "low": (-3.0, 0.1),
    "high": (0.7, 5.0),
    "lr": (1e-3, 0.1),
    "beta1": (0.9, 0.5),
    "beta2": (0.999, 0.95),
    "eps": (1e-8, 1e-3),
    "weight_decay": (0.0, 0.01),
    "step": (1, 2, 1000),
    "max_norm": (0.5, 1e6),
}
_ANY_SCALAR = (1.0, 0.3, -2.5)
_BENT = frozenset({"elementwise", "nn", "optim"})
"""The modules whose kernels hold no sums of their float inputs, but curves."""


@final
@dataclass(frozen=True)
class Case:
    """A standard kernel and its oracle."""

    module: str
    kernel: Kernel
    oracle: Oracle

    def __str__(self) -> str:
        """The kernel's full name, `matmul.matmul_nn`."""
        return f"{self.module}.{self.kernel.name}"

    def arrays(self, rng: np.random.Generator, dims: Mapping[str, int]) -> Arrays:
        """Arguments of these lengths; float ones are in float32."""
        inputs = (spec for spec in self.kernel.tensors if spec.access != "write")
        return {spec.name: self._array(rng, spec, dims) for spec in inputs}

    def scalars(self, rng: np.random.Generator) -> dict[str, float]:
        """A value of every scalar."""
        chosen: dict[str, float] = {}
        for spec in self.kernel.scalars:
            value: float = rng.choice(_SCALARS.get(spec.name, _ANY_SCALAR)).item()
            chosen[spec.name] = int(value) if spec.element.is_integer else value
        return chosen

    def _array(
        self, rng: np.random.Generator, spec: TensorSpec, dims: Mapping[str, int]
    ) -> NDArray[Any]:
        shape = tuple(a if isinstance(a, int) else dims[a] for a in spec.axes)
        default = spread if self.module in _BENT else like_size
        draw = _INPUTS.get(f"{self.kernel.name}.{spec.name}", default)
        return np.asarray(draw(rng, shape)).astype(spec.element.dtype)


def standard_kernels() -> tuple[Case, ...]:
    """Every kernel that kerngen_kernels holds, with the oracle of its name."""
    return tuple(
        Case(module, kernel, oracles[kernel.name])
        for module, oracles in ORACLES.items()
        for kernel in kernels_of(module)
    )


def kernels_of(module: str) -> tuple[Kernel, ...]:
    """The kernels of one generated module."""
    members = vars(importlib.import_module(f"kerngen_kernels.{module}")).values()
    return tuple(member for member in members if isinstance(member, Kernel))
