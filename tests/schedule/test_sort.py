"""Strategy `sort`: elements in the order of their keys, by NumPy's stable sorts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.calls.kernel import Kernel
from tests.compile import built

Array = NDArray[Any]

WORDS = """kernel f(k: T[n], x: f32[n]) -> y: T[n], z: f32[n], at: u32[n] {
    let place[i] = sum[j when k[j] < k[i] or k[j] == k[i] and j < i] 1;
    y[p] = sum[i when place[i] == p] k[i];
    z[p] = max[i when place[i] == p] x[i];
    at[p] = sum[i when place[i] == p] u32(i);
}
schedule f.place { sort }
"""
DRAWN: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "all": lambda r, n: r.integers(0, 2**32, n, np.uint32),
    "few": lambda r, n: r.integers(0, 3, n, np.uint32),
    "bytes": lambda r, n: r.integers(0, 256, n).astype(np.uint32) << 16,
    "one": lambda _, n: np.full(n, 2**32 - 1, np.uint32),
}


def moved(ctx: gpu.Context, kernel: Kernel, *tensors: Array) -> list[Array]:
    """Return what a kernel without scalars returns."""
    given = tuple(ctx.tensor(each) for each in tensors)
    outputs = kernel.launch(ctx, given, (), (None,) * 3)
    return [output.numpy() for output in outputs]


@pytest.mark.nightly
def test_words_in_the_order_of_keys(ctx: gpu.Context) -> None:
    """Three words each: by day `tests/sort` moves one and two, in half of the time."""
    with built(WORDS.replace("T", "u32")) as (kernel,):
        pairs = [*product((30_011, 2049, 2048, 255, 1, 0), DRAWN.values())]
        for n, drawn in pairs:
            random = np.random.default_rng(n)
            x = random.standard_normal(n).astype(np.float32)
            compare(ctx, kernel, drawn(random, n), x)


@pytest.mark.nightly
@pytest.mark.parametrize("count", [600_011, 4_300_017])
def test_many_blocks(ctx: gpu.Context, count: int) -> None:
    """Of two tiles, and many of them."""
    k = np.random.default_rng(0).integers(0, 2**32, count, np.uint32)
    with built(WORDS.replace("T", "u32")) as (kernel,):
        compare(ctx, kernel, k, k.astype(np.float32))


def compare(ctx: gpu.Context, kernel: Kernel, k: Array, x: Array) -> None:
    """Compare keys, values and numbers with those of a stable sort."""
    order = np.argsort(k, kind="stable")
    for found, wanted in zip(
        moved(ctx, kernel, k, x), (k[order], x[order], order), strict=True
    ):
        np.testing.assert_array_equal(found, wanted, f"{len(k)} elements")


@pytest.mark.nightly
def test_greater_keys_first(ctx: gpu.Context) -> None:
    text = """kernel f(k: i32[n]) -> y: i32[n] {
        let place[i] = sum[j when k[j] > k[i] or k[j] == k[i] and j < i] 1;
        y[p] = sum[i when place[i] == p] k[i];
    }
    schedule f.place { sort }
    """
    with built(text) as (kernel,):
        k = np.random.default_rng(0).integers(-9, 9, 5000).astype(np.int32)
        k[:2] = -(2**31), 2**31 - 1
        (y,) = kernel.launch(ctx, (ctx.tensor(k),), (), (None,))
        np.testing.assert_array_equal(y.numpy(), np.sort(k)[::-1])


def sorts(body: str) -> list[str]:
    """Return what strategy `sort` runs together of a kernel, or why it does not."""
    text = f"kernel f(x: f32[n], k: i32[n]) -> y: i32[n], z: f32[n] {{ {body} }}"
    (program,) = compile_text(text, "t.kern").programs
    for stage in program.stages:
        for schedule in stage.schedules:
            if schedule.strategy == "sort":
                return [*schedule.stages]
    return [dict(stage.others).get("sort", "") for stage in program.stages]


PLACE = "let p[i] = sum[j when k[j] < k[i] or k[j] == k[i] and j < i] 1;"
MOVED = "y[q] = sum[i when p[i] == q] k[i]; z[q] = max[i when p[i] == q] x[i];"


@pytest.mark.parametrize(
    "place",
    [
        PLACE,
        "let p[i] = sum[j] if i > j and k[i] == k[j] or k[i] > k[j] { 1 } else { 0 };",
    ],
)
def test_forms_of_one_order(place: str) -> None:
    assert sorts(f"{place} {MOVED}") == ["p", "y", "z"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"{PLACE.replace('j < i', 'j <= i')} {MOVED}", "counts no elements"),
        (f"{PLACE.replace('k[j] ==', 'k[j] <=')} {MOVED}", "counts no elements"),
        (f"{PLACE.replace('] 1;', '] 2;')} {MOVED}", "counts no elements"),
        (f"{PLACE.replace('k[', 'x[')} {MOVED}", "counts no elements"),
        (f"{PLACE} {MOVED.replace('max', 'sum')}", "'p' is read by more"),
        (f"{PLACE} {MOVED} y[i] += p[i];", "'p' is read by more"),
    ],
)
def test_what_is_no_sort(body: str, reason: str) -> None:
    assert any(reason in each for each in sorts(body))
