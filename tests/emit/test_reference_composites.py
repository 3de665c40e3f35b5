"""References of vectors and matrices, against loops over elements, in double."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emit.emitting import emitted, loaded

Array = NDArray[Any]
FLOATS = [np.float32, np.float64]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}
N = 7


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


BODIES = """
    kernel bodies(x: vec3f[n], mass: f32[n]) -> acc: vec3f[n], total: vec3f[], far: vec3f[] {
        acc[i] = sum[j] (mass[j] * inverseSqrt(dot(x[j] - x[i], x[j] - x[i]) + 0.01) * (x[j] - x[i]));
        total = sum[i] (x[i] * mass[i]);
        far = max[i] x[i];
    }
"""


@pytest.mark.parametrize("count", [N, 1, 0])
def test_accelerations_of_bodies(real: Any, count: int) -> None:
    x, mass = draw(real, count, 3), np.abs(draw(real, count))
    got = loaded(BODIES).bodies_reference(x, mass)
    y, m = doubles(x, mass)
    acc, total = np.zeros((count, 3)), np.zeros(3)
    far = np.full(3, float(np.finfo(np.float32).min))
    for i in range(count):
        total += y[i] * m[i]
        for c in range(3):
            far[c] = max(far[c], y[i, c])
        for j in range(count):
            d = y[j] - y[i]
            acc[i] += m[j] / math.sqrt(sum(d * d) + 0.01) * d
    close(got[0], acc, real)
    close(got[1], total, real)
    close(got[2], far, real)


PRODUCTS = """
    kernel products(m: mat4x3f[n], b: mat2x4f[n], v: vec4f[n], w: vec3f[n], s: f32[n])
        -> mv: vec3f[n], wm: vec4f[n], mb: mat2x3f[n], ms: mat4x3f[n], ordered: vec3f[n] {
        mv[i] = m[i] * v[i];
        wm[i] = w[i] * m[i];
        mb[i] = m[i] * b[i];
        ms[i] = s[i] * m[i] + m[i] * 2.0 - m[i] * s[i];
        ordered[i] = m[i] * (b[i] * (w[i].xy * 0.5));
    }
"""


def test_products_with_matrices(real: Any) -> None:
    """WGSL 8.7; a matrix of C columns and R rows is `m[c][r]`."""
    m, b = draw(real, N, 4, 3), draw(real, N, 2, 4, seed=1)
    v, w, s = draw(real, N, 4), draw(real, N, 3), draw(real, N)
    got = loaded(PRODUCTS).products_reference(m, b, v, w, s)
    mv, wm, mb, ordered = (np.zeros((N, *k)) for k in ((3,), (4,), (2, 3), (3,)))
    for i in range(N):
        for c in range(4):
            for r in range(3):
                entry = float(m[i, c, r])
                mv[i, r] += entry * v[i, c]
                wm[i, c] += entry * w[i, r]
                for d in range(2):
                    mb[i, d, r] += entry * b[i, d, c]
                    ordered[i, r] += entry * float(b[i, d, c]) * w[i, d] * 0.5
    for part, expected in zip(got, (mv, wm, mb, 2.0 * m, ordered), strict=True):
        close(part, expected, real)


AXES = """
    kernel axes(x: vec3f[n], m: mat2x3f[k], s: f32[k], t: vec2f[k, n, l], u: vec2f[k, n])
        -> a: vec3f[n, k], b: mat2x3f[n, k], c: vec2f[l, n, k], d: vec2f[n, k],
           e: vec2f[n, k, l], f: vec2f[k] {
        a[i, j] = x[i] / s[j] + 1.0;
        b[i, j] = (s[j] * m[j] - m[j] * 3.0) * x[i].z;
        c[p, i, j] = t[j, i, p] + u[j, i];
        d[i, j] = u[j, i];
        e[i, j, p] = u[j, i];
        f[j] = sum[i, p] (t[j, i, p] * s[j]);
    }
