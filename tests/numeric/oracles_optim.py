"""One step of each standard optimizer, in NumPy, as torch's documentation has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .approx import Array


def adamw(
    param: Array,
    grad: Array,
    m: Array,
    v: Array,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    step: int,
) -> tuple[Array, Array, Array]:
    """Algorithm 2 of Loshchilov and Hutter (2019), with the schedule multiplier in lr."""
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    param = param - lr * (m_hat / (np.sqrt(v_hat) + eps) + weight_decay * param)
    return param, m, v


def adamw_unless(
    param: Array,
    grad: Array,
    m: Array,
    v: Array,
    failed: NDArray[np.uint32],
    **scalars: Any,
) -> tuple[Array, Array, Array]:
    """A step of AdamW, or none."""
    return (param, m, v) if failed else adamw(param, grad, m, v, **scalars)


def sgd(param: Array, grad: Array, *, lr: float, weight_decay: float) -> Array:
    """Against the gradient."""
    return param - lr * (grad + weight_decay * param)


def sgd_momentum(
    param: Array,
    grad: Array,
    v: Array,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
) -> tuple[Array, Array]:
    """Against the velocity."""
    v = momentum * v + (1 - dampening) * (grad + weight_decay * param)
    return param - lr * v, v


def sgd_nesterov(
    param: Array,
    grad: Array,
    v: Array,
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
) -> tuple[Array, Array]:
    """Against the velocity of the next step, as far as it is known."""
    g = grad + weight_decay * param
    v = momentum * v + g
    return param - lr * (g + momentum * v), v


def lion(
    param: Array,
    grad: Array,
    m: Array,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
) -> tuple[Array, Array]:
    """Against the sign of the momentum and the gradient, mixed."""
    mixed = np.sign(beta1 * m + (1 - beta1) * grad)
    param = param - lr * (mixed + weight_decay * param)
    return param, beta2 * m + (1 - beta2) * grad


def rmsprop(
    param: Array, grad: Array, v: Array, *, lr: float, alpha: float, eps: float
) -> tuple[Array, Array]:
    """Against the gradient, by its root mean square."""
    v = alpha * v + (1 - alpha) * grad * grad
    return param - lr * grad / (np.sqrt(v) + eps), v


def adagrad(
    param: Array, grad: Array, v: Array, *, lr: float, eps: float
) -> tuple[Array, Array]:
    """Against the gradient, by the root of the sum of all squares."""
    v = v + grad * grad
    return param - lr * grad / (np.sqrt(v) + eps), v


OPTIMIZERS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "optim": {
        "adamw": adamw,
        "adamw_unless": adamw_unless,
        "sgd": sgd,
        "sgd_momentum": sgd_momentum,
        "sgd_nesterov": sgd_nesterov,
        "lion": lion,
        "rmsprop": rmsprop,
        "adagrad": adagrad,
    },
}
"""The oracle of each kernel, by module and name."""
