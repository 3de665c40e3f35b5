"""What every standard kernel computes, written by hand in NumPy, for float64.

They take the tensors, then the scalars by name, and return the result, or a tuple of
results: those of the `mut` tensors in order, then the outputs.  Nothing is taken from
the compiler, nor from the reference that it prints.  The `oracles_*.py` beside this
file hold those of the larger groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .approx import Array, exactly
from .functions import erf
from .oracles_decoder import DECODER
from .oracles_encoder import ENCODER
from .oracles_gradients import GRADIENTS
from .oracles_images import IMAGES
from .oracles_keyed import KEYED
from .oracles_layers import LAYERS
from .oracles_layout import LAYOUT
from .oracles_numbers import NUMBERS
from .oracles_optim import OPTIMIZERS
from .oracles_recurrences import RECURRENCES
from .oracles_sort import SORT

LOWEST, HIGHEST = -np.inf, np.inf


def sigmoid(x: Array) -> Array:
    """The logistic function, without overflow."""
    e = np.exp(-np.abs(x))
    logistic: Array = np.where(x >= 0, 1 / (1 + e), e / (1 + e))
    return logistic


def relu(x: Array) -> Array:
    """The positive part."""
    return np.maximum(x, 0)


def swish(x: Array) -> Array:
    """The argument times its logistic function."""
    return x * sigmoid(x)


def scale(x: Array, *, alpha: float) -> Array:
    """A multiple."""
    return alpha * x


def scale_by(x: Array, alpha: Array) -> Array:
    """A multiple."""
    return alpha * x


def add_rows(x: Array, b: Array) -> Array:
    """The same row, added to all."""
    return x + b


def leaky_relu(x: Array, *, slope: float = 0.01) -> Array:
    """The input where it is positive, else a fraction of it."""
    return np.where(x > 0, x, slope * x)


def gelu(x: Array) -> Array:
    """The normal distribution function times its argument."""
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def _gelu_inner(x: Array) -> Array:
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


def gelu_tanh(x: Array) -> Array:
    """The tanh approximation of gelu."""
    y: Array = 0.5 * x * (1 + np.tanh(_gelu_inner(x)))
    return y


def gelu_gradient(x: Array, dy: Array) -> Array:
    """By the product rule: the distribution function, and the argument times density."""
    density = np.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return dy * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * density)


def relu_gradient(x: Array, dy: Array) -> Array:
    """Passes where the input was positive."""
    return np.where(x > 0, dy, 0.0)


def leaky_relu_gradient(x: Array, dy: Array, *, slope: float = 0.01) -> Array:
    """Passes where the input was positive, else a fraction."""
    return np.where(x > 0, dy, slope * dy)


def sigmoid_gradient(y: Array, dy: Array) -> Array:
    """The logistic function's slope is itself times what it lacks of 1."""
    return dy * y * (1 - y)


def tanh_gradient(y: Array, dy: Array) -> Array:
    """1 / cosh^2 = 1 - tanh^2."""
    return dy * (1 - y * y)


def swish_gradient(x: Array, dy: Array) -> Array:
    """By the product rule."""
    s = sigmoid(x)
    return dy * (s + x * s * (1 - s))


def gelu_tanh_gradient(x: Array, dy: Array) -> Array:
    """By the product and the chain rule; tanh' = 1 - tanh^2."""
    t = np.tanh(_gelu_inner(x))
    inner_slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    dx: Array = dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner_slope)
    return dx


def axpy(x: Array, y: Array, *, alpha: float) -> Array:
    """BLAS axpy."""
    return y + alpha * x


def clamp(x: Array, *, low: float, high: float) -> Array:
    """The nearest number in the interval."""
    y: Array = np.minimum(np.maximum(x, low), high)
    return y


def fma(a: Array, b: Array, c: Array) -> Array:
    """A product and a sum."""
    return a * b + c


def lerp(a: Array, b: Array, *, t: float) -> Array:
    """Between two numbers."""
    return (1 - t) * a + t * b


def softplus(x: Array) -> Array:
    """A soft positive part."""
    y: Array = np.maximum(x, 0) + np.log(1 + np.exp(-np.abs(x)))
    return y


def elu(x: Array, *, alpha: float) -> Array:
    """Exponential below 0."""
    return np.where(x > 0, x, alpha * (np.exp(x) - 1))


def swiglu(gate: Array, x: Array) -> Array:
    """Gated by swish."""
    return swish(gate) * x


def swish_mul(gate: Array, x: Array) -> tuple[Array, Array]:
    """What gates, and what it lets through."""
    activated = swish(gate)
    return activated, activated * x


def total(x: Array) -> Array:
    """The sum."""
    y: Array = x.sum(-1)
    return y


