"""Emitted NumPy references, against NumPy and loops written by hand."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.compile import emitted, loaded
from tests.emit.sources import (
    ADAMW,
    GATHER,
    INTEGERS,
    LITERALS,
    LOOPS,
    NAMES,
    REDUCE,
    STATE,
)

Array = NDArray[Any]
FLOATS = [np.float32, np.float64]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


@pytest.fixture(params=FLOATS, ids=["f32", "f64"])
def real(request: pytest.FixtureRequest) -> Any:
    """Return the float type that arguments have."""
    return request.param


def draw(real: Any, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-2, 2, shape).astype(real)


def close(got: Array, expected: Any, real: Any) -> None:
    """Check values, shape and type; what is expected is computed in double."""
    wanted = np.asarray(expected)
    assert isinstance(got, np.ndarray)
    assert got.dtype == real
    assert got.shape == wanted.shape
    tolerance = TOLERANCE[real]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def doubles(*arrays: Array) -> list[Array]:
    return [array.astype(np.float64) for array in arrays]


LINEAR = """
    fn gelu(x: f32) -> f32 { 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x))) }
    kernel linear(a: f32[m, k], b: f32[k, n], bias: f32[n], alpha: f32 = 1.0) -> c: f32[m, n] {
        let z[i, j] = alpha * sum[p] a[i, p] * b[p, j] + bias[j];
        c[i, j] = gelu(z[i, j]);
    }
"""


@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (1, 1, 1), (0, 2, 3), (2, 0, 3), (2, 3, 0)]
)
def test_linear(real: Any, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b, bias = draw(real, m, k), draw(real, k, n), draw(real, n)
    got = loaded(LINEAR).linear_reference(a, b, bias, alpha=0.7)
    x, y, z = doubles(a, b, bias)
    v = 0.7 * (x @ y) + z
    close(got, 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3))), real)


def test_a_product_is_einsum() -> None:
    assert 'np.einsum("ip,pj->ij", a, b, optimize=True)' in emitted(LINEAR)


SOFTMAX = """
    kernel softmax(x: f32[m, n]) -> y: f32[m, n] {
        let top[i] = max[j] x[i, j];
        let total[i] = sum[j] exp(x[i, j] - top[i]);
        y[i, j] = exp(x[i, j] - top[i]) / total[i];
    }
"""


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (4, 0)])
def test_softmax(real: Any, shape: tuple[int, int]) -> None:
    x = draw(real, *shape) * real(40)
    (v,) = doubles(x)
    e = np.exp(v - (v.max(axis=1, keepdims=True) if v.size else 0))
    expected = e / e.sum(axis=1, keepdims=True)
    close(loaded(SOFTMAX).softmax_reference(x), expected, real)


def test_adamw_changes_the_callers_arrays(real: Any) -> None:
    arrays = [draw(real, 7, seed=seed) for seed in range(4)]
    arrays[3] = np.abs(arrays[3])
    p, g, m, v = doubles(*arrays)
    assert loaded(ADAMW).adamw_reference(*arrays, lr=0.1, step=3) is None
    m = 0.9 * m + (1 - 0.9) * g
    v = 0.999 * v + (1 - 0.999) * g * g
    m_hat, v_hat = m / (1 - 0.9**3), v / (1 - 0.999**3)
    p = p - 0.1 * (m_hat / (np.sqrt(v_hat) + 1e-8) + 0.01 * p)
    for got, expected in zip(arrays, (p, g, m, v), strict=True):
        close(got, expected, real)


def test_scalars_of_numpy_do_not_change_the_type() -> None:
    arrays = [np.ones(3, np.float32) for _ in range(4)]
    loaded(ADAMW).adamw_reference(*arrays, lr=np.float64(0.1), step=np.int64(1))
    a, b = np.ones((2, 2), np.float32), np.ones(2, np.float32)
    got = loaded(LINEAR).linear_reference(a, a, b, alpha=np.float64(2))
    assert got.dtype == np.float32


AXES = """
    kernel axes(x: f32[m, n], y: f32[n, m], u: f32[m], v: f32[n], t: f32[n, k, m])
        -> a: f32[m, n], b: f32[n, m, k], c: f32[k], d: f32[m, n], e: f32[m, k, n] {
        a[i, j] = x[i, j] * y[j, i] + u[i] - v[j];
        b[j, i, l] = t[j, l, i] + u[i] * v[j];
        c[l] = sum[j, i] t[j, l, i] * abs(x[i, j]);
        d[i, j] = u[i];
        e[i, l, j] = t[j, l, i] * x[i, j];
    }
