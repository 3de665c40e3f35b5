"""Ranges that are read of tensors, as the entries of sparse rows: each term is taken once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.compile import built_module, loaded

Array = NDArray[Any]

TEXT = """
kernel product(start: u32[r], column: u32[n], value: f32[n], x: f32[c]) -> y: f32[r - 1] {
    y[i] = sum[p when u32(p) >= start[i + 0] and u32(p) < start[i + 1]]
        value[p] * x[column[p]];
}
kernel columns(start: i32[r], last: i32[r], value: f32[n, c], keep: u32[n]) -> y: f32[r, c] {
    y[i, j] = max[p when p > start[i] and p <= last[i] and keep[p] != 0] value[p, j];
}
"""

BATCHES = """
kernel least(start: u32[b, r], value: f32[b, n]) -> y: f32[b, r - 1] {
    y[q, i] = min[
        p when u32(p) >= start[q, i + 0] and u32(p) < start[q, i + 1] and p != 7
    ] value[q, p] - f32(i);
}
kernel place(start: u32[b, r], value: f32[b, n]) -> at: i32[b, r - 1] {
    at[q, i] = argmax[
        p when u32(p) >= start[q, i + 0] and u32(p) < start[q, i + 1]
    ] value[q, p];
}
"""


@pytest.fixture(scope="module")
def own() -> Any:
    return loaded(TEXT)


def starts(kind: str, n: int, rows: int) -> Array:
    """Where rows begin: most are empty and one is long, or in no order and past the end."""
    rng = np.random.default_rng(n + rows)
    if kind == "huge":
        return np.repeat([0, n - n // 8, n], [rows // 2, rows - rows // 2, 1])
    if kind == "any":
        return rng.integers(0, 2 * n + 2, rows + 1)
    return np.sort(rng.integers(0, n + 1, rows + 1))


SIZES = [(0, 3), (1003, 700), (1200, 9), (5000, 60), (20_000, 1000), (40_000, 90)]
"""Terms and rows: from 16,385 terms on, long rows are cut in parts."""


@pytest.mark.parametrize("kind", ["huge", "any", "sorted"])
@pytest.mark.parametrize(("n", "rows"), SIZES)
def test_rows_are_their_ranges(
    either: gpu.Context, own: Any, kind: str, n: int, rows: int
) -> None:
    rng = np.random.default_rng(n)
    start, column = starts(kind, n, rows), rng.integers(0, 90, n)
    value, x = rng.uniform(0.5, 1.5, n), rng.uniform(0.5, 1.5, 80)
    wanted = np.zeros(rows)
    for i in range(rows):
        own_terms = slice(start[i], max(start[i], start[i + 1]))
        wanted[i] = (value[own_terms] * x[np.minimum(column[own_terms], 79)]).sum()
    integers = (a.astype(np.uint32) for a in (start, column))
    numbers = (a.astype(np.float32) for a in (value, x))
    found = own.product(*map(either.tensor, (*integers, *numbers)))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)


@pytest.mark.parametrize("kind", ["huge", "any"])
@pytest.mark.parametrize("n", [9_000, 20_000])
def test_the_same_call_gives_the_same_bits(
    ctx: gpu.Context, own: Any, kind: str, n: int
) -> None:
    """Whoever lists its long rows first; of ranges that share terms there are too many."""
    rng, rows = np.random.default_rng(n), 700
    start, column = starts(kind, n, rows), rng.integers(0, 80, n)
    integers = (ctx.tensor(a.astype(np.uint32)) for a in (start, column))
    numbers = (ctx.tensor(rng.normal(size=k).astype(np.float32)) for k in (n, 80))
    given = (*integers, *numbers)
    once = own.product(*given).numpy().tobytes()
    assert all(own.product(*given).numpy().tobytes() == once for _ in range(8))


def test_rows_of_several_matrices(ctx: gpu.Context) -> None:
    """Ranges of each matrix follow each other; terms may read the number of their row."""
    own = loaded(BATCHES)
    rng, n, rows = np.random.default_rng(5), 20_000, 60
    start = np.stack([starts(kind, n, rows) for kind in ("huge", "sorted", "any")])
    value = rng.permutation(3 * n).reshape(3, n).astype(np.float32)
    given = ctx.tensor(start.astype(np.uint32)), ctx.tensor(value)
    y, at = own.least(*given).numpy(), own.place(*given).numpy()
    for q, i in np.ndindex(3, rows):
        begin, end = (min(int(start[q, x]), n) for x in (i, i + 1))
        terms = np.arange(begin, end)
        kept = terms[terms != 7]
        assert y[q, i] == (value[q, kept] - i).min(initial=np.inf)
        best = terms[value[q, terms].argmax()] if terms.size else -1
        assert at[q, i] == best


def test_ends_may_be_any_integers(either: gpu.Context, own: Any) -> None:
    """Ranges end inside of the axis; of no terms the maximum is -inf."""
    start = np.array([-9, 3, 2**31 - 1, 1, -(2**31), 2], np.int32)
    last = np.array([2, 2**31 - 1, 2**31 - 1, -1, 0, 4], np.int32)
    value = np.arange(12, dtype=np.float32).reshape(6, 2)
    keep = np.array([1, 1, 1, 1, 0, 0], np.uint32)
    found = own.columns(*map(either.tensor, (start, last, value, keep))).numpy()
    np.testing.assert_array_equal(found[:, 0], [4, -np.inf, -np.inf, -np.inf, 0, 6])
    np.testing.assert_array_equal(found[:, 1], found[:, 0] + 1)


def test_lanes_follow_the_mean_and_references_have_no_loop(ctx: gpu.Context) -> None:
    compiled = compile_text(TEXT, "f.kern")
    assert "in range(" not in compiled.binding
    product = loaded(TEXT).product

    def strategy(n: int) -> str:
        (chosen,) = ctx.choices(product, r=1001, n=n, c=9)
        return str(chosen.strategy)

    few, some, many = map(strategy, (16_000, 100_000, 1_000_000))
    assert (few, some, many) == ("ragged_lanes8", "ragged_lanes32", "ragged")


def test_ranges_of_floats(either: gpu.Context) -> None:
    """They are compared as floats, and no strategy takes them for numbers of elements."""
    text = """kernel f(a: f32[r], b: i32[r], v: f32[n]) -> y: f32[r] {
        y[i] = sum[p when f32(p) >= a[i] and p < b[i]] v[p];
    }"""
    a, b = np.array([0.0, 5.5, 20.0, -3.0], np.float32), np.array([6, 20, 10, 7])
    v, p = np.arange(1, 101, dtype=np.float32), np.arange(100)
    wanted = [v[(p >= x) & (p < end)].sum() for x, end in zip(a, b, strict=True)]
    with built_module(text) as module:
        held = (either.tensor(a), either.tensor(b, gpu.i32), either.tensor(v))
        np.testing.assert_array_equal(module.f(*held).numpy(), wanted)
        np.testing.assert_array_equal(
            module.f_reference(a, b.astype(np.int32), v), wanted
        )
