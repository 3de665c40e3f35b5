"""Known algorithms as their equations: sparse products, compaction, codes, sorts, solvers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from tests.compile import loaded

TEXT = """
/// A sparse matrix times a vector; row r has the entries from ptr[r] up to ptr[r + 1].
kernel csr(ptr: u32[r1], column: u32[n], value: f32[n], x: f32[c]) -> y: f32[r1 - 1] {
    let starts[i < n] = sum[r when r > 0 and ptr[r] <= u32(i)] 1;
    y[q] = sum[i when starts[i] == q] value[i] * x[column[i]];
}

/// The greatest of each segment; NaN where it has one.
kernel segment_max(x: f32[n], segment: u32[n], count: u32) -> y: f32[count] {
    y[s] = max[i when segment[i] == u32(s)] x[i];
}

/// The elements that are kept, in their order, and how many.
kernel compact(x: f32[n], keep: u32[n]) -> y: f32[n], count: u32[] {
    let place[i < n] = sum[j when j < i] min(keep[j], 1);
    y[p] = sum[i when place[i] == u32(p) and keep[i] != 0] x[i];
    count = sum[i] min(keep[i], 1);
}

/// Runs of equal numbers: what is repeated, how often, and how many there are.
kernel run_lengths(x: i32[n]) -> what: i32[n], length: u32[n], count: u32[] {
    let begins[i < n] = if i > 0 and x[i] == x[i - 1] { 0 } else { 1 };
    let run[i < n] = sum[j when j <= i] begins[j];
    length[q] = sum[i when run[i] - 1 == q] 1;
    what[q] = sum[i when run[i] - 1 == q and begins[i] == 1] x[i];
    count = u32(sum[i] begins[i]);
}

/// A pass of a radix sort: stable, by one bit.
kernel by_bit(keys: u32[n], bit: u32) -> sorted: u32[n] {
    let zero[i] = 1 - (keys[i] >> bit & 1);
    let before[i] = sum[j when j < i] zero[j];
    let zeros = sum[j] zero[j];
    let place[i] =
        if zero[i] == 1 { before[i] } else { zeros + u32(i) - before[i] };
    sorted[k] = sum[i when place[i] == u32(k)] keys[i];
}

/// A step of conjugate gradients for a x = b.
kernel step(a: f32[n, n], mut x: f32[n], mut r: f32[n], mut p: f32[n]) {
    let ap[i < n] = sum[j] a[i, j] * p[j];
    let before = sum[i < n] r[i] * r[i];
    let alpha = before / (sum[i < n] p[i] * ap[i]);
    x[i] += alpha * p[i];
    r[i] -= alpha * ap[i];
    let beta = (sum[i < n] r[i] * r[i]) / before;
    p[i] = r[i] + beta * p[i];
}

/// How often each bin is meant, and what it comes to.
kernel bins(key: u32[n], x: f32[n], count: u32) -> c: u32[count], s: f32[count] {
    c[k] = sum[i when key[i] == u32(k)] 1;
    s[k] = sum[i when key[i] == u32(k)] x[i];
}