"""


def test_axes_of_every_order(real: Any) -> None:
    m, n, k = 2, 3, 4
    args = draw(real, m, n), draw(real, n, m), draw(real, m), draw(real, n)
    t = draw(real, n, k, m)
    got = loaded(AXES).axes_reference(*args, t)
    x, y, u, v, w = doubles(*args, t)
    close(got[0], x * y.T + u[:, None] - v, real)
    close(got[1], np.transpose(w, (0, 2, 1)) + np.outer(v, u)[:, :, None], real)
    close(got[2], np.einsum("jli,ij->l", w, np.abs(x)), real)
    close(got[3], np.repeat(u[:, None], n, 1), real)
    close(got[4], np.einsum("jli,ij->ilj", w, x), real)


def test_reductions(real: Any) -> None:
    x, w = draw(real, 3, 4), draw(real, 4)
    got = loaded(REDUCE).reduce_reference(x, w)
    y, v = doubles(x, w)
    expected = (
        *(y.prod(axis=1), y.min(axis=0), y.max(), (y * y).sum(), y @ v),
        *(y.sum(axis=1) * v.max(), y.max(axis=1).sum()),
    )
    for part, wanted in zip(got, expected, strict=True):
        close(part, wanted, real)


def test_reductions_over_nothing(real: Any) -> None:
    got = loaded(REDUCE).reduce_reference(np.zeros((2, 0), real), np.zeros(0, real))
    close(got[0], [1, 1], real)
    close(got[1], np.zeros(0), real)
    assert float(got[2]) == -np.inf
    close(got[3], 0.0, real)
    close(got[4], [0, 0], real)
    got = loaded(REDUCE).reduce_reference(np.zeros((0, 2), real), np.zeros(2, real))
    assert got[1].tolist() == [np.inf, np.inf]
    close(got[6], 0.0, real)


def test_what_fits_no_input_runs_as_loops(real: Any) -> None:
    a, b, c = draw(real, 3, 4), draw(real, 4, 5), draw(real, 4)
    got = loaded(LOOPS).loops_reference(a, b, c)
    x, y, z = doubles(a, b, c)
    cube = x[:, :, None], y[None, :, :]
    close(got[0], (cube[0] + cube[1]).min(axis=1), real)
    weight = (z + np.arange(4))[None, :, None]
    close(got[1], (np.abs(cube[0] - cube[1]) * weight).sum(axis=1), real)
    close(got[2], (y[:, None, :] * z[None, :, None]).max(axis=(0, 1)), real)


def test_loops_over_nothing(real: Any) -> None:
    empty = np.zeros((2, 0), real), np.zeros((0, 3), real), np.zeros(0, real)
    got = loaded(LOOPS).loops_reference(*empty)
    assert np.all(got[0] == np.inf)
    close(got[1], np.zeros((2, 3)), real)


def test_no_temporary_is_much_larger_than_what_is_read_or_written() -> None:
    size = 150
    a, b, c = (np.ones(s) for s in ((size, size), (size, size), size))
    reference = loaded(LOOPS).loops_reference
    reference(a, b, c)
    tracemalloc.start()
    reference(a, b, c)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * a.nbytes, "a cube would take 150 times as much"


def test_gathers_clamp(real: Any) -> None:
    v, d, t = 4, 3, 5
    table, x, cube = draw(real, v, d), draw(real, t, v), draw(real, t, v, d)
    ids = np.array([0, 3, 4, 2**32 - 1, 1], np.uint32)
    at = np.array([0, 3, -1, 4, -(2**31)], np.int32)
    got = loaded(GATHER).gather_reference(table, ids, x, at, cube)

    def clamp(index: Any, length: int) -> int:
        return min(max(int(index), 0), length - 1)

    rows = np.array([[table[clamp(ids[i], v), j] for j in range(d)] for i in range(t)])
    close(got[0], rows, real)
    close(got[1], [x[i, clamp(at[i], v)] for i in range(t)], real)
    close(got[2], rows.T, real)
    close(got[3], [x[clamp(at[i], t), clamp(ids[i], v)] for i in range(t)], real)
    close(got[4], [cube[i, clamp(at[i], v)] for i in range(t)], real)


def test_int64_subscripts_are_converted(real: Any) -> None:
    table = draw(real, 4, 3)
    ids, at = np.array([2]), np.array([1])
    x, cube = draw(real, 1, 4), draw(real, 1, 4, 3)
    got = loaded(GATHER).gather_reference(table, ids, x, at, cube)
    close(got[0], table[[2]], real)


SCATTER = """
    kernel scatter(dy: f32[t, d], ids: u32[t], like: f32[v, d]) -> table: f32[v, d] {
        table[r, j] = sum[s] (if ids[s] == u32(r) { dy[s, j] } else { 0.0 }) + 0.0 * like[r, j];
    }
