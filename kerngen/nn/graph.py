"""The graph behind a loss: what of it leads to parameters, and whether it still holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kerngen.nn.errors import GraphError
from kerngen.nn.variable import Edge, Variable


def leading_to(
    loss: Variable, parameters: Collection[Variable] | None
) -> frozenset[Variable]:
    """Return the values from which a way leads to the parameters, to any if None.

    Raises:
        GraphError: If there is no such way, if an earlier walk used up a part of it, or
            if what a part keeps was overwritten since.
    """
    leading: set[Variable] = set()
    for value in sorted(_behind(loss), key=lambda each: each.number):
        if value.spent:
            raise GraphError(
                "backward: the graph behind this loss was used up by an earlier "
                "backward. Compute the loss again."
            )
        wanted = parameters is None or value in parameters
        if (value.gradient is not None and wanted) or any(ways(value, leading)):
            leading.add(value)
    if loss not in leading:
        raise GraphError(
            "backward: the loss depends on no parameter whose gradient is wanted. "
            "Compute it from a trainer's parameters, not from their tensors."
        )
    for value in leading:
        for edge in ways(value, leading):
            _check_kept(edge)
    return frozenset(leading)


def ways(value: Variable, leading: Collection[Variable]) -> Iterator[Edge]:
    """Yield the edges of a value of which an input leads to a parameter."""
    return (
        edge for edge in value.edges if any(each in leading for each in edge.inputs)
    )


def _behind(loss: Variable) -> set[Variable]:
    """Return a loss and all that it was computed from and that needs a gradient."""
    found, waiting = {loss}, [loss]
    while waiting:
        for edge in waiting.pop().edges:
            new = {each for each in edge.inputs if each.needs_gradient} - found
            found |= new
            waiting += new
    return found


def _check_kept(edge: Edge) -> None:
    for tensor, writes in edge.kept:
        if tensor.writes != writes:
            raise GraphError(
                f"backward: {tensor!r}, which a gradient needs as it was, has been "
                f"overwritten since the loss was computed, or another tensor of its "
                f"arena. Walk back before you take a step or load new data."
            )
