"""Places that are written as a maximum and its first index, places by key, sums by a chosen row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.ir.staging.passes import form_stages
from tests.budget import sampled
from tests.compile import checked, loaded

NAN, INF = np.nan, np.inf
IDIOM = """
kernel f(x: f32[m, n]) -> y: u32[m], z: i32[m], top: f32[m] {
    top[i] = max[j] x[i, j];
    y[i] = min[j when x[i, j] == top[i]] u32(j);
    let least[k] = min[p when x[k, p] < 9.0] x[k, p];
    z[i] = min[j when x[i, j] < 9.0 and least[i] == x[i, j]] j;
}
"""
ROWS = (
    (1, NAN, 3, NAN),
    (-INF, -INF, -INF, -INF),
    (INF, 0, INF, -INF),
    (9, 11, 10, 12),
    (-1, 2, -1, 2),
)


@pytest.mark.parametrize("copies", [1, 50])
def test_the_idiom_keeps_its_meaning(either: gpu.Context, copies: int) -> None:
    """Of a row with NaN, and of nothing, the least index is the highest integer."""
    x = np.tile(np.array(ROWS, np.float32), (1, copies))
    y, z, top = (out.numpy() for out in loaded(IDIOM).f(either.tensor(x)))
    np.testing.assert_array_equal(y, [2**32 - 1, 0, 0, 3, 1])
    np.testing.assert_array_equal(z, [0, 0, 3, 2**31 - 1, 0])
    np.testing.assert_array_equal(top, x.max(1))


def reduced(text: str) -> list[str]:
    """Return what the stages of a program reduce, in order."""
    stages = [s for k in checked(text).kernels for s in form_stages(k).stages]
    return [s.reduction.kind for s in stages if s.reduction is not None]


def test_the_idiom_reads_its_terms_once() -> None:
    assert reduced(IDIOM) == ["argmax", "argmin"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[i, j] == top", "x[i, j] >= top"),
        ("x[i, j] == top", "x[i, j] / 2.0 == top"),
        ("u32(j)", "u32(j) + 1"),
        ("top[i]] u32", "top[i] and j > 1] u32"),
        ("    y[i] =", "    x[i, j] += 1.0;\n    y[i] ="),
        ("top[i] = max[j]", "top[i] = 0.0 + max[j]"),
    ],
)
def test_what_is_no_such_idiom_stays(before: str, after: str) -> None:
    text = IDIOM.replace("x: f32", "mut x: f32")
    assert reduced(text) == ["argmax", "argmin"]
    assert reduced(text.replace(before, after)) == ["max", "min", "argmin"]


BY_KEY = """
kernel f(
    x: f32[n],
    u: u32[n],
    ids: i32[n],
    groups: u32,
) -> at: i32[groups], low: u32[groups], read: f32[groups], soft: f32[n] {
    at[q] = argmax[i when ids[i] == q and u[i] != 1] x[i];
    low[q] = u32(argmin[i when ids[i] == q] u[i]);
    read[q] = x[argmin[i when ids[i] == q] x[i]];
    let top[q < groups] = max[i when ids[i] == q] x[i];
    let total[q < groups] = sum[i when ids[i] == q] exp(x[i] - top[q]);
    soft[i] = exp(x[i] - top[ids[i]]) / total[ids[i]];
}
"""
Array = NDArray[Any]


def by_hand(x: Array, u: Array, ids: Array, groups: int) -> tuple[Array, ...]:
    at, low = np.full(groups, -1), np.full(groups, -1)
    read, soft = np.full(groups, x[0] if len(x) else 0.0), np.zeros(len(x))
    for q in range(groups):
        own, some = np.flatnonzero(ids == q), np.flatnonzero((ids == q) & (u != 1))
        if len(some):
            at[q] = some[np.argmax(x[some])]
        if len(own):
            low[q] = own[np.argmin(u[own])]
            read[q] = x[own[np.argmin(x[own])]]
            weights = np.exp(x[own] - x[own].max())
            soft[own] = weights / weights.sum()
    return at, low.astype(np.uint32), read, soft


@pytest.mark.parametrize("way", sampled(["", "generic", "scatter"], 2))
@pytest.mark.parametrize(("n", "groups"), sampled([(3001, 900), (1, 1)], 2))
def test_places_by_key(either: gpu.Context, n: int, groups: int, way: str) -> None:
    """Keys that are no group, negative ones and such past the end, count nowhere."""
    rng = np.random.default_rng(n)
    x = rng.integers(-9, 9, n).astype(np.float32)
    u, ids = rng.integers(0, 4, n), rng.integers(0, groups, n)
    text = BY_KEY + (f"schedule f.at_max, f.at, f.total {{ {way} }}" if way else "")
    given = x, u.astype(np.uint32), ids.astype(np.int32)
    made = loaded(text).f(*map(either.tensor, given), groups=groups)
    for found, wanted in zip(made, by_hand(*given, groups), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-6)


def test_places_by_key_follow_numpy_s_rules(either: gpu.Context) -> None:
    """The first NaN is the place; -inf is one, too; keys outside count nowhere."""
    x = np.array([1, NAN, 5, NAN, -INF, -INF, 7, 7, 99, 99], np.float32)
    ids = np.array([0, 0, 0, 1, 2, 2, 3, 3, -1, 2**31 - 1], np.int32)
    text = BY_KEY.replace("soft[i] = exp(x[i] - top[ids[i]])", "soft[i] = f32(ids[i])")
    made = loaded(text + "schedule f.at_max, f.at { scatter }").f(
        either.tensor(x),
        either.tensor(np.zeros(10, np.uint32)),
        either.tensor(ids),
        groups=5,
    )
    np.testing.assert_array_equal(made[0].numpy(), [1, 3, 4, 6, -1])


LAID = """
kernel f(x: f32[b, n, c], ids: i32[b, n], groups: u32) -> at: i32[b, groups, c] {
    at[k, q, j] = argmin[i when ids[k, i] == q and i > 0] x[k, i, j] * f32(q + 1);
}
"""


def test_references_take_each_term_once() -> None:
    """A place by key is one pass over the terms, also beside other axes."""
    rng = np.random.default_rng(3)
    x = rng.integers(-4, 4, (2, 40, 3)).astype(np.float32)
    ids = rng.integers(-1, 8, (2, 40)).astype(np.int32)
    assert "for i in range" not in compile_text(LAID, "f.kern").binding
    found = loaded(LAID).f_reference(x, ids, groups=7)
    for k, q, j in np.ndindex(2, 7, 3):
        own = 1 + np.flatnonzero(ids[k, 1:] == q)
        wanted = own[np.argmin(x[k, own, j])] if len(own) else -1
        assert found[k, q, j] == wanted