"""


def test_a_scatter_as_a_gather(real: Any) -> None:
    dy, ids = draw(real, 6, 2), np.array([1, 0, 1, 3, 3, 3], np.uint32)
    expected = np.zeros((4, 2))
    np.add.at(expected, ids, dy.astype(np.float64))
    got = loaded(SCATTER).scatter_reference(dy, ids, np.ones((4, 2), real))
    close(got, expected, real)


BRANCH = """
    fn clip(x: f32, low: f32, high: f32) -> f32 { if x < low { low } else if x > high { high } else { x } }
    kernel branch(x: f32[n], flag: i32[n], low: f32 = -0.5)
        -> a: f32[n], b: f32[n], c: i32[n], d: f32[n] {
        a[i] = clip(x[i], low, 1.0);
        b[i] = if flag[i] > 0 and not (x[i] <= 0.0) or i == 0 { 1.0 } else { 0.0 };
        c[i] = if x[i] > 0.0 { 1 } else { -i };
        d[i] = if true { 2.0 } else { x[i] };
    }
"""


def test_branches(real: Any) -> None:
    x = np.array([-1, 0, 0.25, 2], real)
    flag = np.array([-1, 1, 1, 0], np.int32)
    a, b, c, d = loaded(BRANCH).branch_reference(x, flag)
    close(a, [-0.5, 0, 0.25, 1], real)
    close(b, [1, 0, 1, 0], real)
    assert (c.dtype, c.tolist()) == (np.int32, [0, -1, 1, 1])
    close(d, [2, 2, 2, 2], real)


def wrap(value: int, *, signed: bool) -> int:
    bits = value & 0xFFFFFFFF
    return bits - 2**32 if signed and bits >= 2**31 else bits


def idiv(x: int, y: int) -> int:
    if y == 0:
        return x
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def irem(x: int, y: int) -> int:
    return 0 if y == 0 else x - idiv(x, y) * y


def i32_of(value: float) -> int:
    return int(min(max(np.trunc(value), -(2**31)), 2147483520))


def test_integers_against_loops() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**31), 2**31, 40).astype(np.int32)
    y = np.r_[rng.integers(-9, 9, 38), [0, -1]].astype(np.int32)
    x[39] = -(2**31)
    u = rng.integers(0, 2**32, 40).astype(np.uint32)
    w = np.r_[rng.integers(0, 99, 39), [0]].astype(np.uint32)
    a, b, c, d, e, f, g, h, k, o = loaded(INTEGERS).integers_reference(x, y, u, w)
    for array in (a, b, c, f, g, k, o):
        assert array.dtype == np.int32
    for array in (d, e, h):
        assert array.dtype == np.uint32
    for i in range(40):
        p, q, r, t = int(x[i]), int(y[i]), int(u[i]), int(w[i])
        assert a[i] == wrap(idiv(p, q) + irem(p, q), signed=True)
        assert b[i] == wrap(p * q + 3 * 1000003 * p, signed=True)
        assert c[i] == wrap((p & q | 12) ^ ~p, signed=True)
        assert d[i] == wrap((r << t % 32) + (r >> 3), signed=False)
        assert e[i] == wrap(idiv(r, t) + irem(r, t) - r * t, signed=False)
        assert f[i] == p >> t % 32
        bits = r.bit_count() + int(format(t, "032b")[::-1], 2)
        assert h[i] == wrap(bits, signed=False)
        assert k[i] == i32_of(float(np.float32(np.float32(p) * np.float32(1000))))
        assert o[i] == wrap(40 * 40 * 10**10 + i, signed=True)
    assert int(g) == wrap(sum(x.tolist()), signed=True)


def test_statements_run_in_order_on_the_callers_arrays(real: Any) -> None:
    a, s, x = draw(real, 3, 3), np.array(1.5, real), draw(real, 3)
    before, (v,) = a.astype(np.float64), doubles(x)
    y, z = loaded(STATE).state_reference(a, s, x)
    total = (before.T * v[:, None]).sum()
    close(y, before.sum(axis=1) + 1.5 + total, real)
    close(s, total, real)
    close(a, before.T + v, real)
    close(z, v, real)
    assert not np.shares_memory(z, x)


def test_numbers_take_the_arrays_type(real: Any) -> None:
    x = draw(real, 4)
    a, b, c = loaded(LITERALS).literals_reference(x)
    (v,) = doubles(x)
    close(a, 2 * np.exp(v / 2) + 4 * math.exp(0.5 / 4) * 2, real)
    close(b, np.full(4, 0.5 + math.sqrt(0.5)), real)
    close(c, np.arange(4) / 3 + 4 * 0.5, real)


def test_names_that_python_or_the_reference_uses(real: Any) -> None:
    q, r, p = draw(real, 2, 3), draw(real, 3, 4), draw(real, 4)
    out, top, at = loaded(NAMES).names_reference(q, r, p, np.array([5, 6], np.int32))
    x, y, z = doubles(q, r, p)
    close(out, x @ y * z, real)
    close(top, (y * z).max(axis=0), real)
    close(at, [5, 7], real)


def test_einsum_knows_long_index_names_by_letters() -> None:
    assert '"rd,dc,c->rc"' in emitted(NAMES)


SPECIAL = """
    kernel special(x: f32[n], v: vec3f, k: vec2i) -> a: f32[n], b: f32[n], c: f32[n], d: i32[n] {
        a[i] = 1.0 / x[i] + log(x[i]);
        b[i] = if is_nan(x[i]) { -1.0 } else { if is_finite(x[i]) { 1.0 } else { 0.0 } };
        c[i] = v.x * x[i] + v.y - v.z / v.x;
        d[i] = k.x * k.y + i;
    }
