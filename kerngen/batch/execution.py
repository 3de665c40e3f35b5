"""Execution of a queue, with as little memory as possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.batch.buffer import Floats, Value
from kerngen.batch.fusion import fuse
from kerngen.batch.operations import Operation
from kerngen.runtime import Context, f32

Uploads: TypeAlias = Mapping[Value, NDArray[np.float32]]
Made: TypeAlias = dict[Value, Floats]


def run(ctx: Context, uploads: Uploads, operations: Sequence[Operation]) -> None:
    """Upload, record and submit; then all values with handles have their tensors.

    Whatever raises leaves the values as they were.  A result that no handle and no
    later operation reads goes back to the context's pool at once, for the next one to
    take: a chain of many layers needs the memory of one.
    """
    fused = fuse(operations)
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
        settled = [(value, tensor, tensor.losses) for value, tensor in made.items()]
    for value, tensor, losses in settled:
        value.settle(tensor, losses)


def _tensor(ctx: Context, array: NDArray[np.float32]) -> Floats:
    tensor: Floats = ctx.tensor(array, f32)
    return tensor


def _run(operation: Operation, made: Made) -> None:
    tensors = [_find(value, made, operation.name) for value in operation.inputs]
    made.update(zip(operation.outputs, operation.run(tensors), strict=True))


def _find(value: Value, made: Made, operation: str) -> Floats:
    value.check(f"{operation}: an argument")
    return made[value] if value.tensor is None else value.tensor


def _release(made: Made, values: Iterable[Value]) -> None:
    """Drop the tensors of values that nobody can read."""
    for value in values:
        if not value.is_held:
            made.pop(value, None)