def largest(x: Array) -> Array:
    """The maximum; minus infinity of nothing."""
    y: Array = x.max(-1, initial=LOWEST)
    return y


def smallest(x: Array) -> Array:
    """The minimum; infinity of nothing."""
    y: Array = x.min(-1, initial=HIGHEST)
    return y


def dot(x: Array, y: Array) -> Array:
    """The inner product."""
    product: Array = x @ y
    return product


def sum_squares(x: Array) -> Array:
    """The square of the norm."""
    return dot(x, x)


def add_sum_squares(total: Array, x: Array) -> Array:
    """The square of the norm, added to others."""
    return total + dot(x, x)


def column_sum(x: Array) -> Array:
    """The sum of the rows."""
    y: Array = x.sum(0)
    return y


def mean(x: Array) -> Array:
    """The arithmetic mean; 0 of nothing."""
    average: Array = total(x) / max(x.shape[0], 1)
    return average


def matmul(form: str, activation: Callable[[Array], Array]) -> Callable[..., Array]:
    """The product of two matrices, each `n`ormal or `t`ransposed."""

    def oracle(a: Array, b: Array, *bias: Array, alpha: float = 1.0) -> Array:
        left = a if form[0] == "n" else a.T
        right = b if form[1] == "n" else b.T
        product = alpha * (left @ right)
        return activation(product + bias[0] if bias else product)

    return oracle


def gemv(w: Array, x: Array, *, alpha: float = 1.0) -> Array:
    """A matrix times a column."""
    return alpha * (w @ x)


def gemv_t(w: Array, x: Array, *, alpha: float = 1.0) -> Array:
    """A row times a matrix."""
    return alpha * (x @ w)


def clip_by_norm(g: Array, total: Array, *, max_norm: float) -> Array:
    """As torch.nn.utils.clip_grad_norm_: the norm is that of all gradients together."""
    return g * np.minimum(1.0, max_norm / (np.sqrt(total) + 1e-6))


def note_nonfinite(failed: Array, total: Array, *, step: int) -> Array:
    """The first step whose total is not finite."""
    return np.where((failed == 0) & ~np.isfinite(exactly(total)), step, failed)


def _identity(x: Array) -> Array:
    return x


_ALL: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "elementwise": {
        "relu": relu,
        "leaky_relu": leaky_relu,
        "sigmoid": sigmoid,
        "tanh": np.tanh,
        "swish": swish,
        "gelu": gelu,
        "gelu_tanh": gelu_tanh,
        "exp": np.exp,
        "log": np.log,
        "sqrt": np.sqrt,
        "abs": np.absolute,
        "neg": np.negative,
        "scale": scale,
        "scale_by": scale_by,
        "add": np.add,
        "add_rows": add_rows,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "axpy": axpy,
        "clamp": clamp,
        "fma": fma,
        "lerp": lerp,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "softplus": softplus,
        "elu": elu,
        "swiglu": swiglu,
        "swish_mul": swish_mul,
    },
    "reduction": {
        "sum": total,
        "mean": mean,
        "max": largest,
        "min": smallest,
        "dot": dot,
        "sum_squares": sum_squares,
    },
    "gemv": {"gemv": gemv, "gemv_t": gemv_t},
    "matmul": {
        f"matmul_{form}{suffix}": matmul(form, activation)
        for form in ("nn", "nt", "tn")
        for suffix, activation in (
            ("", _identity),
            ("_bias", _identity),
            ("_gelu", gelu),
            ("_bias_gelu", gelu),
        )
    },
    "clip": {
        "add_sum_squares": add_sum_squares,
        "clip_by_norm": clip_by_norm,
        "note_nonfinite": note_nonfinite,
    },
    "half": {
        "widen": _identity,
        "narrow": _identity,
        "scale": scale,
        **{
            f"matmul_{form}{suffix}": matmul(form, _identity)
            for form in ("nn", "nt")
            for suffix in ("", "_wide")
        },
        "gemv": gemv,
    },
    "nn": {
        "gelu_gradient": gelu_gradient,
        "gelu_tanh_gradient": gelu_tanh_gradient,
        "relu_gradient": relu_gradient,
        "leaky_relu_gradient": leaky_relu_gradient,
        "sigmoid_gradient": sigmoid_gradient,
        "tanh_gradient": tanh_gradient,
        "swish_gradient": swish_gradient,
        "column_sum": column_sum,
    },
    **DECODER,
    **ENCODER,
    **LAYERS,
    **IMAGES,
    **LAYOUT,
    **KEYED,
    **OPTIMIZERS,
    **NUMBERS,
    **SORT,
    **RECURRENCES,
}

ORACLES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    module: {**oracles, **GRADIENTS.get(module, {})} for module, oracles in _ALL.items()
}
"""The oracle of each kernel, by module of `kerngen_kernels` and name."""
