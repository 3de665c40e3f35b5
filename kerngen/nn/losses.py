"""Losses for real targets, and the mean."""

from __future__ import annotations

from kerngen.nn.differentiable import KernelFunction, differentiable
from kerngen.nn.elementwise import reshape
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

    # Every element has the gradient dy / size.
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


def huber(prediction: Value, target: Value, delta: float = 1.0) -> Variable:
    """Return the mean of squares up to `delta`, of absolute values beyond, a scalar.

    With e = |prediction - target|: e^2 / 2 where e <= delta, else delta (e - delta / 2).

    Raises:
        ShapeError: If the shapes differ.
        GraphError: If the target is not constant.
    """
    return _mean_of("huber", kernels.huber, prediction, target, delta=delta)


def binary_cross_entropy(logits: Value, target: Value) -> Variable:
    """Return the mean of -target log p - (1 - target) log(1 - p), p = sigmoid(logits).

    Raises:
        ShapeError: If the shapes differ.
        GraphError: If the target is not constant.
    """
    kernel = kernels.binary_cross_entropy
    return _mean_of("binary_cross_entropy", kernel, logits, target)


def _mean_of(
    name: str, kernel: KernelFunction, x: Value, target: Value, **options: float
) -> Variable:
    given, wanted = as_variable(x), as_variable(target)
    check_same_shape(name, given, wanted)
    size = (given.tensor.size,)
    flat = (reshape(each, size) for each in (given, wanted))
    return mean(differentiable(kernel)(*flat, **options))


def _way_back(one: Variable, other: Variable) -> Edge:
    """Return the edge to `one`; the squared difference is symmetric in both."""
    a, b = vector(one.tensor), vector(other.tensor)

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, a.shape)
        return kernels.mean_squared_error_gradient(a, b, dy, out=place).reshape(
            one.shape
        )

    return edge(one, pull, a, b)
