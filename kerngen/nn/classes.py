"""Functions on class numbers: embedding and cross-entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.nn.shapes import check_axis, check_rank, check_shape, rows, vector, view
from kerngen.nn.variable import AnyTensor, Value, Variable, as_variable, computed, edge
from kerngen.runtime import Context, DtypeError, Tensor, UniformRangeError, u32
from kerngen.runtime.tensor import is_tensor
from kerngen.runtime.values.foreign import as_array
from kerngen_kernels import indexing
from kerngen_kernels import loss as kernels

Numbers: TypeAlias = (
    Tensor[u32, Any]
    | NDArray[np.integer[Any]]
    | Sequence[int]
    | Sequence[Sequence[int]]
)
"""Ids or labels from 0: a tensor of u32, or an array, which is checked and uploaded.

Those of a tensor are not checked: one that is too large counts as the last.
"""


def embedding(table: Value, ids: Numbers) -> Variable:
    """Return the rows of a table that ids name, of shape [*ids, d].

    Args:
        table: [v, d].
        ids: [...]. Rows of the table, from 0 to v - 1.

    Raises:
        ShapeError: If the rank does not fit.
        UniformRangeError: If an id of an array is not a row of the table.
    """
    rows_of = as_variable(table)
    check_rank("embedding", "the table", rows_of, 2, "[v, d]")
    count, width = rows_of.shape
    numbers = _upload("embedding", rows_of.tensor.ctx, ids, count)
    flat = vector(numbers)

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return indexing.embedding_gradient(flat, rows(dy), v_len=count, out=out)

    y = indexing.embedding(rows_of.tensor, flat)
    return computed(y.reshape((*numbers.shape, width)), edge(rows_of, pull, flat))


def cross_entropy(logits: Value, labels: Numbers) -> Variable:
    """Return the mean of -log(softmax(logits)[label]), a scalar.

    Args:
        logits: [..., n]. Unnormalized scores of the n classes.
        labels: [...]. The right classes, from 0 to n - 1.

    Raises:
        ShapeError: If the shapes do not fit.
        UniformRangeError: If a label of an array is not a class.
    """
    scores = as_variable(logits)
    check_axis("cross_entropy", scores)
    flat = rows(scores.tensor)
    context = scores.tensor.ctx
    classes = _upload("cross_entropy", context, labels, scores.shape[-1])
    check_shape("cross_entropy", "labels", classes, scores.shape[:-1])
    right = vector(classes)

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, flat.shape)
        gradient = kernels.mean_cross_entropy_gradient(flat, right, dy, out=place)
        return gradient.reshape(scores.shape)

    return computed(
        kernels.mean_cross_entropy(flat, right), edge(scores, pull, flat, right)
    )


def _upload(name: str, ctx: Context, numbers: Numbers, count: int) -> Tensor[u32, Any]:
    """Return ids as a tensor of u32; those of an array must be from 0 to below `count`."""
    if is_tensor(numbers):
        if numbers.element is not u32:
            raise DtypeError(
                f"{name}: the numbers have {numbers.element.__name__} elements; "
                f"expected u32."
            )
        return numbers
    array = as_array(numbers)
    if array.dtype.kind not in "iu":
        raise DtypeError(f"{name}: expected integers, got {array.dtype}.")
    wrong = np.argwhere((array < 0) | (array >= count))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise UniformRangeError(
            f"{name}: the number at {place} is {array[place]}; expected 0 to "
            f"{count - 1}."
        )
    return ctx.tensor(array, u32)