"""


def test_axes_of_components_stay_behind_all_others(real: Any) -> None:
    n, k, o = 3, 5, 4
    given = draw(real, n, 3), draw(real, k, 2, 3), draw(real, k)
    got = loaded(AXES).axes_reference(
        *given, draw(real, k, n, o, 2), draw(real, k, n, 2)
    )
    x, m, s, t, u = doubles(*given, draw(real, k, n, o, 2), draw(real, k, n, 2))
    a, b, c = np.zeros((n, k, 3)), np.zeros((n, k, 2, 3)), np.zeros((o, n, k, 2))
    d, e, f = np.zeros((n, k, 2)), np.zeros((n, k, o, 2)), np.zeros((k, 2))
    for i in range(n):
        for j in range(k):
            a[i, j] = x[i] / s[j] + 1
            b[i, j] = (s[j] - 3) * m[j] * x[i, 2]
            d[i, j] = u[j, i]
            for p in range(o):
                c[p, i, j] = t[j, i, p] + u[j, i]
                e[i, j, p] = u[j, i]
                f[j] += t[j, i, p] * s[j]
    for part, expected in zip(got, (a, b, c, d, e, f), strict=True):
        close(part, expected, real)


PARTS = """
    kernel parts(v: vec4f[n], m: mat3x2f[n], at: i32[n])
        -> a: vec3f[n], b: f32[n], c: vec2f[n], d: f32[n], e: mat2x3f[n], f: vec4f[n], g: vec2f[n],
           h: f32[n], o: vec3f[n] {
        a[i] = v[i].zyx + v[i].yyw * v[i].x;
        b[i] = v[i][at[i]] + v[i][1];
        c[i] = m[i][at[i]] + m[i][2];
        d[i] = m[i][1].y * m[i][at[i]].x;
        e[i] = mat2x3f(v[i].xyz, vec3f(f32(at[i]), 2.0, v[i].w));
        f[i] = vec4f(v[i].xy, vec2f(1.0, b[i]));
        g[i] = vec2f(b[i]) + vec2f(0.5) * vec2f(v[i].zw);
        h[i] = sum[q < 4] (v[i][q] * f32(q));
        o[i] = -vec3f(1.0, 2.0, 3.0) * v[i].w;
    }
"""


def test_parts_of_vectors_and_matrices(real: Any) -> None:
    v, m = draw(real, N, 4), draw(real, N, 3, 2)
    at = np.array([0, 1, 2, 3, -1, 99, -(2**31)], np.int32)
    got = loaded(PARTS).parts_reference(v, m, at)
    x, y = doubles(v, m)
    rows: list[list[Any]] = []
    for i in range(N):
        component, column = min(max(at[i], 0), 3), min(max(at[i], 0), 2)
        b = x[i, component] + x[i, 1]
        rows.append(
            [
                [x[i, p] + x[i, q] * x[i, 0] for p, q in ((2, 1), (1, 1), (0, 3))],
                b,
                y[i, column] + y[i, 2],
                y[i, 1, 1] * y[i, column, 0],
                [x[i, :3], [at[i], 2.0, x[i, 3]]],
                [x[i, 0], x[i, 1], 1.0, b],
                [b + 0.5 * x[i, 2], b + 0.5 * x[i, 3]],
                sum(q * x[i, q] for q in range(4)),
                [-x[i, 3], -2 * x[i, 3], -3 * x[i, 3]],
            ]
        )
    for part, expected in zip(got, zip(*rows, strict=True), strict=True):
        close(part, np.array([*map(np.asarray, expected)], np.float64), real)


INTEGERS = """
    kernel integers(x: vec3i[n], y: vec3i[n], u: vec3u[n], s: i32 = 7)
        -> a: vec3i[n], b: vec3u[n], c: i32[n], d: vec3i[n], e: vec3f[n], f: vec3i[] {
        a[i] = x[i] / y[i] + x[i] % y[i] * s;
        b[i] = (u[i] << (u[i] & vec3u(3))) ^ (u[i] >> vec3u(1, 2, 35));
        c[i] = dot(x[i], y[i]);
        d[i] = vec3i(u[i]) + vec3i(vec3f(x[i]) * 1.5) + min(x[i], ~y[i]);
        e[i] = vec3f(y[i]) * 0.5;
        f = sum[i] x[i];
    }
