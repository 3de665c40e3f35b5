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
from kerngen.runtime.values.fields import is_leaf
from kerngen.verify.calls.sizes import meeting

from .domains import (
    ANY_SCALAR,
    DOMAINS,
    SCALARS,
    Dims,
    Domain,
    Draw,
    like_size,
    spread,
    upper_half,
)
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

    def fit(self, dims: Dims, scalars: Mapping[str, float]) -> Dims:
        """Allowed lengths, close to these, that meet what the kernel requires."""
        fitted, known = self.domain.fit(dims), self._integers(scalars)
        if len(known) < len(self._integer_names):
            return fitted
        met = meeting(self.kernel, fitted | known)
        return {dim: met[dim] for dim in fitted}

    @property
    def _integer_names(self) -> list[str]:
        return [spec.name for spec in self.kernel.scalars if spec.python_type is int]

    def _integers(self, scalars: Mapping[str, float]) -> dict[str, int]:
        names = (name for name in self._integer_names if name in scalars)
        return {name: int(scalars[name]) for name in names}

    def lengths(self, dims: Dims, scalars: Mapping[str, float]) -> Dims:
        """All that guards may ask for: dims, integer scalars, and computed dims."""
        known = dims | self._integers(scalars)
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

    def _length(self, axis: str | int, dims: Mapping[str, int]) -> int:
        if isinstance(axis, int) or axis in dims:
            return axis if isinstance(axis, int) else dims[axis]
        values = {dim.name: dim.value for dim in self.kernel.derived}
        return evaluate(values[axis], dims)

    def _array(
        self, rng: np.random.Generator, spec: TensorSpec, dims: Mapping[str, int]
    ) -> NDArray[Any]:
        shape = tuple(self._length(axis, dims) for axis in spec.axes)
        default: Draw = spread if self.module in _BENT else like_size
        if is_leaf(spec.element) and spec.element.number.bits:
            default = upper_half(spec.element.number)
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
