"""Reshaping of tensors to the vectors and matrices that kernels take, and checks."""

from __future__ import annotations

import math
from typing import Any

from kerngen.nn.variable import AnyTensor, Variable
from kerngen.runtime import ShapeError, Tensor


def vector(tensor: Tensor[Any, Any]) -> Tensor[Any, Any]:
    """Return a tensor's elements as one vector."""
    return tensor.reshape((tensor.size,))


def rows(tensor: AnyTensor) -> AnyTensor:
    """Return a tensor as a matrix, whose rows are the vectors along the last axis."""
    *outer, last = tensor.shape
    return tensor.reshape((math.prod(outer), last))


def view(tensor: AnyTensor | None, shape: tuple[int, ...]) -> AnyTensor | None:
    """Return a reshaped view of a tensor; None stays None."""
    return None if tensor is None else tensor.reshape(shape)


def check_rank(name: str, role: str, value: Variable, rank: int, axes: str) -> None:
    """Refuse an argument of another rank; `axes` are those that it should have."""
    if value.ndim != rank:
        raise ShapeError(
            f"{name}: {role} has shape {value.shape} (rank {value.ndim}); expected "
            f"{axes} (rank {rank})."
        )


def check_axis(name: str, value: Variable) -> Variable:
    """Return an argument that has a last axis, or refuse it."""
    if value.ndim == 0:
        raise ShapeError(f"{name}: the input is a scalar; expected an axis at least.")
    return value


def check_features(name: str, value: Variable, expected: int, by: str) -> None:
    """Refuse an argument whose last axis is not as long as `by`."""
    if not value.shape or value.shape[-1] != expected:
        raise ShapeError(
            f"{name}: the input has shape {value.shape}; expected its last axis to be "
            f"{expected}, from {by}."
        )


def check_same_shape(name: str, one: Variable, other: Variable) -> None:
    """Refuse two arguments of different shapes."""
    if one.shape != other.shape:
        raise ShapeError(
            f"{name}: the shapes {one.shape} and {other.shape} differ; expected the "
            f"same."
        )


def check_shape(
    name: str, role: str, tensor: Tensor[Any, Any], expected: tuple[int, ...]
) -> None:
    """Refuse a tensor of another shape."""
    if tensor.shape != expected:
        raise ShapeError(
            f"{name}: {role} has shape {tensor.shape}; expected {expected}."
        )
