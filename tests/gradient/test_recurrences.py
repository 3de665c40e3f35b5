"""Gradients of recurrences, against PyTorch's of loops in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from tests.compile import loaded

pytestmark = pytest.mark.torch

TEXT = (Path(__file__).parent / "recurrences.kern").read_text("utf-8")


@cache
def torch() -> Any:
    """Return PyTorch, which is not installed by default."""
    return import_module("torch")


def ema(x: Any, decay: Any) -> Any:
    h = [x[:, 0]]
    for t in range(1, x.shape[1]):
        h.append(decay * h[-1] + (1 - decay) * x[:, t])
    return torch().stack(h, 1)


def linear(a: Any, x: Any) -> Any:
    h = [x[:, 0]]
    for t in range(1, x.shape[1]):
        h.append(a[:, t] * h[-1] + x[:, t])
    return torch().stack(h, 1)


def iir(x: Any, a: Any, b: Any) -> Any:
    h: list[Any] = []
    for t in range(len(x)):
        first = a * h[t - 1] if t > 0 else 0
        second = b * h[t - 2] if t > 1 else 0
        h.append(x[t] + first + second)
    return torch().stack(h)


def selective(x: Any, a: Any, dt: Any, u: Any, c: Any) -> Any:
    h, y = 0, list[Any]()
    for t in range(x.shape[1]):
        entering = (dt[:, t] * x[:, t])[:, :, None] * u[:, t, None, :]
        h = torch().exp(dt[:, t, :, None] * a) * h + entering
        y.append((h * c[:, t, None, :]).sum(-1))
    return torch().stack(y, 1)


def logistic(z: Any, r: Any) -> Any:
    for _ in range(5):
        z = r * z * (1 - z)
    return z


def power(a: Any, steps: int) -> Any:
    x = torch().ones(a.shape[0], dtype=torch().float64)
    for _ in range(steps):
        x = a @ x
    return x


def back(a: Any, x: Any) -> Any:
    h = [x[-1] * x[-1]]
    for t in range(len(x) - 2, -1, -1):
        h.append(torch().tanh(a[t] * h[-1]) + x[t])
    return torch().stack(h[::-1]) ** 2


def late(x: Any, a: Any) -> Any:
    h: list[Any] = []
    for t in range(len(x)):
        h.append(a * h[t - 1] + a * a * h[t - 2] + x[t] if t > 1 else x[t])
    back = [x[-1]]
    for t in range(len(x) - 2, -1, -1):
        back.append(a * back[-1] + x[t])
    return torch().stack(h) * torch().stack(back[::-1])


def drawn(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ema": (ema, {"x": drawn(2, 600), "decay": 0.75}),
    "linear": (linear, {"a": drawn(3, 8), "x": drawn(3, 8) + 1}),
    "iir": (iir, {"x": drawn(11), "a": 0.5, "b": -0.25}),
    "selective": (
        selective,
        {
            "x": drawn(2, 5, 3),
            "a": -abs(drawn(3, 4)),
            "dt": abs(drawn(2, 5, 3)),
            "u": drawn(2, 5, 4),
            "c": drawn(2, 5, 4) + 1,
        },
    ),
    "logistic": (logistic, {"z": abs(drawn(7)), "r": 3.25}),
    "power": (power, {"a": drawn(4, 4), "steps": 3}),
    "late": (late, {"x": drawn(9) + 1, "a": 0.5}),
    "back": (back, {"a": drawn(9), "x": drawn(9) + 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients(either: gpu.Context, name: str) -> None:
    function, given = CASES[name]
    kernel = getattr(loaded(TEXT), f"{name}_gradient")
    values = {
        key: value if key == "steps" else torch().tensor(np.asarray(value, np.float64))
        for key, value in given.items()
    }
    by = [value.requires_grad_() for key, value in values.items() if key != "steps"]
    y = function(**values)
    dy = np.cos(np.arange(y.numel(), dtype=np.float32)).reshape(y.shape)
    y.backward(torch().tensor(dy.astype(np.float64)))
    arrays = {**given, "dy": dy}
    if name == "linear":  # given y
        arrays = {"a": given["a"], "dy": dy, "y": y.detach().numpy().astype(np.float32)}
    numbers = ("decay", "a", "b", "r", "steps")
    arguments = {
        key: value if key in numbers and np.ndim(value) == 0 else either.tensor(value)
        for key, value in arrays.items()
    }
    found = kernel(**arguments)
    for got, wanted in zip(found if len(by) > 1 else (found,), by, strict=True):
        largest = float(wanted.grad.abs().max())
        np.testing.assert_allclose(got.numpy(), wanted.grad, atol=1e-5 * largest)
