"""Checks of arguments when an operation is queued."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.batch.buffer import BufferValue, Floats
from kerngen.runtime import Context, DtypeError, ShapeError, f32
from kerngen.runtime.calls.belonging import of_another_context
from kerngen.runtime.tensor import is_tensor
from kerngen.runtime.values.arrays import to_memory
from kerngen.runtime.values.foreign import as_array
from kerngen.runtime.values.shapes import Shape, normalise_shape


def own_copy(array: ArrayLike) -> NDArray[np.float32]:
    """Return a copy of an array, converted to float32; refuse numbers beyond its range."""
    if is_tensor(array):
        raise DtypeError(
            f"upload: {array!r} is on the device already; batch.import_buffer(tensor) "
            f"takes it without a copy."
        )
    data, _ = to_memory(np.array(as_array(array)), f32)
    return cast("NDArray[np.float32]", data)


def equal_shapes(operation: str, values: Mapping[str, BufferValue]) -> Shape:
    """Return the shape that all inputs must have."""
    (first, value), *others = values.items()
    for name, other in others:
        if other.shape != value.shape:
            raise ShapeError(
                f"{operation}: '{first}' has shape {value.shape} and '{name}' has shape "
                f"{other.shape}; expected the same, a batch does not broadcast."
            )
    return value.shape


def as_rows(operation: str, value: BufferValue) -> Shape:
    """Return the number of rows along the last axis, and their length."""
    if not value.shape:
        raise ShapeError(
            f"{operation}: 'x' has shape (); expected a last axis to work along."
        )
    *outer, last = value.shape
    return math.prod(outer), last


def matrix_lengths(a: BufferValue, b: BufferValue) -> tuple[int, int, int]:
    """Return m, k and n of matrices [m, k] and [k, n]."""
    for name, value in (("a", a), ("b", b)):
        if len(value.shape) != 2:
            raise ShapeError(
                f"matmul: '{name}' has shape {value.shape}; expected a matrix. Give m, "
                f"k and n to read flat buffers as matrices."
            )
    (m, k), (rows, n) = a.shape, b.shape
    if rows != k:
        raise ShapeError(
            f"matmul: 'a' has shape {a.shape} and 'b' has shape {b.shape}; expected "
            f"(m, k) and (k, n), and {k} is not {rows}."
        )
    return m, k, n


def flat_lengths(
    a: BufferValue, b: BufferValue, lengths: Mapping[str, int | None]
) -> tuple[int, int, int]:
    """Return m, k and n as given, if row-major matrices of them fill the buffers."""
    missing = [name for name, length in lengths.items() if length is None]
    if missing:
        raise ShapeError(
            f"matmul: m, k and n are given together or not at all; "
            f"{' and '.join(missing)} is missing."
        )
    m, k, n = normalise_shape(cast("list[int]", list(lengths.values())))
    for name, value, shape in (("a", a, (m, k)), ("b", b, (k, n))):
        if math.prod(value.shape) != math.prod(shape):
            raise ShapeError(
                f"matmul: '{name}' has shape {value.shape}, {math.prod(value.shape)} "
                f"elements; m={m}, k={k}, n={n} expect {math.prod(shape)}, a matrix of "
                f"shape {shape}."
            )
    return m, k, n


def check_import(ctx: Context, tensor: Floats) -> None:
    """Refuse tensors of other contexts and of other elements."""
    if tensor.ctx is not ctx:
        raise of_another_context("import_buffer: the tensor", tensor.ctx, ctx)
    if tensor.element is not f32:
        raise DtypeError(
            f"import_buffer: the tensor has {tensor.element.__name__} elements; a batch "
            f"computes with f32."
        )