"""


def test_special_values_raise_no_warning(real: Any) -> None:
    x = np.array([0, -1, np.inf, np.nan], real)
    module = loaded(SPECIAL)
    a, b, c, d = module.special_reference(x, v=(0.0, 2.0, 3.0), k=(2**30, 4))
    assert math.isnan(a[0])
    assert b.tolist() == [1, 1, 0, -1]
    assert np.isinf(c[0])
    assert d.tolist() == [0, 1, 2, 3]


def test_inputs_may_be_lists_and_halves() -> None:
    got = loaded(LINEAR).linear_reference(
        [[1, 2]], np.array([[1], [2]], np.float16), [1]
    )
    assert got.dtype == np.float32
    assert got.shape == (1, 1)


def test_comparisons_of_comparisons_do_not_chain() -> None:
    """Python reads `a < b == (b < c)` as `a < b and b == (b < c)`."""
    text = """kernel f(a: f32[n], b: f32[n], c: f32[n]) -> y: u32[n] {
        y[i] = if (a[i] < b[i]) == (b[i] < c[i]) { 1 } else { 0 };
    }"""
    a, b, c = np.random.default_rng(0).uniform(-1, 1, (3, 40))
    got = loaded(text).f_reference(a, b, c)
    np.testing.assert_array_equal(got, (a < b) == (b < c))


@pytest.mark.parametrize("h", [3, 5, 9])
def test_a_key_that_is_an_index_of_another_length(h: int) -> None:
    text = """kernel f(x: f32[n], a: f32[h]) -> y: f32[h] {
        y[r] = sum[q < n when q == r and x[q] > 0.0] a[r];
    }"""
    x, a = np.array([1.0, -1.0, 2.0, 3.0, 4.0]), np.arange(1.0, h + 1)
    wanted = [a[r] if r < 5 and x[r] > 0 else 0.0 for r in range(h)]
    np.testing.assert_array_equal(loaded(text).f_reference(x, a), wanted)