"""


def wrap(value: int, *, signed: bool = True) -> int:
    bits = value & 0xFFFFFFFF
    return bits - 2**32 if signed and bits >= 2**31 else bits


def idiv(x: int, y: int) -> int:
    if y == 0:
        return x
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def i32_of(value: float) -> int:
    return int(min(max(np.trunc(value), -(2**31)), 2147483520))


def test_integer_vectors_against_loops() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**31), 2**31, (20, 3)).astype(np.int32)
    y = rng.integers(-5, 5, (20, 3)).astype(np.int32)
    u = rng.integers(0, 2**32, (20, 3)).astype(np.uint32)
    a, b, c, d, e, f = loaded(INTEGERS).integers_reference(x, y, u)
    assert [array.dtype.name for array in (a, b, c, d, e, f)] == [
        *("int32", "uint32", "int32", "int32", "float32", "int32"),
    ]
    for i in range(20):
        assert c[i] == wrap(
            sum(int(p) * int(q) for p, q in zip(x[i], y[i], strict=True))
        )
        for part in range(3):
            p, q, r = int(x[i, part]), int(y[i, part]), int(u[i, part])
            remainder = 0 if q == 0 else p - idiv(p, q) * q
            assert a[i, part] == wrap(idiv(p, q) + remainder * 7)
            shifted = (r << (r & 3)) & 0xFFFFFFFF
            assert b[i, part] == shifted ^ (r >> (1, 2, 3)[part])
            scaled = i32_of(float(np.float32(np.float32(p) * np.float32(1.5))))
            assert d[i, part] == wrap(wrap(r) + scaled + min(p, ~q))
            assert e[i, part] == 0.5 * q
    assert f.tolist() == [wrap(sum(map(int, x[:, part]))) for part in range(3)]


GEOMETRY = """
    kernel shapes(a: vec3f[n], b: vec3f[n], c: vec2f[n], m: mat3x3f[n], t: mat2x4f[n])
        -> lengths: vec4f[n], crossed: vec3f[n], unit: vec2f[n], mirrored: vec3f[n],
           faced: vec3f[n], bent: vec3f[n], turned: mat4x2f[n] {
        lengths[i] = vec4f(dot(a[i], b[i]), length(c[i]), distance(a[i], b[i]), determinant(m[i]));
        crossed[i] = cross(a[i], b[i]);
        unit[i] = normalize(c[i]);
        mirrored[i] = reflect(a[i], normalize(b[i]));
        faced[i] = faceForward(a[i], b[i], m[i][0]);
        bent[i] = refract(normalize(a[i]), normalize(b[i]), f32(i) * 0.5);
        turned[i] = transpose(t[i]);
    }
"""


def test_functions_of_whole_vectors_and_matrices(real: Any) -> None:
    a, b, c = draw(real, N, 3), draw(real, N, 3, seed=1), draw(real, N, 2)
    m, t = draw(real, N, 3, 3), draw(real, N, 2, 4)
    got = loaded(GEOMETRY).shapes_reference(a, b, c, m, t)
    a, b, c, m, t = doubles(a, b, c, m, t)
    rows: list[list[Any]] = []
    for i in range(N):
        (p, q, r), (x, y, z) = a[i], b[i]
        (j, k, o), (u, v, w), (d, e, f) = m[i]
        product = p * x + q * y + r * z
        normal = b[i] / math.sqrt(x * x + y * y + z * z)
        towards, way = sum(b[i] * m[i, 0]), a[i] / math.sqrt(p * p + q * q + r * r)
        cosine, ratio = float(sum(normal * way)), i * 0.5
        rest = 1 - ratio**2 * (1 - cosine**2)
        bent = ratio * way - (ratio * cosine + math.sqrt(max(rest, 0))) * normal
        determinant = j * (v * f - w * e) - k * (u * f - w * d) + o * (u * e - v * d)
        rows.append(
            [
                [product, math.hypot(*c[i]), math.dist(a[i], b[i]), determinant],
                [q * z - r * y, r * x - p * z, p * y - q * x],
                c[i] / math.hypot(*c[i]),
                a[i] - 2 * sum(normal * a[i]) * normal,
                a[i] if towards < 0 else -a[i],
                np.zeros(3) if rest < 0 else bent,
                [[t[i, 0, row], t[i, 1, row]] for row in range(4)],
            ]
        )
    assert any(not row[5].any() for row in rows), "one is reflected in whole"
    for part, expected in zip(got, zip(*rows, strict=True), strict=True):
        close(part, np.array([*map(np.asarray, expected)]), real)


FUNCTIONS = """
    fn scaled(v: vec3f, by: f32) -> vec3f { let w = v * by; w / length(w) + by }
    fn first(v: vec3f, unused: mat2x2f) -> f32 { v.x }
    fn constant(v: vec2f, s: f32) -> vec3f { vec3f(1.0, 2.0, 3.0) }
    fn same(m: mat2x2f) -> mat2x2f { m }
    kernel calls(x: vec3f[n], s: f32[k], m: mat2x2f[k])
        -> a: vec3f[n, k], b: f32[n, k], c: vec3f[n, k], d: mat2x2f[k], e: vec3f[n] {
        a[i, j] = scaled(x[i], s[j]);
        b[i, j] = first(x[i], m[j]);
        c[i, j] = constant(x[i].xy, s[j]);
        d[j] = same(m[j]);
        e[i] = if x[i].x > 0.0 { x[i] } else if i == 0 { vec3f(1.0) } else { clamp(x[i], vec3f(-1.0), vec3f(0.5)) };
    }
