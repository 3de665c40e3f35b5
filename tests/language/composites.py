"""Kernels of vectors and matrices, with their meaning as loops over elements, in double."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Real: TypeAlias = type[np.float32] | type[np.float64]
"""The float type that plain arrays have, and that all is computed in."""

N = 7


@dataclass(frozen=True)
class Composite:
    """A kernel `f` and its arguments for a float type.

    `meaning` gives the outputs, then the tensors that change, from the arguments; those
    with floats come in double.  A struct's are a dict of members.  What is kept in structs
    or as f16 on the way is rounded, so that such a case has no meaning in double.
    """

    name: str
    text: str
    arguments: Callable[[ModuleType, Real], tuple[Any, ...]]
    meaning: Callable[..., Iterable[Any]]
    scalars: Callable[[ModuleType], dict[str, Any]] = lambda _: {}
    reals: tuple[Real, ...] = (np.float32, np.float64)

    def __str__(self) -> str:
        """The name, as tests show it."""
        return self.name


def draw(real: Real, *shape: int, seed: int = 0) -> Array:
    """Draw floats from -2 to 2."""
    return np.random.default_rng(seed + sum(shape)).uniform(-2, 2, shape).astype(real)


def clamp(place: Any, length: int) -> int:
    """Return the nearest place in an axis."""
    return min(max(int(place), 0), length - 1)


def by_row(rows: Iterable[Iterable[Any]]) -> list[Array]:
    """Return an array for each output, from a row of all outputs for each element."""
    return [np.array([*map(np.asarray, part)]) for part in zip(*rows, strict=True)]


BODIES = """
    kernel f(x: vec3f[n], mass: f32[n]) -> acc: vec3f[n], total: vec3f[], far: vec3f[] {
        acc[i] = sum[j] (mass[j] * inverseSqrt(dot(x[j] - x[i], x[j] - x[i]) + 0.01) * (x[j] - x[i]));
        total = sum[i] (x[i] * mass[i]);
        far = max[i] x[i];
    }
"""


def bodies(x: Array, mass: Array) -> list[Array]:
    n = len(x)
    acc, total = np.zeros((n, 3)), np.zeros(3)
    far = np.full(3, -np.inf)
    for i in range(n):
        total += x[i] * mass[i]
        for c in range(3):
            far[c] = max(far[c], x[i, c])
        for j in range(n):
            d = x[j] - x[i]
            acc[i] += mass[j] / math.sqrt(sum(d * d) + 0.01) * d
    return [acc, total, far]


PRODUCTS = """
    kernel f(m: mat4x3f[n], b: mat2x4f[n], v: vec4f[n], w: vec3f[n], s: f32[n])
        -> mv: vec3f[n], wm: vec4f[n], mb: mat2x3f[n], ms: mat4x3f[n], ordered: vec3f[n],
           summed: mat4x3f[], pulled: vec3f[] {
        mv[i] = m[i] * v[i];
        wm[i] = w[i] * m[i];
        mb[i] = m[i] * b[i];
        ms[i] = s[i] * m[i] + m[i] * 2.0 - m[i] * s[i];
        ordered[i] = m[i] * (b[i] * (w[i].xy * 0.5));
        summed = sum[i] m[i];
        pulled = sum[i] (w[i] * (m[i] * v[i]));
    }
"""


def products(m: Array, b: Array, v: Array, w: Array, s: Array) -> list[Array]:
    """WGSL 8.7: of a matrix of C columns and R rows, `m[c][r]` is a component."""
    mv, wm, mb, ordered = (np.zeros((N, *k)) for k in ((3,), (4,), (2, 3), (3,)))
    for i in range(N):
        for c in range(4):
            for r in range(3):
                mv[i, r] += m[i, c, r] * v[i, c]
                wm[i, c] += m[i, c, r] * w[i, r]
                for d in range(2):
                    mb[i, d, r] += m[i, c, r] * b[i, d, c]
                    ordered[i, r] += m[i, c, r] * b[i, d, c] * w[i, d] * 0.5
    summed = sum((m[i] for i in range(N)), np.zeros((4, 3)))
    pulled = sum((w[i] * mv[i] for i in range(N)), np.zeros(3))
    assert len(s) == N
    return [mv, wm, mb, 2.0 * m, ordered, summed, pulled]


AXES = """
    kernel f(x: vec3f[n], m: mat2x3f[k], s: f32[k], t: vec2f[k, n, o], u: vec2f[k, n])
        -> a: vec3f[n, k], b: mat2x3f[n, k], c: vec2f[o, n, k], d: vec2f[n, k],
           e: vec2f[n, k, o], g: vec2f[k] {
        a[i, j] = x[i] / (s[j] * s[j] + 1.0) + 1.0;
        b[i, j] = (s[j] * m[j] - m[j] * 3.0) * x[i].z;
        c[p, i, j] = t[j, i, p] + u[j, i];
        d[i, j] = u[j, i];
        e[i, j, p] = u[j, i];
        g[j] = sum[i, p] (t[j, i, p] * s[j]);
    }
