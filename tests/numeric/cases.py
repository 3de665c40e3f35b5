"""The standard kernels with their oracles, and arguments for them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.plan.size import evaluate
from kerngen.runtime.calls.kernel import Kernel, TensorSpec

from .domains import ANY_SCALAR, DOMAINS, SCALARS, Dims, Domain, like_size, spread
from .oracles import ORACLES
from .tolerance import Oracle

Arrays: TypeAlias = dict[str, NDArray[Any]]
Scalars: TypeAlias = dict[str, float]

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

    @property
    def domain(self) -> Domain:
        """What the kernel may be given."""
        return DOMAINS.get(self.kernel.name, Domain())

    def lengths(self, dims: Dims, scalars: Mapping[str, float]) -> Dims:
        """All that guards may ask for: dims, integer scalars, and computed dims."""
        integers = [
            spec.name for spec in self.kernel.scalars if spec.python_type is int
        ]
        known = dims | {
            name: int(scalars[name]) for name in integers if name in scalars
        }
        for dim in self.kernel.derived:
            known[dim.name] = evaluate(dim.value, known)
        return known

    def arrays(self, rng: np.random.Generator, dims: Mapping[str, int]) -> Arrays:
        """Arguments of these lengths; float ones are in float32."""
        inputs = (spec for spec in self.kernel.tensors if spec.access != "write")
        return {spec.name: self._array(rng, spec, dims) for spec in inputs}

    def scalars(self, rng: np.random.Generator) -> Scalars:
        """A value of every scalar."""
        choices = {**SCALARS, **self.domain.scalars}
        chosen: Scalars = {}
        for spec in self.kernel.scalars:
            value: float = rng.choice(choices.get(spec.name, ANY_SCALAR)).item()
            chosen[spec.name] = int(value) if spec.python_type is int else value
        return chosen

    def _array(
        self, rng: np.random.Generator, spec: TensorSpec, dims: Mapping[str, int]
    ) -> NDArray[Any]:
        shape = tuple(a if isinstance(a, int) else dims[a] for a in spec.axes)
        default = spread if self.module in _BENT else like_size
        draw = self.domain.inputs.get(spec.name, default)
        return np.asarray(draw(rng, shape)).astype(spec.element.DTYPE)


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