"""


def test_functions_of_the_users(real: Any) -> None:
    x, s, m = draw(real, 4, 3), draw(real, 5), draw(real, 5, 2, 2)
    got = loaded(FUNCTIONS).calls_reference(x, s, m)
    assert not np.shares_memory(got[3], m)
    y, t, q = doubles(x, s, m)
    a, b, e = np.zeros((4, 5, 3)), np.zeros((4, 5)), np.zeros((4, 3))
    for i in range(4):
        for j in range(5):
            w = y[i] * t[j]
            a[i, j] = w / math.sqrt(sum(w * w)) + t[j]
            b[i, j] = y[i, 0]
        low = np.ones(3) if i == 0 else np.array([min(max(p, -1), 0.5) for p in y[i]])
        e[i] = y[i] if y[i, 0] > 0 else low
    c = np.broadcast_to([1.0, 2.0, 3.0], (4, 5, 3))
    for part, expected in zip(got, (a, b, c, q, e), strict=True):
        close(part, expected, real)


GATHERS = """
    kernel gathers(table: vec2f[v, d], ids: i32[n], m: mat2x3f[v])
        -> rows: vec2f[n, d], turned: vec2f[d, n], both: vec2f[n], shifted: vec2f[d, v - 1], picked: mat2x3f[n],
           top: vec2f[n], product: vec2f[v] {
        rows[t, j] = table[ids[t], j];
        turned[j, t] = table[ids[t], j];
        both[t] = table[ids[t], ids[t]];
        shifted[j, r] = table[r + 1, j] - table[r, j];
        picked[t] = m[ids[t]];
        top[t] = max[j] (table[ids[t], j]);
        product[r] = prod[j] table[r, j];
    }
"""


def test_gathers_of_vectors_clamp(real: Any) -> None:
    v, d = 4, 3
    table, m = draw(real, v, d, 2), draw(real, v, 2, 3)
    ids = np.array([0, 3, 4, -1, 1], np.int32)
    got = loaded(GATHERS).gathers_reference(table, ids, m)
    x, y = doubles(table, m)
    at = [min(max(int(k), 0), v - 1) for k in ids]
    across = [min(max(int(k), 0), d - 1) for k in ids]
    expected = (
        [[x[k, j] for j in range(d)] for k in at],
        [[x[k, j] for k in at] for j in range(d)],
        [x[k, j] for k, j in zip(at, across, strict=True)],
        [[x[r + 1, j] - x[r, j] for r in range(v - 1)] for j in range(d)],
        [y[k] for k in at],
        [[max(x[k, j, c] for j in range(d)) for c in range(2)] for k in at],
        [[math.prod(x[r, j, c] for j in range(d)) for c in range(2)] for r in range(v)],
    )
    for part, wanted in zip(got, expected, strict=True):
        close(part, wanted, real)


def test_scalar_products_stay_einsum() -> None:
    text = "kernel f(a: f32[m, k], v: vec2f[k]) -> y: f32[m] { y[i] = sum[p] a[i, p] * v[p].x; }"
    assert 'np.einsum("ip,p->i", a, v[..., 0], optimize=True)' in emitted(text)
