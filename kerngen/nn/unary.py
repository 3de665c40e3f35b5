"""Functions of one tensor that give one of its shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

from kerngen.nn import shapes
from kerngen.nn.variable import AnyTensor, Value, Variable, as_variable, computed, edge


@final
@dataclass(frozen=True, slots=True)
class Unary:
    """A kernel, and that of its gradient, which is called with what it is a function of.

    Both take the tensor as `view` shows it: as a vector, or as a matrix of rows.
    """

    forward: Callable[[AnyTensor], AnyTensor]
    gradient: Callable[..., AnyTensor]
    of: Literal["input", "output"]
    view: Callable[[AnyTensor], AnyTensor] = shapes.vector

    def __call__(self, value: Value) -> Variable:
        """Apply it."""
        x = as_variable(value)
        seen = self.view(x.tensor)
        y = self.forward(seen)
        kept = seen if self.of == "input" else y

        def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
            place = shapes.view(out, kept.shape)
            return self.gradient(kept, self.view(dy), out=place).reshape(x.shape)

        return computed(y.reshape(x.shape), edge(x, pull, kept))