"""


def axes(x: Array, m: Array, s: Array, t: Array, u: Array) -> list[Array]:
    k, n, o, _ = t.shape
    a, b, c = np.zeros((n, k, 3)), np.zeros((n, k, 2, 3)), np.zeros((o, n, k, 2))
    d, e, g = np.zeros((n, k, 2)), np.zeros((n, k, o, 2)), np.zeros((k, 2))
    for i in range(n):
        for j in range(k):
            a[i, j] = x[i] / (s[j] ** 2 + 1) + 1
            b[i, j] = (s[j] - 3) * m[j] * x[i, 2]
            d[i, j] = u[j, i]
            for p in range(o):
                c[p, i, j] = t[j, i, p] + u[j, i]
                e[i, j, p] = u[j, i]
                g[j] += t[j, i, p] * s[j]
    return [a, b, c, d, e, g]


PARTS = """
    kernel f(v: vec4f[n], m: mat3x2f[n], at: i32[n])
        -> a: vec3f[n], b: f32[n], c: vec2f[n], d: f32[n], e: mat2x3f[n], g: vec4f[n],
           h: vec2f[n], k: f32[n], o: vec3f[n] {
        a[i] = v[i].zyx + v[i].yyw * v[i].x;
        b[i] = v[i][at[i]] + v[i][1];
        c[i] = m[i][at[i]] + m[i][2];
        d[i] = m[i][1].y * m[i][at[i]].x;
        e[i] = mat2x3f(v[i].xyz, vec3f(f32(at[i]), 2.0, v[i].w));
        g[i] = vec4f(v[i].xy, vec2f(1.0, b[i]));
        h[i] = vec2f(b[i]) + vec2f(0.5) * vec2f(v[i].zw);
        k[i] = sum[q < 4] (v[i][q] * f32(q));
        o[i] = -vec3f(1.0, 2.0, 3.0) * v[i].w;
    }
"""
PLACES = np.array([0, 1, 2, 3, -1, 99, -(2**31)], np.int32)


def parts(v: Array, m: Array, at: Array) -> list[Array]:
    rows: list[list[Any]] = []
    for i in range(N):
        component, column = clamp(at[i], 4), clamp(at[i], 3)
        b = v[i, component] + v[i, 1]
        rows.append(
            [
                [v[i, p] + v[i, q] * v[i, 0] for p, q in ((2, 1), (1, 1), (0, 3))],
                b,
                m[i, column] + m[i, 2],
                m[i, 1, 1] * m[i, column, 0],
                [v[i, :3], [float(at[i]), 2.0, v[i, 3]]],
                [v[i, 0], v[i, 1], 1.0, b],
                [b + 0.5 * v[i, 2], b + 0.5 * v[i, 3]],
                sum(q * v[i, q] for q in range(4)),
                [-v[i, 3], -2 * v[i, 3], -3 * v[i, 3]],
            ]
        )
    return by_row(rows)


INTEGERS = """
    kernel f(x: vec3i[n], y: vec3i[n], u: vec3u[n], s: i32)
        -> a: vec3i[n], b: vec3u[n], c: i32[n], d: vec3i[n], e: vec3f[n], g: vec3i[] {
        a[i] = x[i] / y[i] + x[i] % y[i] * s;
        b[i] = (u[i] << (u[i] & vec3u(3))) ^ (u[i] >> vec3u(1, 2, 35));
        c[i] = dot(x[i], y[i]);
        d[i] = vec3i(u[i]) + vec3i(vec3f(x[i]) * 1.5) + min(x[i], ~y[i]);
        e[i] = vec3f(y[i]) * 0.5;
        g = sum[i] x[i];
    }
