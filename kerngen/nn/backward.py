"""Reverse-mode differentiation: from a loss to the gradients of its parameters.

Values are visited from the last computed to the first, so that all gradients by a value
are known, and added up, before they are pulled further (Griewank and Walther, 2008):

    w ──▶ y = w x ──▶ z = y y ──▶ loss        computed
    w ◀── y ◀──────── z ◀──────── loss        visited
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias, final

from kerngen.nn.errors import GraphError
from kerngen.nn.shapes import vector
from kerngen.nn.variable import (
    AnyTensor,
    Edge,
    Variable,
    Walked,
    as_variable,
    check_tensor,
)
from kerngen.runtime import ShapeError, f32
from kerngen_kernels import elementwise


def backward(
    loss: Variable,
    gradient: AnyTensor | None = None,
    *,
    parameters: Collection[Variable] | None = None,
    accumulate: bool = False,
    on_final: Callable[[Variable], object] | None = None,
) -> list[Variable]:
    """Write the gradient of `loss`, a scalar, by the parameters behind it.

    Everything is recorded, nothing is read back.  The part of the graph that was walked is
    used up: the tensors that it kept for this are free again.

    Args:
        loss: A scalar.
        gradient: A scalar by which all gradients are multiplied; 1 by default.
        parameters: The parameters whose gradients are written; by default all.
        accumulate: Whether gradients are added to the present ones, or overwrite them.
        on_final: Called with each parameter once its gradient is recorded whole, while
            others are still to come: a parameter that is used twice is written twice.

    Returns:
        The parameters that were reached, each once; all others' gradients are as before.

    Raises:
        ShapeError: If the loss is not a scalar.
        GraphError: If no parameter is behind it, if its graph is used up, or if a tensor
            that it was computed from has been overwritten; nothing is written then.
        DtypeError: If the loss or `gradient` is no tensor of f32.
    """
    root = as_variable(loss)
    if root.shape != ():
        raise ShapeError(
            f"backward: expected a scalar loss, got shape {root.shape}. Take a mean "
            f"first."
        )
    one = root.tensor.ctx.scalar(1.0, f32) if gradient is None else gradient
    check_tensor(one)
    walk = BackwardWalk(graph_of(root, parameters), accumulate)
    if on_final is not None:
        walk.awaited, walk.on_final = _uses(walk.graph, root), on_final
    walk.deliver(root, one, None if accumulate else root.gradient)
    while walk.queue:
        walk.visit(walk.take())
    return list(walk.reached)


@final
@dataclass(slots=True)
class BackwardWalk:
    """A backward walk: values still to be visited, and gradients known so far.

    - `queue`: a heap of the numbers of the values that wait, negated, so that the least
      one is that of the last computed value
    - `pending`: by number, the values that wait, each with its gradient so far
    - `reached`: the parameters that have been written
    - `awaited`: for `on_final`, how often each parameter is still to be written
    """

    graph: Graph
    accumulate: bool
    queue: list[int] = field(default_factory=list[int])
    pending: dict[int, tuple[Variable, AnyTensor]] = field(
        default_factory=dict[int, tuple[Variable, AnyTensor]]
    )
    reached: dict[Variable, None] = field(default_factory=dict[Variable, None])
    awaited: Counter[Variable] = field(default_factory=Counter[Variable])
    on_final: Callable[[Variable], object] | None = None

    def take(self) -> Variable:
        """Return the value to visit next: the one that was computed last."""
        return self.pending[-heappop(self.queue)][0]

    def visit(self, value: Variable) -> None:
        """Compute the gradients by a value's inputs from the gradient by the value."""
        _, dy = self.pending.pop(value.number)
        edges = self.graph.ways(value)
        walked = Walked(self.graph.parameters, value in self.graph.others)
        value.spend(edges, walked)
        for item in edges:
            places = list(self._places(item))
            gradients = item.pull(dy, places)
            for target, gradient, place in zip(
                item.inputs, gradients, places, strict=True
            ):
                self.deliver(target, gradient, place)

    def _places(self, item: Edge) -> Iterator[AnyTensor | None]:
        """Yield the destinations of an edge: the gradient of a parameter, or None.

        An edge writes a parameter's gradient in place the first time. Later ones are new
        tensors, which `deliver` adds to it.
        """
        taken: set[Variable] = set()
        for value in item.inputs:
            fresh = value in self.graph.leading and value not in self.reached
            free = fresh and value not in taken and not self.accumulate
            yield value.gradient if free else None
            taken.add(value)

    def deliver(
        self, target: Variable, gradient: AnyTensor, place: AnyTensor | None
    ) -> None:
        """Add a gradient to that of `target`; it may be in its `place` already."""
        if target not in self.graph.leading:
            return
        if target.gradient is not None:
            self._write(target, target.gradient, gradient, place)
        else:
            self._add(target, gradient)

    def _write(
        self,
        target: Variable,
        goal: AnyTensor,
        gradient: AnyTensor,
        place: AnyTensor | None,
    ) -> None:
        """Write to a parameter's gradient `goal`, unless the pull has done so already."""
        if place is None:
            elementwise.axpy(vector(gradient), vector(goal), alpha=1.0)
        elif not _same_place(gradient, goal):
            goal.copy_from(gradient)
        self.reached[target] = None
        if self.on_final is not None:
            self.awaited[target] -= 1
            if not self.awaited[target]:
                self.on_final(target)

    def _add(self, target: Variable, gradient: AnyTensor) -> None:
        """Add to the gradient by a computed value, which waits in the queue."""
        number = target.number
        if number not in self.pending:
            heappush(self.queue, -number)
            self.pending[number] = (target, gradient)
            return
        _, other = self.pending[number]
        total = elementwise.add(vector(other), vector(gradient))
        self.pending[number] = (target, total.reshape(target.shape))


