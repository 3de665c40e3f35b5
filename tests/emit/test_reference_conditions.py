"""References of reductions by key and of prefixes, against the general form in float64."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.runtime import reference as ref
from tests.compile import emitted, loaded

Array = NDArray[Any]

KINDS = {
    "sum": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}


def draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-2, 2, shape)


def keys(high: int, *shape: int) -> Array:
    """Keys from -2 to beyond `high`."""
    drawn = np.random.default_rng(7).integers(-2, high + 2, shape)
    return drawn.astype(np.int32)


def each_with_each(kind: str, chosen: Array, terms: Array) -> Array:
    """Reduce the first axis of the terms under a condition; all are as large."""
    join, nothing = KINDS[kind]
    reduced: Array = join.reduce(np.where(chosen, terms, nothing), 0, initial=nothing)
    return reduced


RUNNING = """
    kernel f(x: f32[m, n], t: f32[k]) -> a: f32[m, n], b: f32[n, m], c: f32[m, n], d: f32[n] {{
        a[i, j] = {kind}[p when p <= j] x[i, p];
        b[j, i] = {kind}[p when j + 2 < p and x[i, p] > 0.0] x[i, p];
        c[i, j] = {kind}[p when not (p >= j - 1)] (x[i, p] * x[i, p]);
        d[j] = {kind}[q when q > j + (k - n)] t[q];
    }}
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape", [(3, 7, 9), (2, 1, 1), (0, 3, 2), (2, 0, 4), (1, 6, 0)]
)
def test_prefixes_and_suffixes(kind: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, t = draw(m, n), draw(k)
    got = loaded(RUNNING.format(kind=kind)).f_reference(x, t)
    p, i, j = np.ogrid[:n, :m, :n]
    terms = x.T[:, :, None]
    expected = (
        each_with_each(kind, p <= j, terms),
        each_with_each(kind, (j + 2 < p) & (terms > 0), terms).T,
        each_with_each(kind, p < j - 1, terms**2),
        each_with_each(kind, np.arange(k)[:, None] > np.arange(n) + k - n, t[:, None]),
    )
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, np.broadcast_to(other, one.shape), 1e-12, 1e-12)
    assert i.size == m