"""


def integer_arguments(_module: ModuleType, _real: Real) -> tuple[Array, ...]:
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**31), 2**31, (20, 3)).astype(np.int32)
    y = rng.integers(-5, 5, (20, 3)).astype(np.int32)
    return x, y, rng.integers(0, 2**32, (20, 3)).astype(np.uint32)


def wrap(value: int) -> int:
    """Return what an i32 keeps of an integer."""
    return (value + 2**31) % 2**32 - 2**31


def idiv(x: int, y: int) -> int:
    if y == 0:
        return x
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def i32_of(value: float) -> int:
    return int(min(max(np.trunc(value), -(2**31)), 2147483520))


def integers(x: Array, y: Array, u: Array, *, s: int) -> list[Array]:
    a, d = np.zeros(x.shape, np.int32), np.zeros(x.shape, np.int32)
    b, e = np.zeros(x.shape, np.uint32), np.zeros(x.shape, np.float32)
    c = np.zeros(len(x), np.int32)
    for i in range(len(x)):
        products = (int(p) * int(q) for p, q in zip(x[i], y[i], strict=True))
        c[i] = wrap(sum(products))
        for part in range(3):
            p, q, r = int(x[i, part]), int(y[i, part]), int(u[i, part])
            remainder = 0 if q == 0 else p - idiv(p, q) * q
            a[i, part] = wrap(idiv(p, q) + remainder * s)
            b[i, part] = (r << (r & 3)) % 2**32 ^ (r >> (1, 2, 3)[part])
            scaled = i32_of(float(np.float32(np.float32(p) * np.float32(1.5))))
            d[i, part] = wrap(r + scaled + min(p, ~q))
            e[i, part] = 0.5 * q
    g = np.array([wrap(sum(map(int, x[:, part]))) for part in range(3)], np.int32)
    return [a, b, c, d, e, g]


GEOMETRY = """
    kernel f(a: vec3f[n], b: vec3f[n], c: vec2f[n], m: mat3x3f[n], t: mat2x4f[n])
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


def shapes(a: Array, b: Array, c: Array, m: Array, t: Array) -> list[Array]:
    rows: list[list[Any]] = []
    for i in range(N):
        (p, q, r), (x, y, z) = a[i], b[i]
        (j, k, o), (u, v, w), (d, e, g) = m[i]
        product = p * x + q * y + r * z
        normal = b[i] / math.sqrt(x * x + y * y + z * z)
        towards, way = sum(b[i] * m[i, 0]), a[i] / math.sqrt(p * p + q * q + r * r)
        cosine, ratio = float(sum(normal * way)), i * 0.5
        rest = 1 - ratio**2 * (1 - cosine**2)
        bent = ratio * way - (ratio * cosine + math.sqrt(max(rest, 0))) * normal
        determinant = j * (v * g - w * e) - k * (u * g - w * d) + o * (u * e - v * d)
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
    assert not all(np.any(row[5]) for row in rows), "one is reflected in whole"
    return by_row(rows)


FUNCTIONS = """
    fn scaled(v: vec3f, by: f32) -> vec3f { let w = v * by; w / length(w) + by }
    fn first(v: vec3f, unused: mat2x2f) -> f32 { v.x }
    fn constant(v: vec2f, s: f32) -> vec3f { vec3f(1.0, 2.0, 3.0) }
    fn same(m: mat2x2f) -> mat2x2f { m }
    kernel f(x: vec3f[n], s: f32[k], m: mat2x2f[k])
        -> a: vec3f[n, k], b: f32[n, k], c: vec3f[n, k], d: mat2x2f[k], e: vec3f[n] {
        a[i, j] = scaled(x[i], s[j]);
        b[i, j] = first(x[i], m[j]);
        c[i, j] = constant(x[i].xy, s[j]);
        d[j] = same(m[j]);
        e[i] = if x[i].x > 0.0 { x[i] } else if i == 0 { vec3f(1.0) }
            else { clamp(x[i], vec3f(-1.0), vec3f(0.5)) };
    }
"""


def functions(x: Array, s: Array, m: Array) -> list[Array]:
    n, k = len(x), len(s)
    a, b, e = np.zeros((n, k, 3)), np.zeros((n, k)), np.zeros((n, 3))
    for i in range(n):
        for j in range(k):
            w = x[i] * s[j]
            a[i, j] = w / math.sqrt(sum(w * w)) + s[j]
            b[i, j] = x[i, 0]
        low = np.ones(3) if i == 0 else np.array([min(max(p, -1), 0.5) for p in x[i]])
        e[i] = x[i] if x[i, 0] > 0 else low
    return [a, b, np.broadcast_to([1.0, 2.0, 3.0], (n, k, 3)), m, e]


GATHERS = """
    kernel f(table: vec2f[v, d], ids: i32[n], m: mat2x3f[v])
        -> rows: vec2f[n, d], turned: vec2f[d, n], both: vec2f[n], shifted: vec2f[d, v - 1],
           picked: mat2x3f[n], top: vec2f[n], product: vec2f[v] {
        rows[t, j] = table[ids[t], j];
        turned[j, t] = table[ids[t], j];
        both[t] = table[ids[t], ids[t]];
        shifted[j, r] = table[r + 1, j] - table[r, j];
        picked[t] = m[ids[t]];
        top[t] = max[j] (table[ids[t], j]);
        product[r] = prod[j] table[r, j];
    }
"""


