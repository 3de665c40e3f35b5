"""One step of each standard optimizer, in NumPy, as torch's documentation has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

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


def adam(
    param: Array,
    grad: Array,
    m: Array,
    v: Array,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    step: int,
) -> tuple[Array, Array, Array]:
    """Algorithm 1 of Kingma and Ba (2015), with the decay in the gradient."""
    grad = grad + weight_decay * param
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    return param - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


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


def sgd_either(
    param: Array,
    grad: Array,
    v: Array,
    *,
    lr: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: int = 0,
) -> tuple[Array, Array]:
    """One of the two steps with a velocity."""
    step = sgd_nesterov if nesterov else partial(sgd_momentum, dampening=0.0)
    return step(param, grad, v, lr=lr, momentum=momentum, weight_decay=weight_decay)


def lion(
    param: Array,
    grad: Array,
    m: Array,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.99,
    weight_decay: float = 0.0,
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


STEPS: Mapping[str, Callable[..., tuple[Array, ...]]] = {
    "adamw": adamw,
    "adam": adam,
    "sgd": sgd_either,
    "lion": lion,
}
"""The step of each optimizer of a trainer, by name."""


def _unless(step: Callable[..., tuple[Array, ...]]) -> Callable[..., Any]:
    """Return the step that changes nothing where it has failed."""

    def unless(*tensors: Array, **scalars: Any) -> tuple[Array, ...]:
        param, grad, *moments, failed = tensors
        return (param, *moments) if failed else step(param, grad, *moments, **scalars)

    return unless


OPTIMIZERS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "optim": {
        "adamw": adamw,
        "sgd": sgd,
        "sgd_momentum": sgd_momentum,
        "sgd_nesterov": sgd_nesterov,
        "lion": lion,
        "rmsprop": rmsprop,
        "adagrad": adagrad,
        **{f"{name}_unless": _unless(step) for name, step in STEPS.items()},
    },
}
"""The oracle of each kernel, by module and name."""
