"""Reverse-mode differentiation: from a loss to the gradients of its parameters.

Values are visited from the last computed to the first, so that all gradients by a value
are known, and added up, before they are pulled further (Griewank and Walther, 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import final

from kerngen.nn.errors import GraphError
from kerngen.nn.variable import AnyTensor, Edge, Variable
from kerngen.runtime import ShapeError, f32
from kerngen_kernels import elementwise


def backward(
    loss: Variable, gradient: AnyTensor | None = None, *, accumulate: bool = False
) -> list[Variable]:
    """Write the gradient of `loss`, a scalar, by every parameter behind it.

    The gradients overwrite what is there, or add to it with `accumulate`; they are
    multiplied by `gradient`, a scalar that is 1 by default.  All is recorded, nothing is
    read back.  The graph is used up: what it kept for this walk is free again.

    Returns:
        The parameters that were reached, each once; all others' gradients are as before.

    Raises:
        ShapeError: If the loss is not a scalar.
        GraphError: If no parameter is behind it, or its graph is used up.
    """
    if loss.shape != ():
        raise ShapeError(
            f"backward: expected a scalar loss, got shape {loss.shape}. Take a mean "
            f"or a sum first."
        )
    if not loss.needs_gradient:
        raise GraphError(
            "backward: the loss depends on no parameter. Compute it from a trainer's "
            "parameters, not from their tensors."
        )
    walk = Walk(accumulate)
    one = loss.tensor.ctx.scalar(1.0, f32) if gradient is None else gradient
    walk.deliver(loss, one, None)
    while walk.queue:
        walk.visit(walk.take())
    return list(walk.reached)


@final
@dataclass(slots=True)
class Walk:
    """A walk under way: gradients by values that are still to be visited.

    `queue` holds their numbers, the last computed first; `reached` the parameters that
    have been written.
    """

    accumulate: bool
    queue: list[int] = field(default_factory=list)
    pending: dict[int, tuple[Variable, AnyTensor]] = field(default_factory=dict)
    reached: dict[Variable, None] = field(default_factory=dict)

    def take(self) -> Variable:
        """Return the last computed of the values with gradients."""
        return self.pending[-heappop(self.queue)][0]

    def visit(self, variable: Variable) -> None:
        """Pull the gradient by a value on to its inputs."""
        if variable.spent:
            raise GraphError(
                "backward: the graph behind this loss was used up by an earlier "
                "backward. Compute the loss again."
            )
        _, dy = self.pending.pop(variable.number)
        edges, variable.edges, variable.spent = variable.edges, (), True
        for item in edges:
            places = list(self._places(item))
            gradients = item.pull(dy, places)
            for target, gradient, place in zip(
                item.inputs, gradients, places, strict=True
            ):
                self.deliver(target, gradient, place)

    def _places(self, item: Edge) -> Iterator[AnyTensor | None]:
        """Yield where an edge may write: what is not written yet, each once."""
        taken: set[Variable] = set()
        for variable in item.inputs:
            fresh = not self.accumulate and variable not in self.reached
            yield variable.gradient if fresh and variable not in taken else None
            taken.add(variable)

    def deliver(
        self, target: Variable, gradient: AnyTensor, place: AnyTensor | None
    ) -> None:
        """Add a gradient to what is known; at `place` it may lie already."""
        if target.gradient is not None:
            self._write(target, target.gradient, gradient, place)
        elif target.needs_gradient:
            self._add(target, gradient)

    def _write(
        self,
        target: Variable,
        goal: AnyTensor,
        gradient: AnyTensor,
        place: AnyTensor | None,
    ) -> None:
        if place is None and (self.accumulate or target in self.reached):
            elementwise.axpy(_flat(gradient), _flat(goal), alpha=1.0)
        elif not _same_place(gradient, goal):
            goal.copy_from(gradient.reshape(goal.shape))
        self.reached[target] = None

    def _add(self, target: Variable, gradient: AnyTensor) -> None:
        number = target.number
        if number not in self.pending:
            heappush(self.queue, -number)
            self.pending[number] = (target, gradient)
            return
        _, other = self.pending[number]
        total = elementwise.add(_flat(other), _flat(gradient))
        self.pending[number] = (target, total.reshape(target.shape))


def _flat(tensor: AnyTensor) -> AnyTensor:
    return tensor.reshape(-1)


def _same_place(one: AnyTensor, other: AnyTensor) -> bool:
    return one.lease is other.lease and one.offset == other.offset
