"""Losses of real targets, and means, of which others are made."""

from __future__ import annotations

from kerngen.nn.shapes import check_same_shape, vector, view
from kerngen.nn.variable import (
    AnyTensor,
    Edge,
    Value,
    Variable,
    as_variable,
    computed,
    edge,
)
from kerngen_kernels import elementwise, layout, reduction
from kerngen_kernels import loss as kernels


def mean(x: Value) -> Variable:
    """Return the mean of all elements, a scalar."""
    given = as_variable(x)
    size = given.tensor.size

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        each = vector(layout.tile(dy.reshape((1, 1)), down=size))
        dx = elementwise.scale(each, alpha=1 / max(size, 1), out=view(out, (size,)))
        return dx.reshape(given.shape)

    return computed(reduction.mean(vector(given.tensor)), edge(given, pull))


def mean_squared_error(prediction: Value, target: Value) -> Variable:
    """Return the mean of (prediction - target)^2, a scalar.

    Raises:
        ShapeError: If the shapes differ.
    """
    given, wanted = as_variable(prediction), as_variable(target)
    check_same_shape("mean_squared_error", given, wanted)
    value = kernels.mean_squared_error(vector(given.tensor), vector(wanted.tensor))
    return computed(value, _way_back(given, wanted), _way_back(wanted, given))


def _way_back(one: Variable, other: Variable) -> Edge:
    """Return the way back to one of the two, which may be swapped."""
    a, b = vector(one.tensor), vector(other.tensor)

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, a.shape)
        return kernels.mean_squared_error_gradient(a, b, dy, out=place).reshape(
            one.shape
        )

    return edge(one, pull, a, b)
