"""Functions of single elements: activations, sums and products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

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
from kerngen.runtime import ShapeError, UniformRangeError
from kerngen.runtime.calls.scalars import check_number
from kerngen_kernels import elementwise, layout, nn, random

Side: TypeAlias = Literal["input", "output", "neither"]
"""The tensor that a function's gradient reads, beside the gradient by its output.

That of relu reads the input, that of tanh, dy (1 - y^2), the output.
"""


@final
@dataclass(frozen=True, slots=True)
class UnaryFunction:
    """A function of one tensor: its kernel, and the kernel of its gradient.

    Both take tensors as `view` shows them: as a vector, or as a matrix of rows.
    """

    forward: Callable[[AnyTensor], AnyTensor]
    gradient: Callable[..., AnyTensor]
    of: Side
    view: Callable[[AnyTensor], AnyTensor] = vector

    def __call__(self, value: Value) -> Variable:
        """Apply the function."""
        x = as_variable(value)
        seen = self.view(x.tensor)
        y = self.forward(seen)
        shape = seen.shape
        # The tensors that the gradient's kernel takes before dy.
        kept = {"input": (seen,), "output": (y,), "neither": ()}[self.of]

        def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
            place = view(out, shape)
            return self.gradient(*kept, self.view(dy), out=place).reshape(x.shape)

        return computed(y.reshape(x.shape), edge(x, pull, *kept))


_RELU = UnaryFunction(elementwise.relu, nn.relu_gradient, "input")
_GELU = UnaryFunction(elementwise.gelu, nn.gelu_gradient, "input")
_GELU_TANH = UnaryFunction(elementwise.gelu_tanh, nn.gelu_tanh_gradient, "input")
_SWISH = UnaryFunction(elementwise.swish, nn.swish_gradient, "input")
_SIGMOID = UnaryFunction(elementwise.sigmoid, nn.sigmoid_gradient, "output")
_TANH = UnaryFunction(elementwise.tanh, nn.tanh_gradient, "output")


def relu(x: Value) -> Variable:
    """Return max(x, 0), element by element; its gradient at 0 is 0."""
    return _RELU(x)


def leaky_relu(x: Value, slope: float = 0.01) -> Variable:
    """Return x where x > 0, else slope x."""

    def forward(t: AnyTensor) -> AnyTensor:
        return elementwise.leaky_relu(t, slope=slope)

    def gradient(t: AnyTensor, dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return nn.leaky_relu_gradient(t, dy, slope=slope, out=out)

    return UnaryFunction(forward, gradient, "input")(x)


def gelu(x: Value) -> Variable:
    """Return x Phi(x), the exact form, as torch's default."""
    return _GELU(x)


def gelu_tanh(x: Value) -> Variable:
    """Return the approximation of `gelu` by tanh, as torch's `approximate="tanh"`."""
    return _GELU_TANH(x)


def swish(x: Value) -> Variable:
    """Return x / (1 + exp(-x)), also called SiLU."""
    return _SWISH(x)


def sigmoid(x: Value) -> Variable:
    """Return 1 / (1 + exp(-x))."""
    return _SIGMOID(x)


def tanh(x: Value) -> Variable:
    """Return the hyperbolic tangent of x."""
    return _TANH(x)


def scale(x: Value, alpha: float) -> Variable:
    """Return alpha x, with a number alpha."""

    def forward(t: AnyTensor) -> AnyTensor:
        return elementwise.scale(t, alpha=alpha)

    def gradient(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return elementwise.scale(dy, alpha=alpha, out=out)

    return UnaryFunction(forward, gradient, "neither")(x)


def dropout(x: Value, rate: float, seed: int) -> Variable:
    """Return x / (1 - rate) with probability 1 - rate, else 0 (Srivastava et al., 2014).

    The same seed drops the same elements, also in the gradient: give each step and layer a
    seed of its own.

    Raises:
        UniformRangeError: If the rate is not from 0 to below 1.
    """
    if not 0.0 <= check_number("dropout", "rate", rate) < 1.0:
        raise UniformRangeError(
            f"dropout: the rate is {rate}; expected at least 0 and below 1."
        )

    def forward(t: AnyTensor) -> AnyTensor:
        return random.dropout(t, rate=rate, seed=seed)

    def gradient(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return random.dropout(dy, rate=rate, seed=seed, out=out)

    return UnaryFunction(forward, gradient, "neither")(x)


def add(a: Value, b: Value) -> Variable:
    """Return a + b; b may lack axes at the front, along which it is repeated.

    Raises:
        ShapeError: If the shape of b is not the end of the shape of a.
    """
    left, right = as_variable(a), as_variable(b)
    if left.shape == right.shape:
        y = elementwise.add(vector(left.tensor), vector(right.tensor))
        return computed(y.reshape(left.shape), edge(left, _pass), edge(right, _pass))
    return _add_rows(left, right)


def _pass(dy: AnyTensor, _: AnyTensor | None) -> AnyTensor:
    return dy


def _add_rows(left: Variable, right: Variable) -> Variable:
    shorter = left.ndim - right.ndim
    if shorter < 0 or left.shape[shorter:] != right.shape:
        raise ShapeError(
            f"add: the shapes {left.shape} and {right.shape} don't fit; expected the "
            f"second to be the end of the first."
        )
    # Without elements, -1 would be ambiguous.
    matrix = (-1 if right.tensor.size else 0, right.tensor.size)
    y = elementwise.add_rows(left.tensor.reshape(matrix), vector(right.tensor))

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, (right.tensor.size,))
        return nn.column_sum(dy.reshape(matrix), out=place).reshape(right.shape)

    return computed(y.reshape(left.shape), edge(left, _pass), edge(right, pull))


def sub(a: Value, b: Value) -> Variable:
    """Return a - b, of the same shape.

    Raises:
        ShapeError: If the shapes differ.
    """
    left, right = as_variable(a), as_variable(b)
    check_same_shape("sub", left, right)
    y = elementwise.sub(vector(left.tensor), vector(right.tensor))

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, (dy.size,))
        return elementwise.neg(vector(dy), out=place).reshape(right.shape)

    return computed(y.reshape(left.shape), edge(left, _pass), edge(right, pull))


def mul(a: Value, b: Value) -> Variable:
    """Return a b, element by element, of the same shape.

    Raises:
        ShapeError: If the shapes differ.
    """
    left, right = as_variable(a), as_variable(b)
    check_same_shape("mul", left, right)
    y = elementwise.mul(vector(left.tensor), vector(right.tensor))
    return computed(
        y.reshape(left.shape), _times(left, right.tensor), _times(right, left.tensor)
    )


def _times(variable: Variable, factor: AnyTensor) -> Edge:
    """Return the edge from a product to one factor, given the other."""

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, (dy.size,))
        product = elementwise.mul(vector(dy), vector(factor), out=place)
        return product.reshape(variable.shape)

    return edge(variable, pull, factor)


def reshape(x: Value, shape: tuple[int, ...]) -> Variable:
    """Return a view with another shape; one length may be -1."""
    variable = as_variable(x)

    def pull(dy: AnyTensor, _: AnyTensor | None) -> AnyTensor:
        return dy.reshape(variable.shape)

    return computed(variable.tensor.reshape(shape), edge(variable, pull))


def transpose(x: Value) -> Variable:
    """Return a matrix [m, n] as [n, m], copied.

    Raises:
        ShapeError: If the rank is not 2.
    """
    variable = as_variable(x)

    def pull(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return layout.transpose(dy, out=out)

    return computed(layout.transpose(variable.tensor), edge(variable, pull))
