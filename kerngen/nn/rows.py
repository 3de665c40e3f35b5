"""Functions of the vectors along the last axis: norms and softmax."""

from __future__ import annotations

from collections.abc import Sequence

from kerngen.nn.elementwise import UnaryFunction
from kerngen.nn.shapes import check_axis, check_features, check_rank, rows, view
from kerngen.nn.variable import (
    AnyTensor,
    Value,
    Variable,
    as_variable,
    computed,
    edge,
    joint_edge,
)
from kerngen_kernels import norm
from kerngen_kernels import softmax as kernels


def layernorm(x: Value, gain: Value, bias: Value, eps: float = 1e-5) -> Variable:
    """Return (x - mean) / sqrt(variance + eps) gain + bias (Ba, Kiros and Hinton, 2016).

    Mean and variance are those of each vector along the last axis.

    Args:
        x: [..., n]. The input.
        gain: [n].
        bias: [n].
        eps: Added to the variance.

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    given, g, b = as_variable(x), as_variable(gain), as_variable(bias)
    _check_vectors("layernorm", given, gain=g, bias=b)
    x2 = rows(given.tensor)

    def by_x(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, x2.shape)
        dx = norm.layernorm_gradient(x2, g.tensor, rows(dy), eps=eps, out=place)
        return dx.reshape(given.shape)

    def by_both(dy: AnyTensor, out: Sequence[AnyTensor | None]) -> Sequence[AnyTensor]:
        dgain, dbias = out
        place = None  # the kernel takes destinations for both, or for none
        if dgain is not None and dbias is not None:
            place = norm.LayernormParameterGradientsOutput(dgain, dbias)
        return norm.layernorm_parameter_gradients(x2, rows(dy), eps=eps, out=place)

    y = norm.layernorm(x2, g.tensor, b.tensor, eps=eps)
    return computed(
        y.reshape(given.shape),
        edge(given, by_x, x2, g.tensor),
        joint_edge((g, b), by_both, x2),
    )


def rmsnorm(x: Value, gain: Value, eps: float = 1e-6) -> Variable:
    """Return x / sqrt(mean(x^2) + eps) gain, along the last axis (Zhang, Sennrich, 2019).

    Args:
        x: [..., n]. The input.
        gain: [n].
        eps: Added to the mean square.

    Raises:
        ShapeError: If a rank or a length does not fit.
    """
    given, g = as_variable(x), as_variable(gain)
    _check_vectors("rmsnorm", given, gain=g)
    x2 = rows(given.tensor)

    def by_x(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        place = view(out, x2.shape)
        dx = norm.rmsnorm_gradient(x2, g.tensor, rows(dy), eps=eps, out=place)
        return dx.reshape(given.shape)

    def by_gain(dy: AnyTensor, out: AnyTensor | None) -> AnyTensor:
        return norm.rmsnorm_gain_gradient(x2, rows(dy), eps=eps, out=out)

    y = norm.rmsnorm(x2, g.tensor, eps=eps)
    return computed(
        y.reshape(given.shape), edge(given, by_x, x2, g.tensor), edge(g, by_gain, x2)
    )


def _check_vectors(name: str, x: Variable, **vectors: Variable) -> None:
    for role, vector in vectors.items():
        check_rank(name, f"the {role}", vector, 1, "[n]")
        check_features(name, x, vector.shape[0], f"the {role} of shape {vector.shape}")


_SOFTMAX = UnaryFunction(kernels.softmax, kernels.softmax_gradient, "output", rows)
_LOG_SOFTMAX = UnaryFunction(
    kernels.log_softmax, kernels.log_softmax_gradient, "output", rows
)


def softmax(x: Value) -> Variable:
    """Return exp(x) / sum(exp(x)), along the last axis."""
    return _SOFTMAX(check_axis("softmax", as_variable(x)))


def log_softmax(x: Value) -> Variable:
    """Return x - log(sum(exp(x))), along the last axis."""
    return _LOG_SOFTMAX(check_axis("log_softmax", as_variable(x)))
