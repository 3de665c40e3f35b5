"""An oracle for gradients: central differences of the forward reference, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerngen.compiler import CompiledModule, _files, _lower_all
from kerngen.emit import emit_binding
from kerngen.gradient import derive
from kerngen.ir.nodes import Kernel, Module, Role
from kerngen.ir.staging import form_stages
from kerngen.ir.types import Scalar
from kerngen.jit.memory import installed
from kerngen.emit.python_names import module_names

STEP: Final = 1e-6
"""Of central differences in float64: their error is about 1e-10 of smooth values."""

Array = NDArray[Any]


def compiled(module: Module, *kernels: Kernel) -> CompiledModule:
    """Compile some kernels with a module's functions, for their references."""
    alone = replace(module, kernels=kernels, warnings=())
    staged = [form_stages(kernel) for kernel in kernels]
    programs = _lower_all(staged, alone, "0" * 64)
    binding = emit_binding(alone, programs, "0" * 64, formatted=False)
    return CompiledModule(alone, programs, binding, _files(alone, programs, binding, ""))


@contextmanager
def references(
    module: Module, *kernels: Kernel
) -> Iterator[dict[str, Callable[..., Any]]]:
    """Yield the references of some kernels by name, for a block."""
    source = compiled(module, *kernels)
    names = module_names(source.module).kernels
    with installed([source]) as modules:
        made = modules[module.path]
        yield {k.name: getattr(made, names[k.name].reference) for k in kernels}


@dataclass
class Case:
    """A kernel, what it is called with, and what its gradient is by."""

    module: Module
    kernel: Kernel
    by: tuple[str, ...]
    given: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    scalars: Mapping[str, Any] = field(default_factory=dict[str, Any])
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    seed: int = 0

    def derived(self) -> Kernel:
        """Return the derived kernel."""
        functions = {f.name: f for f in self.module.functions}
        name = f"{self.kernel.name}_derived"
        return derive(
            self.kernel,
            name=name,
            by=self.by,
            given=self.given,
            functions=functions,
        )

    def worst(self, gradient: Kernel | None = None) -> float:
        """Return how far the gradient is from differences, relative to the largest."""
        gradient = gradient or self.derived()
        with references(self.module, self.kernel, gradient) as found:
            return self._worst(found[self.kernel.name], found[gradient.name], gradient)

    def _worst(
        self, forward: Callable[..., Any], backward: Callable[..., Any], gradient: Kernel
    ) -> float:
        rng = np.random.default_rng(self.seed)
        lengths = self._lengths()
        values = self._values(rng, lengths)
        outputs = [t for t in self.kernel.tensors if t.role is Role.OUTPUT]

        def run(changed: Mapping[str, Any]) -> list[Array]:
            tensors = [
                np.asarray(changed[t.name])
                for t in self.kernel.tensors
                if t.role is not Role.OUTPUT
            ]
            scalars = {p.name: changed[p.name] for p in self.kernel.parameters}
            result = forward(*tensors, **scalars)
            results = result if isinstance(result, tuple) else (result,)
            return [np.asarray(each, np.float64) for each in results]

        first = run(values)
        known = dict(values)
        weights: list[Array | None] = []
        for tensor, value in zip(outputs, first, strict=True):
            known[tensor.name] = value
            if tensor.element is Scalar.F32:
                weight = rng.normal(size=value.shape)
                name = f"d{tensor.name}"
                while name in {t.name for t in self.kernel.tensors}:
                    name += "_2"
                known[name] = weight
                weights.append(weight)
            else:
                weights.append(None)
        for dim, size in lengths.items():
            known[f"{dim}_len"] = size
        arguments = [
            np.asarray(known[t.name])
            for t in gradient.tensors
            if t.role is not Role.OUTPUT
        ]
        scalars = {p.name: known[p.name] for p in gradient.parameters}
        result = backward(*arguments, **scalars)
        results = result if isinstance(result, tuple) else (result,)
        worst = 0.0
        for name, own in zip(self.by, results, strict=True):
            expected = _by_differences(run, values, name, weights)
            own = np.asarray(own)
            assert own.shape == expected.shape, (name, own.shape, expected.shape)
            scale = max(float(np.abs(expected).max(initial=0.0)), 1e-3)
            error = float(np.abs(own - expected).max(initial=0.0)) / scale
            assert np.isfinite(error), name
            worst = max(worst, error)
        return worst

    def _lengths(self) -> dict[str, int]:
        usual = [3, 4, 2, 5, 3, 2, 4]
        return {
            dim: self.sizes.get(dim, usual[place % 7])
            for place, dim in enumerate(self.kernel.dims)
        }

    def _values(
        self, rng: np.random.Generator, lengths: Mapping[str, int]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for tensor in self.kernel.tensors:
            if tensor.role is Role.OUTPUT:
                continue
            shape = [e if isinstance(e, int) else lengths[e] for e in tensor.extents]
            if tensor.name in self.arrays:
                values[tensor.name] = self.arrays[tensor.name]
            elif tensor.element is Scalar.F32:
                values[tensor.name] = rng.uniform(0.2, 1.8, shape)
            else:
                kind = np.uint32 if tensor.element is Scalar.U32 else np.int32
                values[tensor.name] = rng.integers(0, 4, shape).astype(kind)
        for parameter in self.kernel.parameters:
            integer = parameter.memory.spelling in {"u32", "i32"}
            value = 2 if integer else 0.7
            if parameter.default is not None:
                value = parameter.default  # type: ignore[assignment]
            values[parameter.name] = self.scalars.get(parameter.name, value)
        return values


def _by_differences(
    run: Callable[[Mapping[str, Any]], list[Array]],
    values: Mapping[str, Any],
    name: str,
    weights: list[Array | None],
) -> Array:
    """Return the gradient of the weighted sum of all outputs, element by element."""
    at = np.asarray(values[name], np.float64)
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        sides: list[list[Array]] = []
        for step in (STEP, -STEP):
            moved = at.copy()
            moved[place] += step
            changed = moved if at.shape else float(moved)
            sides.append(run({**values, name: changed}))
        total = 0.0
        for weight, above, below in zip(weights, *sides, strict=True):
            if weight is not None:
                total += float((weight * (above - below)).sum())
        gradient[place] = total / (2 * STEP)
    return gradient