kernel running(x: f32[n]) -> y: f32[n] {
    y[i] = sum[j when j <= i] x[j];
}
"""
Way = pytest.mark.parametrize(
    "many", [False, pytest.param(True, marks=pytest.mark.nightly)]
)


def program() -> Any:
    return loaded(TEXT)


@Way
def test_rows_that_are_empty_or_hold_nearly_all(
    ctx: gpu.Context, *, many: bool
) -> None:
    rows, columns, huge = (503, 3001, 300_003) if many else (203, 97, 5003)
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 4, rows)
    lengths[::3], lengths[rows // 2] = 0, huge
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    column = rng.integers(0, columns, ptr[-1], np.uint32)
    value, x = (rng.integers(-4, 5, n).astype(np.float32) for n in (ptr[-1], columns))
    wanted = np.zeros(rows)
    np.add.at(wanted, np.repeat(np.arange(rows), lengths), value * x[column])
    found = program().csr(*map(ctx.tensor, (ptr, column, value, x)))
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_segments_with_nan(either: gpu.Context) -> None:
    x = np.array([1, np.nan, -np.inf, 3, 2, -np.inf, 9], np.float32)
    segment = np.array([0, 1, 2, 1, 0, 2, 2**32 - 1], np.uint32)
    found = program().segment_max(either.tensor(x), either.tensor(segment), count=4)
    np.testing.assert_array_equal(found.numpy(), [2, np.nan, -np.inf, -np.inf])


@Way
def test_compaction_and_run_lengths(either: gpu.Context, *, many: bool) -> None:
    n = 300_007 if many else 3001
    rng = np.random.default_rng(2)
    x, keep = rng.integers(0, 3, n).astype(np.int32), rng.integers(0, 3, n)
    floats = x.astype(np.float32)
    y, count = program().compact(
        either.tensor(floats), either.tensor(keep.astype(np.uint32))
    )
    kept = floats[keep != 0]
    assert count.item() == len(kept)
    np.testing.assert_array_equal(y.numpy()[: len(kept)], kept)
    what, length, runs = (t.numpy() for t in program().run_lengths(either.tensor(x)))
    begins = np.flatnonzero(np.diff(x, prepend=-1))
    assert int(runs) == len(begins)
    np.testing.assert_array_equal(what[: len(begins)], x[begins])
    np.testing.assert_array_equal(length[: len(begins)], np.diff(begins, append=n))
    assert not length[len(begins) :].any()


@Way
def test_a_radix_sort_by_one_bit_at_a_time(ctx: gpu.Context, *, many: bool) -> None:
    keys = np.random.default_rng(3).integers(0, 2**11, 300_007 if many else 1003)
    sorted_ = ctx.tensor(keys.astype(np.uint32))
    for bit in range(11):
        sorted_ = program().by_bit(sorted_, bit=bit)
    np.testing.assert_array_equal(sorted_.numpy(), np.sort(keys))


def test_conjugate_gradients(either: gpu.Context) -> None:
    rng, n = np.random.default_rng(4), 37
    a = rng.normal(size=(n, n))
    a, b = a @ a.T + 20 * np.eye(n), rng.normal(size=n)
    x, r, p = (either.tensor(v.astype(np.float32)) for v in (0 * b, b, b))
    matrix = either.tensor(a.astype(np.float32))
    for _ in range(25):
        program().step(matrix, x, r, p)
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), atol=1e-6)


@Way
def test_sums_have_the_same_bits_each_time(ctx: gpu.Context, *, many: bool) -> None:
    """Terms of such different sizes that each order of them gives another sum."""
    n, count, runs = (3_000_017, 10_007, 20) if many else (30_011, 101, 3)
    rng = np.random.default_rng(5)
    x = (rng.normal(size=n) * 10.0 ** rng.integers(-6, 7, n)).astype(np.float32)
    key = rng.integers(0, count + 3, n).astype(np.uint32)
    given, hashes = (ctx.tensor(key), ctx.tensor(x)), set[str]()
    counts, sums = (np.zeros(0),) * 2
    for _ in range(runs):
        made = *program().bins(*given, count=count), program().running(given[1])
        counts, sums, total = (tensor.numpy() for tensor in made)
        parts = counts.tobytes() + sums.tobytes() + total.tobytes()
        hashes.add(hashlib.sha256(parts).hexdigest())
    assert len(hashes) == 1
    np.testing.assert_array_equal(counts, np.bincount(key, minlength=count)[:count])
    wanted = np.bincount(key, x.astype(np.float64), count)[:count]
    largest = np.bincount(key, np.abs(x.astype(np.float64)), count)[:count]
    assert (np.abs(sums - wanted) <= 1e-6 * largest).all()
