"""The greatest elements of rows, compared with a stable sort of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import ArgumentError, ShapeError
from kerngen.sort import topk


def best(x: NDArray[np.float32], k: int) -> NDArray[Any]:
    """The places of the k greatest: NaN first, then by value; of equal ones the first."""
    rank = np.where(np.isnan(x), np.inf, x.astype(np.float64))
    order = np.lexsort((-rank, ~np.isnan(x)), axis=-1)
    places: NDArray[Any] = order[..., :k]
    return places


SHAPES = [
    ((3, 7), 7),
    ((1, 1), 1),
    ((0, 9), 4),
    ((5, 300), 1),
    ((2, 4096), 8),
    ((3, 4099), 13),
    ((2, 3, 1000), 6),
    pytest.param((70001,), 64, marks=pytest.mark.nightly),
    pytest.param((9, 1024), 64, marks=pytest.mark.nightly),
    pytest.param((4, 600), 600, marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("drawn", ["numbers", "ties", "odd ones"])
@pytest.mark.parametrize(("shape", "k"), SHAPES)
def test_the_greatest_come_first(
    ctx: gpu.Context, shape: tuple[int, ...], k: int, drawn: str
) -> None:
    random = np.random.default_rng(k)
    x = random.standard_normal(shape).astype(np.float32)
    if drawn == "ties":
        x = np.round(x)
    if drawn == "odd ones":
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], np.float32)
        x = np.where(random.random(shape) < 0.5, random.choice(odd, shape), x)
        x = np.where(random.random(shape[:-1])[..., None] < 0.2, -np.inf, x)
    x = x.astype(np.float32)
    found = topk(ctx.tensor(x), k)
    places = best(x, k)
    np.testing.assert_array_equal(found.places.numpy(), places)
    np.testing.assert_array_equal(
        found.values.numpy(), np.take_along_axis(x, places, -1)
    )


def test_what_does_not_fit_is_refused(ctx: gpu.Context) -> None:
    x = ctx.tensor(np.zeros((2, 5), np.float32))
    for k in (0, 6, True, 2.0):
        with pytest.raises(ArgumentError, match="from 1 to 5"):
            topk(x, k)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="an axis at least"):
        topk(ctx.tensor(np.float32(1)), 1)
    for other in (ctx.tensor(np.zeros(3, np.int32)), np.zeros(3, np.float32)):
        with pytest.raises(ArgumentError, match="a tensor of f32"):
            topk(other, 1)  # type: ignore[arg-type]