def _uses(graph: Graph, root: Variable) -> Counter[Variable]:
    """Return how often a walk from `root` writes the gradient of each parameter."""
    uses = Counter(
        target
        for value in graph.leading
        for edge in graph.ways(value)
        for target in edge.inputs
        if target.gradient is not None
    )
    uses[root] += 1
    return uses


def _same_place(one: AnyTensor, other: AnyTensor) -> bool:
    return one.lease is other.lease and one.offset == other.offset


# The computation graph behind a loss: which part leads to parameters.


Parameters: TypeAlias = Collection[Variable] | None
"""The parameters whose gradients are wanted, or all if None."""


@final
@dataclass(frozen=True, slots=True)
class Graph:
    """The values behind a loss: those that lead to wanted parameters, and to others.

    A value may be in both: `others` are for errors, if a later walk needs what this one
    used up.
    """

    parameters: Parameters
    leading: frozenset[Variable]
    others: frozenset[Variable]

    def ways(self, value: Variable) -> tuple[Edge, ...]:
        """Return the edges of a value that lead to a wanted parameter."""
        return tuple(_ways(value, self.leading))


def graph_of(loss: Variable, parameters: Parameters) -> Graph:
    """Return the graph behind a loss, after a check that it is still valid.

    Raises:
        GraphError: If no edges lead to wanted parameters, if an earlier walk used up a
            part of the graph, or if a tensor that an edge needs has been overwritten.
    """
    # In the order of computation, inputs come before the values computed from them.
    leading: set[Variable] = set()
    others: set[Variable] = set()
    for value in sorted(_behind(loss), key=lambda each: each.number):
        _check_walked(value, parameters)
        wanted = parameters is None or value in parameters
        for found, is_one in ((leading, wanted), (others, not wanted)):
            if (value.gradient is not None and is_one) or any(_ways(value, found)):
                found.add(value)
    if loss not in leading:
        raise GraphError(
            "backward: the loss depends on no parameter whose gradient is wanted. "
            "Compute it from a trainer's parameters, not from their tensors."
        )
    graph = Graph(parameters, frozenset(leading), frozenset(others))
    _check_kept(graph)
    return graph


def _ways(value: Variable, found: Collection[Variable]) -> Iterator[Edge]:
    return (edge for edge in value.edges if any(each in found for each in edge.inputs))


def _behind(loss: Variable) -> set[Variable]:
    """Return a loss and all values behind it that need a gradient."""
    found, waiting = {loss}, [loss]
    while waiting:
        for edge in waiting.pop().edges:
            new = {each for each in edge.inputs if each.needs_gradient} - found
            found |= new
            waiting += new
    return found


def _check_walked(value: Variable, parameters: Parameters) -> None:
    if any(each.led_to(parameters) for each in value.walked):
        raise GraphError(
            "backward: the graph behind this loss was used up by an earlier backward. "
            "Compute the loss again."
        )


def _check_kept(graph: Graph) -> None:
    """Refuse a graph whose kept tensors were overwritten, or are about to be."""
    written = {
        value.gradient.lease.block
        for value in graph.leading
        if value.gradient is not None
    }
    kept = (k for v in graph.leading for edge in graph.ways(v) for k in edge.kept)
    for each in kept:
        if not each.is_same:
            raise GraphError(
                f"backward: {each.tensor!r}, which a gradient needs as it was, has been "
                f"overwritten or lost since the loss was computed, or another tensor of "
                f"its buffer. Call backward() before you take a step or load new data."
            )
        if each.tensor.lease.block in written:
            raise GraphError(
                f"backward: {each.tensor!r}, which a gradient needs, lies in a buffer of "
                f"the gradients that are to be written. Compute the loss from a copy."
            )
