"""Functions from one tensor to another of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from kerngen.nn import shapes
from kerngen.nn.variable import AnyTensor, Value, Variable, as_variable, computed, edge

Side: TypeAlias = Literal["input", "output", "neither"]
"""What the gradient of a function is a function of, beside the gradient by its output."""


@final
@dataclass(frozen=True, slots=True)
class Unary:
    """A function of one tensor: its kernel, and the kernel of its gradient.

    Both take tensors as `view` shows them: as a vector, or as a matrix of rows.
    """

    forward: Callable[[AnyTensor], AnyTensor]
    gradient: Callable[..., AnyTensor]
    of: Side
    view: Callable[[AnyTensor], AnyTensor] = shapes.vector

    def __call__(self, value: Value) -> Variable:
        """Apply the function."""
        x = as_variable(value)
        seen = self.view(x.tensor)
        y = self.forward(seen)
        shape = seen.shape
        kept = {"input": (seen,), "output": (y,), "neither": ()}[self.of]

        def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
            place = shapes.view(out, shape)
            return self.gradient(*kept, self.view(dy), out=place).reshape(x.shape)

        return computed(y.reshape(x.shape), edge(x, pull, *kept))
