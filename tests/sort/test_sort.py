"""Sorting and compaction, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import ArgumentError, ShapeError
from kerngen.sort import argsort, nonzero, sort, sort_by_key, take, topk, unique
from tests.budget import sampled

Draw = Callable[[np.random.Generator, int], NDArray[Any]]

ODD = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-30, -1e-30, 3e38], np.float32)
DRAWS: dict[str, Draw] = {
    "u32": lambda r, n: r.integers(0, 2**32, n, np.uint32),
    "i32": lambda r, n: r.integers(-(2**31), 2**31, n, np.int32),
    "f32": lambda r, n: (r.standard_normal(n) * 1e3).astype(np.float32),
    "few": lambda r, n: r.integers(0, 3, n, np.uint32),
    "one": lambda _, n: np.full(n, 2**32 - 1, np.uint32),
    "odd": lambda r, n: r.choice(ODD, n),
}
SIZES = [0, 1, 255, 3001]


@pytest.mark.parametrize(
    ("drawn", "n"),
    sampled([("odd", 3001), *product(DRAWS, SIZES), ("odd", 5003), ("f32", 40_009)], 6),
)
def test_elements_come_out_in_order(ctx: gpu.Context, drawn: str, n: int) -> None:
    x = DRAWS[drawn](np.random.default_rng(n), n)
    given = ctx.tensor(x)
    found, wanted = sort(given).numpy(), np.sort(x, kind="stable")
    np.testing.assert_array_equal(found, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
    order = argsort(given)
    np.testing.assert_array_equal(order.numpy(), np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(
        take(given, order).numpy().view(np.uint32),
        x[np.argsort(x, kind="stable")].view(np.uint32),
    )


@pytest.mark.parametrize(
    ("drawn", "shape"),
    [
        *sampled(
            product(
                ["few", "odd"], [(3, 2, 40), (7, 1), (1, 300), (5, 77), (4, 0), (0, 4)]
            ),
            5,
        ),
        pytest.param("f32", (70, 77), marks=pytest.mark.nightly),
    ],
)
def test_rows_come_out_in_order(
    ctx: gpu.Context, drawn: str, shape: tuple[int, ...]
) -> None:
    size = int(np.prod(shape))
    x = DRAWS[drawn](np.random.default_rng(size), size).reshape(shape)
    given = ctx.tensor(x)
    np.testing.assert_array_equal(sort(given).numpy(), np.sort(x, kind="stable"))
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(argsort(given).numpy(), order)


def test_values_follow_their_keys(ctx: gpu.Context) -> None:
    random = np.random.default_rng(0)
    keys = random.integers(-4, 5, 1000).astype(np.int32)
    values = random.standard_normal(1000).astype(np.float32)
    found = sort_by_key(ctx.tensor(keys), ctx.tensor(values))
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(found.keys.numpy(), keys[order])
    np.testing.assert_array_equal(found.values.numpy(), values[order])


@pytest.mark.parametrize(("drawn", "n"), sampled(product(DRAWS, SIZES), 5))
def test_what_is_not_zero_is_found(ctx: gpu.Context, drawn: str, n: int) -> None:
    x = DRAWS[drawn](np.random.default_rng(n), n)
    found = nonzero(ctx.tensor(x))
    (places,) = np.nonzero(x)
    assert found.number.item() == len(places)
    np.testing.assert_array_equal(found.places.numpy()[: len(places)], places)
    assert (found.places.numpy()[len(places) :] == 2**32 - 1).all()


@pytest.mark.parametrize(("drawn", "n"), sampled(product(DRAWS, SIZES), 5))
def test_each_element_is_counted_once(ctx: gpu.Context, drawn: str, n: int) -> None:
    x = DRAWS[drawn](np.random.default_rng(n), n)
    found = unique(ctx.tensor(x))
    values, counts = np.unique(x, return_counts=True)
    count = found.number.item()
    assert count == len(values)
    np.testing.assert_array_equal(found.values.numpy()[:count], values)
    np.testing.assert_array_equal(found.counts.numpy()[:count], counts)
    assert not found.counts.numpy()[count:].any()


def test_what_does_not_fit_is_refused(ctx: gpu.Context) -> None:
    vector, matrix = ctx.tensor(np.zeros(3, np.int32)), ctx.tensor(
        np.zeros((2, 2), np.int32)
    )
    function: Callable[[Any], object]
    for function in (nonzero, unique):
        with pytest.raises(
            ShapeError, match=r"x has shape \(2, 2\).*expected a vector"
        ):
            function(matrix)
    for function in (sort, argsort):
        with pytest.raises(ShapeError, match="x has rank 0; expected a last axis"):
            function(ctx.tensor(np.float32(1)))
    for function in (sort, argsort, nonzero, unique):
        with pytest.raises(
            ArgumentError, match="x is a list; expected a tensor of f32"
        ):
            function([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="there are 3 keys and 1 values"):
        sort_by_key(vector, ctx.tensor(np.zeros(1, np.int32)))
    with pytest.raises(ArgumentError, match="a tensor of f32"):
        topk(vector, 1)
