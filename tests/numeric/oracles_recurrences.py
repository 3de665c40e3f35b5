"""Oracles of recurrences: a loop over the steps, each of all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .approx import Array


def ema(x: Array, *, decay: float = 0.9) -> Array:
    """The average before, and the new value, each with its share."""
    steps: list[Array] = []
    for t in range(x.shape[1]):
        kept = decay * steps[-1] + (1.0 - decay) * x[:, t] if steps else x[:, t]
        steps.append(kept)
    return np.stack(steps, -1) if steps else x


def linear_recurrence(a: Array, x: Array) -> Array:
    """What is kept of the state before, and what is added."""
    steps: list[Array] = []
    for t in range(x.shape[1]):
        steps.append(a[:, t] * steps[-1] + x[:, t] if steps else 0.0 + x[:, t])
    return np.stack(steps, -1) if steps else x


def linear_recurrence_gradient(a: Array, y: Array, dy: Array) -> tuple[Array, Array]:
    """The recurrence from the end on; each factor met the result before."""
    last = dy.shape[1] - 1
    steps: list[Array] = []
    for t in range(last, -1, -1):
        steps.append(a[:, t + 1] * steps[-1] + dy[:, t] if steps else 0.0 + dy[:, t])
    if not steps:
        return dy, dy
    dx = np.stack(steps[::-1], -1)
    before = np.pad(y, ((0, 0), (1, 0)))[:, : last + 1]
    return dx * before, dx


def selective_scan(x: Array, a: Array, dt: Array, u: Array, c: Array) -> Array:
    """Each state decays, takes something in, and all states of a channel are read."""
    batch, length, channels = x.shape
    state: Array = np.zeros((batch, channels, a.shape[1]))
    steps: list[Array] = []
    for t in range(length):
        step = dt[:, t, :, None]
        kept = np.exp(step * a) * state if steps else 0.0
        state = kept + step * u[:, t, None, :] * x[:, t, :, None]
        steps.append((state * c[:, t, None, :]).sum(-1))
    return np.stack(steps, 1) if steps else x


RECURRENCES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "recurrence": {
        "ema": ema,
        "linear_recurrence": linear_recurrence,
        "linear_recurrence_gradient": linear_recurrence_gradient,
        "selective_scan": selective_scan,
    }
}
"""The oracle of each kernel, by module and name."""
