"""Fusion of neighbouring operations in a queue into one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kerngen.batch.buffer import Value
from kerngen.batch.operations import Operation


def fuse(operations: Sequence[Operation]) -> list[Operation]:
    """Fuse each swish with the product that is the first to read it.

    The two are the middle of a gated feed-forward block: `swish(gate) * up`.  The fused
    kernel has the results of both as outputs, as a caller may hold either.  It is queued
    where the product was: all that it reads is computed by then.
    """
    makers = {each.outputs[0]: each for each in operations if each.name == "swish"}
    readers: dict[Value, Operation] = {}
    for each in operations:
        for value in each.inputs:
            readers.setdefault(value, each)
    places: dict[Operation, tuple[Operation, ...]] = {}
    for each in operations:
        swish = _partner(each, makers, readers)
        if swish is not None:
            places[swish] = ()
            places[each] = (_join(swish, each),)
    return [new for each in operations for new in places.get(each, (each,))]


def _partner(
    operation: Operation,
    makers: Mapping[Value, Operation],
    readers: Mapping[Value, Operation],
) -> Operation | None:
    """Return the swish to compute together with an operation, if there is one."""
    if operation.name != "mul" or operation.inputs[0] is operation.inputs[1]:
        return None
    for value in operation.inputs:
        if value in makers and readers[value] is operation:
            return makers[value]
    return None


def _join(swish: Operation, product: Operation) -> Operation:
    (activated,) = swish.outputs
    (other,) = (value for value in product.inputs if value is not activated)
    return Operation(
        "swish_mul",
        (*swish.inputs, other),
        product.views,
        (activated, *product.outputs),
    )
