"""The computation graph behind a loss: which part leads to parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.nn.errors import GraphError
from kerngen.nn.variable import Edge, Variable

Parameters: TypeAlias = Collection[Variable] | None
"""The parameters whose gradients are wanted, or all if None."""


@final
@dataclass(frozen=True, slots=True)
class Graph:
    """The values behind a loss: those that lead to wanted parameters, and to others."""

    parameters: Parameters
    leading: frozenset[Variable]
    others: frozenset[Variable]

    def ways(self, value: Variable) -> tuple[Edge, ...]:
        """Return the edges of a value that lead to a wanted parameter."""
        return tuple(_ways(value, self.leading))


def graph_of(loss: Variable, parameters: Parameters) -> Graph:
    """Return the graph behind a loss, once it is checked to be valid still.

    Raises:
        GraphError: If no way leads to wanted parameters, if an earlier walk used up a part
            of it, or if what a part needs is not as it was.
    """
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
    """Return a loss and all that it was computed from and that needs a gradient."""
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
    """Refuse gradients that would be of other contents than the loss was."""
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
