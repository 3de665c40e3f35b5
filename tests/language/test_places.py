"""Places of greatest and least numbers: NaN, infinities, zeros, ties, and nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from tests.compile import built, unless_unfit
from tests.language.cases import Array

WAYS = (
    "",
    "generic",
    "reduce",
    pytest.param("reduce subgroups(1)", marks=pytest.mark.nightly),
    "rows lanes(128)",
    pytest.param("rows lanes(64) subgroups(1)", marks=pytest.mark.nightly),
)
NAN, INF = np.nan, np.inf
ODD_FLOATS = (
    (1, NAN, 3, NAN),
    (NAN, -INF, INF, 0),
    (-INF, -INF, -INF, -INF),
    (INF, 0, INF, -INF),
    (-0.0, 0.0, -0.0, 0.0),
    (0.0, -0.0, 0.0, -1e-30),
    (-1, -3.4e38, 3.4e38, -2),
    (NAN, NAN, NAN, NAN),
)


def searched(
    ctx: gpu.Context, type_: str, way: str, x: Array, counts: Array | None = None
) -> list[NDArray[Any]]:
    """Return the places that the device finds, then those of the reference."""
    when = "" if counts is None else " when k[i, j] != 0"
    text = (
        f"kernel f(x: {type_}[m, n], k: u32[m, n]) -> y: i32[m], z: i32[m] {{"
        f" y[i] = argmax[j{when}] x[i, j]; z[i] = argmin[j{when}] x[i, j];"
        " }"
    )
    if counts is None:
        text = text.replace(", k: u32[m, n]", "")
    if way:
        text += f"\nschedule f {{ {way} }}"
    given = [x] if counts is None else [x, counts.astype(np.uint32)]
    with built(text) as (kernel,):
        tensors = tuple(map(ctx.tensor, given))
        made = kernel.launch(ctx, tensors, (), (None, None))
        return [*(out.numpy() for out in made), *kernel.reference(*given)]


@pytest.mark.parametrize("way", WAYS)
def test_numpy_s_rules_hold_for_odd_floats(ctx: gpu.Context, way: str) -> None:
    x = np.array(ODD_FLOATS, np.float32)
    x = np.concatenate([x, np.tile(x[:, ::-1], (1, 7))], 1)
    with unless_unfit(way):
        most, least, *referred = searched(ctx, "f32", way, x)
        np.testing.assert_array_equal(most, x.argmax(1))
        np.testing.assert_array_equal(least, x.argmin(1))
        np.testing.assert_array_equal(referred, (x.argmax(1), x.argmin(1)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("type_", ["i32", "u32", "f32"])
def test_the_lowest_number_is_found_and_nothing_is_not(
    ctx: gpu.Context, type_: str, way: str
) -> None:
    dtype, low, high = {
        "i32": (np.dtype(np.int32), -(2**31), 2**31 - 1),
        "u32": (np.dtype(np.uint32), 0, 2**32 - 1),
        "f32": (np.dtype(np.float32), -INF, INF),
    }[type_]
    x = np.array([[low] * 5, [high] * 5, [low, high] * 2 + [low], [0] * 5], dtype)
    counts = np.array([[0, 0, 1, 0, 1]] * 3 + [[0] * 5])
    with unless_unfit(way):
        for found in np.array(searched(ctx, type_, way, x, counts)).reshape(2, 2, 4):
            np.testing.assert_array_equal(found, [[2, 2, 2, -1], [2, 2, 2, -1]])


@pytest.mark.parametrize("way", ["", "generic", "reduce"])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
def test_of_nothing_the_place_is_none(
    ctx: gpu.Context, shape: tuple[int, int], way: str
) -> None:
    x = np.zeros(shape, np.float32)
    for found in searched(ctx, "f32", way, x):
        np.testing.assert_array_equal(found, np.full(shape[0], -1))


@pytest.mark.parametrize("shape", [(1, 70001), (3, 20000), (2, 16389), (70, 4097)])
def test_of_many_equal_ones_the_first_is_found(
    ctx: gpu.Context, shape: tuple[int, int]
) -> None:
    x = np.zeros(shape, np.float32)
    x[:, 5::3] = 1
    x[:, 7::3] = -1
    most, least, *_ = searched(ctx, "f32", "", x)
    np.testing.assert_array_equal(most, np.full(shape[0], 5))
    np.testing.assert_array_equal(least, np.full(shape[0], 7))


def test_loops_of_the_reference_find_what_numpy_finds(ctx: gpu.Context) -> None:
    text = (
        "kernel f(a: f32[m, d], b: f32[d, n], k: u32[d]) -> y: i32[m, n], z: i32[m, n] {"
        " y[i, j] = argmin[p] (a[i, p] + b[p, j]);"
        " z[i, j] = argmax[p when k[p] != 0] (a[i, p] + b[p, j]); }"
    )
    random = np.random.default_rng(1)
    a, b = (random.integers(-2, 3, s).astype(np.float32) for s in ((5, 7), (7, 6)))
    a[2, 3], k = NAN, np.array([0, 1, 0, 1, 1, 0, 1], np.uint32)
    terms = a[:, :, None] + b
    some = np.flatnonzero(k)
    wanted = terms.argmin(1), some[terms[:, some].argmax(1)]
    with built(text) as (kernel,):
        made = kernel.launch(ctx, tuple(map(ctx.tensor, (a, b, k))), (), (None, None))
        np.testing.assert_array_equal([out.numpy() for out in made], wanted)
        np.testing.assert_array_equal(kernel.reference(a, b, k), wanted)
