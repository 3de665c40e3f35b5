"""Queued operations: the kernel of each, and the shapes in which it takes its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.batch.buffer import BufferValue, Floats
from kerngen.runtime.values.shapes import Shape
from kerngen_kernels import elementwise, matmul, reduction, softmax

Kernel: TypeAlias = Callable[..., "Floats | tuple[Floats, ...]"]

KERNELS: Mapping[str, Kernel] = {
    "relu": elementwise.relu,
    "leaky_relu": elementwise.leaky_relu,
    "scale": elementwise.scale,
    "add": elementwise.add,
    "sub": elementwise.sub,
    "mul": elementwise.mul,
    "sigmoid": elementwise.sigmoid,
    "tanh": elementwise.tanh,
    "swish": elementwise.swish,
    "swish_mul": elementwise.swish_mul,
    "gelu": elementwise.gelu,
    "dot": reduction.dot,
    "softmax": softmax.softmax,
    "matmul": matmul.matmul_nn,
}
"""The kernel of each operation."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A queued call of a kernel; `views` are the shapes of its inputs."""

    name: str
    inputs: tuple[BufferValue, ...]
    views: tuple[Shape, ...]
    outputs: tuple[BufferValue, ...]
    scalars: Mapping[str, float] = field(default_factory=dict[str, float])

    def run(self, tensors: Iterable[Floats]) -> list[Floats]:
        """Call the kernel on the inputs' tensors; return the outputs'."""
        pairs = zip(tensors, self.views, strict=True)
        views = [tensor.reshape(shape) for tensor, shape in pairs]
        results = KERNELS[self.name](*views, **self.scalars)
        made = results if isinstance(results, tuple) else (results,)
        return [
            tensor.reshape(value.shape)
            for tensor, value in zip(made, self.outputs, strict=True)
        ]
