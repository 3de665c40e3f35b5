"""Checks of arguments of this package: vectors and rows of numbers."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from kerngen.runtime import ArgumentError, ShapeError, Tensor, f32, i32, u32
from kerngen.runtime.tensor import is_tensor
from kerngen.runtime.values.kinds import kind_of

AnyTensor: TypeAlias = Tensor[Any, Any]

_NUMBERS: Final = (f32, i32, u32)


def check_vector(name: str, role: str, x: object) -> AnyTensor:
    """Return the argument if it is a vector of f32, i32 or u32; else raise."""
    vector = _checked_numbers(name, role, x)
    if vector.ndim != 1:
        raise ShapeError(
            f"{name}: {role} has shape {vector.shape} (rank {vector.ndim}); expected a "
            "vector (rank 1). 'x.reshape(x.size)' is all of its elements."
        )
    return vector


def check_rows(name: str, role: str, x: object) -> AnyTensor:
    """Return the argument if it is a vector, or rows, of f32, i32 or u32; else raise."""
    rows = _checked_numbers(name, role, x)
    if not rows.shape:
        raise ShapeError(f"{name}: {role} has rank 0; expected a last axis.")
    return rows


def _checked_numbers(name: str, role: str, x: object) -> AnyTensor:
    if not is_tensor(x) or x.element not in _NUMBERS:
        shown = x.element.__name__ if is_tensor(x) else ""
        given = f"a tensor of {shown}" if shown else kind_of(x)
        raise ArgumentError(
            f"{name}: {role} is {given}; expected a tensor of f32, i32 or u32."
        )
    return x
