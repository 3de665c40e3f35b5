"""Execution of a queue, with as little memory as possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.batch.buffer import BufferValue, Floats
from kerngen.batch.operations import Operation
from kerngen.runtime import Context, f32

Uploads: TypeAlias = Mapping[BufferValue, NDArray[np.float32]]
Made: TypeAlias = dict[BufferValue, Floats]


def run(ctx: Context, uploads: Uploads, operations: Sequence[Operation]) -> None:
    """Upload, record and submit; then all values with handles have their tensors.

    An error leaves the values as they were.  A result that has no handle and that no later
    operation reads goes back to the context's pool at once, where the next result takes
    its memory: a chain of many layers needs the memory of one.
    """
    fused = fuse(operations)
    # The number of the last operation that reads each value.
    last = {
        value: number
        for number, operation in enumerate(fused)
        for value in operation.inputs
    }
    made: Made = {}
    with ctx.batch():
        for value, array in uploads.items():
            if value in last or value.is_held:
                made[value] = _tensor(ctx, array)
        for number, operation in enumerate(fused):
            _run(operation, made)
            done = (*operation.inputs, *operation.outputs)
            _release(made, (each for each in done if last.get(each, -1) <= number))
        # Set only once the submission has succeeded: an error leaves the queue as it was.
        settled = [(value, tensor, tensor.losses) for value, tensor in made.items()]
    for value, tensor, losses in settled:
        value.settle(tensor, losses)


def _tensor(ctx: Context, array: NDArray[np.float32]) -> Floats:
    tensor: Floats = ctx.tensor(array, f32)
    return tensor


def _run(operation: Operation, made: Made) -> None:
    tensors = [_find(value, made, operation.name) for value in operation.inputs]
    made.update(zip(operation.outputs, operation.run(tensors), strict=True))


def _find(value: BufferValue, made: Made, operation: str) -> Floats:
    value.check(f"{operation}: an argument")
    return made[value] if value.tensor is None else value.tensor


def _release(made: Made, values: Iterable[BufferValue]) -> None:
    """Drop the tensors of values that have no handle."""
    for value in values:
        if not value.is_held:
            made.pop(value, None)


# Fusion of neighbouring operations in a queue into one kernel.


def fuse(operations: Sequence[Operation]) -> list[Operation]:
    """Fuse each swish with the product that is the first to read it.

    The two are the middle of a gated feed-forward block, `swish(gate) * up`:

        s = swish(g)
        u = matmul(x, w)           u = matmul(x, w)
        y = mul(s, u)       →      s, y = swish_mul(g, u)

    The fused kernel returns both results, as a caller may have a handle of either.  It is
    queued where the product was: all that it reads is computed by then.
    """
    # The swish that computes each value, and the first operation that reads it.
    makers = {each.outputs[0]: each for each in operations if each.name == "swish"}
    readers: dict[BufferValue, Operation] = {}
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
    makers: Mapping[BufferValue, Operation],
    readers: Mapping[BufferValue, Operation],
) -> Operation | None:
    """Return the swish to fuse with an operation, or None."""
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