def gathers(x: Array, ids: Array, m: Array) -> list[Any]:
    v, d, _ = x.shape
    at, across = [clamp(k, v) for k in ids], [clamp(k, d) for k in ids]
    return [
        [[x[k, j] for j in range(d)] for k in at],
        [[x[k, j] for k in at] for j in range(d)],
        [x[k, j] for k, j in zip(at, across, strict=True)],
        [[x[r + 1, j] - x[r, j] for r in range(v - 1)] for j in range(d)],
        [m[k] for k in at],
        [[max(x[k, j, c] for j in range(d)) for c in range(2)] for k in at],
        [[math.prod(x[r, j, c] for j in range(d)) for c in range(2)] for r in range(v)],
    ]


def floats(*shapes: tuple[int, ...]) -> Callable[[ModuleType, Real], tuple[Array, ...]]:
    """Return what draws arrays of these shapes."""
    return lambda _, real: tuple(
        draw(real, *shape, seed=seed) for seed, shape in enumerate(shapes)
    )


CHOSEN = """
    fn reach(x: f32) -> f32 { let v = vec2f(x, 1.0); v.x * v.y + length(v.xx) }
    fn part(m: mat2x2f) -> f32 { (-m)[1].x }
    kernel f(m: mat2x3f[n], x: f32[n], w: f32[n], k: vec4f)
        -> a: mat2x3f[n], b: mat2x3f[n], c: f32[n], d: f32[n], e: f32[], g: f32[],
           turned: mat3x2f[n], s: vec3f[n], fixed: vec3f[n] {
        turned[i] = transpose(m[i]) * transpose(mat3x3f(m[i][0], m[i][1], m[i][1]));
        a[i] = if x[i] > 0.0 { m[i] } else { -m[n - 1 - i] };
        b[i] = m[i] - -(2.0 * m[i]);
        s[i] = select(m[i][0], m[i][1], x[i] > 0.0);
        fixed[i] = x[i] * if 2 > 1 { vec3f(1.0, vec2f(2.0)) } else { vec3f(vec2f(3.0), 4.0) };
        c[i] = reach(x[i]) + w[i];
        d[i] = k[i % 4] * w[i] + x[i];
        let whole = sum[i] m[i];
        let last = sum[i] vec2f(x[i], w[i]);
        e = whole[1].z + whole[0][2];
        g = last[1] + part(mat2x2f(last, last));
    }
"""


def chosen(m: Array, x: Array, w: Array, k: tuple[float, ...]) -> list[Any]:
    whole, last = m.sum(axis=0), np.array([x.sum(), w.sum()])
    return [
        [m[i] if x[i] > 0 else -m[len(m) - 1 - i] for i in range(len(m))],
        [3 * each for each in m],
        [x[i] + abs(x[i]) * math.sqrt(2) + w[i] for i in range(len(m))],
        [k[i % 4] * w[i] + x[i] for i in range(len(m))],
        whole[1, 2] + whole[0, 2],
        last[1] - last[0],
        [(np.stack((p, q, q)).T @ np.stack((p, q)).T) for p, q in m],
        [m[i, int(x[i] > 0)] for i in range(len(m))],
        [each * np.array((1.0, 2.0, 2.0)) for each in x],
    ]


COMPOSITES = (
    Composite(
        "chosen",
        CHOSEN,
        floats((8, 2, 3), (8,), (8,)),
        chosen,
        lambda _: {"k": (2.0, -1.0, 0.5, 3.0)},
    ),
    Composite("bodies", BODIES, floats((N, 3), (N,)), bodies),
    Composite("one body", BODIES, floats((1, 3), (1,)), bodies),
    Composite("no bodies", BODIES, floats((0, 3), (0,)), bodies),
    Composite(
        "products",
        PRODUCTS,
        floats((N, 4, 3), (N, 2, 4), (N, 4), (N, 3), (N,)),
        products,
    ),
    Composite(
        "axes", AXES, floats((3, 3), (5, 2, 3), (5,), (5, 3, 4, 2), (5, 3, 2)), axes
    ),
    Composite(
        "parts",
        PARTS,
        lambda _, real: (draw(real, N, 4), draw(real, N, 3, 2), PLACES),
        parts,
    ),
    Composite("integers", INTEGERS, integer_arguments, integers, lambda _: {"s": 7}),
    Composite(
        "geometry",
        GEOMETRY,
        floats((N, 3), (N, 3), (N, 2), (N, 3, 3), (N, 2, 4)),
        shapes,
    ),
    Composite("functions", FUNCTIONS, floats((4, 3), (5,), (5, 2, 2)), functions),
    Composite(
        "gathers",
        GATHERS,
        lambda _, real: (draw(real, 4, 3, 2), PLACES, draw(real, 4, 2, 3)),
        gathers,
    ),
)
