"""Gradients of recurrences whose steps apply functions to what they reduce."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from tests.compile import loaded
from tests.gradient.differences import Case, checked_file, inputs_by, kernel_of

PATH = Path(__file__).parent / "networks.kern"
TEXT = PATH.read_text("utf-8")
OFTEN = ["elman", "lstm", "paths"]
SELDOM = ["settled", "backwards", "gru", "principal", "products"]


@pytest.mark.parametrize(
    "name", [*OFTEN, *(pytest.param(n, marks=pytest.mark.nightly) for n in SELDOM)]
)
def test_gradients_are_what_differences_give(name: str) -> None:
    """With weights of both signs: where all are positive, tanh is 1 soon."""
    module = checked_file(PATH)
    kernel = kernel_of(module, name)
    case = Case(module, kernel, inputs_by(kernel))
    signed = {n: v - 1.0 for n, v in case.arguments().items() if np.ndim(v)}
    assert replace(case, values=signed).worst() < 1e-7


Array = NDArray[np.float64]


def _through_time(x: Array, u: Array, w: Array, dy: Array) -> dict[str, Array]:
    """Return the result of `elman`, and its gradients by hand."""
    h = np.zeros((len(x), len(w)))
    for t in range(len(x)):
        h[t] = np.tanh(u @ x[t] + (w @ h[t - 1] if t else 0.0))
    dx, du, dw = np.zeros_like(x), np.zeros_like(u), np.zeros_like(w)
    after = np.zeros(len(w))
    for t in reversed(range(len(x))):
        inside = (dy[t] + after) * (1.0 - h[t] * h[t])
        dx[t], du = inside @ u, du + np.outer(inside, x[t])
        if t:
            dw += np.outer(inside, h[t - 1])
        after = inside @ w
    return {"y": h, "dx": dx, "du": du, "dw": dw}


@pytest.mark.parametrize("steps", [1, 2, 37])
def test_elman_through_time(either: gpu.Context, steps: int) -> None:
    """On an adapter, with and without the states that the forward kernel gave."""
    products = ["h_sum", "h_sum_2_slope", "dx", "du", "dw"]
    stages = [f"{kernel}.{p}" for kernel in ("plain", "kept") for p in products]
    module = loaded(
        f"{TEXT}kernel plain = gradient of elman by x, u, w;"
        "kernel kept = gradient of elman by x, u, w given y;"
        f"schedule {', '.join(stages)}, elman.h_sum {{ generic }}"
    )
    rng = np.random.default_rng(steps)
    shapes = {"x": (steps, 5), "u": (19, 5), "w": (19, 19), "dy": (steps, 19)}
    drawn = {n: rng.uniform(-0.5, 0.5, s).astype("f4") for n, s in shapes.items()}
    expected = _through_time(*(v.astype("f8") for v in drawn.values()))
    tensors = {name: either.tensor(value) for name, value in drawn.items()}
    dy = tensors.pop("dy")
    y = module.elman(**tensors)
    np.testing.assert_allclose(y.numpy(), expected["y"], atol=1e-6)
    for found in (
        module.plain(**tensors, dy=dy),
        module.kept(**tensors, y=y, dy=dy),
    ):
        for name, got in zip(("dx", "du", "dw"), found, strict=True):
            close = 2e-6 * max(np.abs(expected[name]).max(), 1.0)
            np.testing.assert_allclose(got.numpy(), expected[name], atol=close)