SCATTERED = """
    kernel f(x: f32[n, d], ids: i32[n], u: u32[n, d], w: f32[d])
        -> a: f32[d, 5], b: f32[5, 4], c: f32[n, 4], e: f32[5] {{
        a[j, q] = {kind}[i when ids[i] == q and x[i, j] < 1.0] (x[i, j] * w[j]);
        b[q, r] = {kind}[i, j when u32(r) == u[i, j] and ids[i] == q] x[i, j];
        c[i, r] = {kind}[j when u[i, j] == u32(r)] x[i, j];
        e[q] = {kind}[i when q == ids[i]] 1.5;
    }}
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(8, 3), (1, 1), (0, 2), (3, 0)])
def test_reductions_by_key(kind: str, shape: tuple[int, int]) -> None:
    n, d = shape
    x, w, ids = draw(n, d), draw(d), keys(5, n)
    u = np.abs(keys(4, n, d)).astype(np.uint32)
    got = loaded(SCATTERED.format(kind=kind)).f_reference(x, ids, u, w)
    q, r = np.arange(5), np.arange(4)
    first = (ids[:, None, None] == q) & (x < 1)[:, :, None]
    both = (u[:, :, None, None] == r) & (ids[:, None, None, None] == q[:, None])
    flat = both.reshape(n * d, 5, 4)
    inner = np.moveaxis(u[:, :, None] == r, 1, 0)
    expected = (
        each_with_each(kind, first, (x * w)[:, :, None]),
        each_with_each(kind, flat, x.reshape(-1, 1, 1)),
        each_with_each(kind, inner, x.T[:, :, None]),
        each_with_each(kind, ids[:, None] == q, np.full((n, 1), 1.5)),
    )
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, np.broadcast_to(other, one.shape), 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_integers_wrap_and_keep_their_type(dtype: Any) -> None:
    large = np.full(5, 2**31 - 1, dtype)
    with np.errstate(over="ignore"):
        running = ref.prefixes(np.add, large, 0, 5, 0, 0)
        total = ref.scatter(np.add, np.zeros(2, dtype), (np.ones(5),), large)
    assert running.dtype == total.dtype == dtype
    wrapped = (np.arange(1, 6, dtype=np.int64) * (2**31 - 1)).astype(dtype)
    np.testing.assert_array_equal(running, wrapped)
    np.testing.assert_array_equal(total, [0, wrapped[-1]])


def test_what_is_left_out_does_not_matter() -> None:
    x, ids = np.array([1.0, np.nan, 2.0, np.inf]), np.array([1, 7, 1, -1])
    total = ref.scatter(np.add, np.zeros(3), (ids,), x)
    np.testing.assert_array_equal(total, [0, 3, 0])
    running = ref.prefixes(np.maximum, x[:1], 0, 3, -1, -np.inf)
    np.testing.assert_array_equal(running, [-np.inf, 1, 1])


SUMS = {
    "histogram": "kernel f(x: u32[n], k: u32) -> y: u32[k] { y[q] = sum[i when x[i] == u32(q)] 1; }",
    "prefix": "kernel f(x: u32[n], k: u32) -> y: u32[n] { y[q] = sum[i when i <= q] x[i]; }",
}


@pytest.mark.parametrize("name", SUMS)
def test_no_term_is_compared_with_each_result(name: str) -> None:
    n = 20_000
    x = np.arange(n, dtype=np.uint32)
    function = loaded(SUMS[name]).f_reference
    function(x[:2], k=n)
    tracemalloc.start()
    try:
        y = function(x, k=n)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    expected = np.ones(n) if name == "histogram" else np.cumsum(x, dtype=np.uint32)
    np.testing.assert_array_equal(y, expected)
    assert peak < 60 * n, "n * n comparisons take more"


OTHERS = (
    # The index of the bound is needed for more.
    "y[i] = sum[j when j <= i] x[j] * w[i];",
    "y[i] = sum[j when j <= i and ids[j] != i] x[j];",
    # The keys of a result are those of others too.
    "y[i] = sum[j when ids[j] == i + 1] x[j];",
    "y[i] = sum[j when 2 * j <= i] x[j];",
    "y[i] = sum[j when ids[j] == ids[i]] x[j];",
    "y[i] = sum[j when ids[j] == i or j < 2] x[j];",
    # Terms that nothing is as large as.
    "y[i] = sum[j, p when ids[j] == i] x[j] * w[p];",
)


@pytest.mark.parametrize("statement", OTHERS)
def test_other_conditions_take_the_general_form(statement: str) -> None:
    text = f"kernel f(x: f32[n], w: f32[n], ids: i32[n]) -> y: f32[n] {{ {statement} }}"
    assert not {"ref.scatter", "ref.prefixes", "ref.suffixes"} & {
        word.split("(")[0] for word in emitted(text).split()
    }
    x, w, ids = draw(6), draw(6, seed=1), keys(6, 6)
    (i, j), p = np.ogrid[:6, :6], np.arange(6)
    conditions: dict[str, Callable[[], Array]] = {
        OTHERS[0]: lambda: (j <= i) * x[j] * w[i],
        OTHERS[1]: lambda: ((j <= i) & (ids[j] != i)) * x[j],
        OTHERS[2]: lambda: (ids[j] == i + 1) * x[j],
        OTHERS[3]: lambda: (2 * j <= i) * x[j],
        OTHERS[4]: lambda: (ids[j] == ids[i]) * x[j],
        OTHERS[5]: lambda: ((ids[j] == i) | (j < 2)) * x[j],
        OTHERS[6]: lambda: (ids[j] == i) * x[j] * w[p].sum(),
    }
    expected = conditions[statement]().sum(1)
    np.testing.assert_allclose(loaded(text).f_reference(x, w, ids), expected, 1e-12)


@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(-12, 12),
    st.sampled_from([*KINDS]),
)
def test_shifts_beyond_both_ends(n: int, length: int, shift: int, kind: str) -> None:
    join, nothing = KINDS[kind]
    x = draw(n, 2)
    ahead = ref.prefixes(join, x, 0, length, shift, nothing)
    behind = ref.suffixes(join, x, 0, length, shift, nothing)
    for i in range(length):
        before = x[: max(i + shift + 1, 0)]
        after = x[max(i + shift, 0) :]
        np.testing.assert_allclose(ahead[i], join.reduce(before, 0, initial=nothing))
        np.testing.assert_allclose(behind[i], join.reduce(after, 0, initial=nothing))
