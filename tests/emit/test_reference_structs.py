"""References that read and write structs, against loops over elements, in double."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emit.emitting import loaded

Array = NDArray[Any]
Records = NDArray[np.void]
FLOATS = [np.float32, np.float64]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}
N = 6
AT = np.array([0, 1, 2, -1, 99, -(2**31)], np.int32)


@pytest.fixture(params=FLOATS, ids=["f32", "f64"])
def real(request: pytest.FixtureRequest) -> Any:
    """Return the float type that plain arrays have."""
    return request.param


def draw(real: Any, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).uniform(-2, 2, shape).astype(real)


def zeros(dtype: np.dtype[np.void], *shape: int) -> Records:
    return np.zeros(shape, dtype)


def columns(m: Array) -> tuple[tuple[float, ...], ...]:
    """Return a matrix as a caller writes it."""
    return tuple(tuple(map(float, column)) for column in m)


def close(got: Array, expected: Any, real: Any) -> None:
    """Check values, shape and type; what is expected is computed in double."""
    wanted = np.asarray(expected)
    assert isinstance(got, np.ndarray)
    assert got.dtype == real
    assert got.shape == wanted.shape
    tolerance = TOLERANCE[real]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


PARTICLE = """
    struct Spin { axis: vec3f, turn: mat2x3f }
    struct Particle {
        pos: vec3f, mass: f32, trail: f32[3], spots: vec3f[2, 3], half: vec2h, id: i32,
        spins: Spin[2], weights: mat3x3h, class: u32,
    }
"""


def particles(dtype: Any, count: int) -> Records:
    """Return particles of which every member has values of its own."""
    p = zeros(dtype, count)
    p["pos"], p["mass"] = draw(np.float32, count, 3), draw(np.float32, count)
    p["trail"], p["half"] = draw(np.float32, count, 3, seed=2), draw(
        np.float32, count, 2
    )
    p["spots"]["value"] = draw(np.float32, count, 2, 3, 3)
    p["spins"]["axis"] = draw(np.float32, count, 2, 3)
    p["spins"]["turn"]["value"] = draw(np.float32, count, 2, 2, 3)
    p["weights"]["value"] = draw(np.float32, count, 3, 3)
    p["id"] = np.resize(AT, count)
    p["class_"] = np.arange(count) + 2**31
    return p


READ = f"""{PARTICLE}
    kernel read(p: Particle[n], at: i32[n], far: f32[n])
        -> a: vec3f[n], b: f32[n, 3], c: vec3f[n], d: f32[n], e: vec3f[n, 2], f: vec3f[n],
           g: vec3f[], h: u32[n], k: f32[n] {{
        a[i] = p[i].spots[at[i], 1] + p[i].mass * p[i].pos;
        b[i, q] = p[at[i]].trail[q];
        c[i] = p[i].spins[1].turn * p[i].half;
        d[i] = (sum[q] p[i].trail[q]) + far[i];
        e[i, j] = p[i].spins[j].axis * p[i].spins[1 - j].turn[at[i]].y;
        f[i] = p[i].weights * p[i].pos;
        g = sum[i] (p[i].pos * p[i].mass);
        h[i] = p[i].class + u32(p[i].id);
        k[i] = p[i].pos[at[i]] + p[n - 1 - i].trail[2] + p[i].spots[0, 2].z;
    }}
"""


def clamp(place: Any, length: int) -> int:
    return min(max(int(place), 0), length - 1)


def test_members_read(real: Any) -> None:
    module = loaded(READ)
    p, far = particles(module.Particle.DTYPE, N), draw(real, N)
    got = module.read_reference(p, AT, far)
    pos, trail, half = (p[name].astype(np.float64) for name in ("pos", "trail", "half"))
    mass, spots = p["mass"].astype(np.float64), p["spots"]["value"].astype(np.float64)
    axis = p["spins"]["axis"].astype(np.float64)
    turn = p["spins"]["turn"]["value"].astype(np.float64)
    weights = p["weights"]["value"].astype(np.float64)
    rows: list[list[Any]] = []
    for i in range(N):
        column = clamp(AT[i], 2)
        rows.append(
            [
                spots[i, clamp(AT[i], 2), 1] + mass[i] * pos[i],
                trail[clamp(AT[i], N)],
                turn[i, 1, 0] * half[i, 0] + turn[i, 1, 1] * half[i, 1],
                sum(trail[i]) + float(far[i]),
                [axis[i, j] * turn[i, 1 - j, column, 1] for j in range(2)],
                sum(weights[i, c] * pos[i, c] for c in range(3)),
                pos[i, clamp(AT[i], 3)] + trail[N - 1 - i, 2] + spots[i, 0, 2, 2],
            ]
        )
    *vectors, total, classes, last = got
    listed = [np.array([*map(np.asarray, part)]) for part in zip(*rows, strict=True)]
    for part, expected in zip((*vectors, last), listed, strict=True):
        close(part, expected, real)
    close(total, sum(pos[i] * mass[i] for i in range(N)), real)
    assert classes.tolist() == [(i + 2**31 + int(AT[i])) % 2**32 for i in range(N)]


def test_members_of_nothing(real: Any) -> None:
    module = loaded(READ)
    none = zeros(module.Particle.DTYPE, 0)
    got = module.read_reference(none, np.zeros(0, np.int32), np.zeros(0, real))
    assert [part.shape for part in got[:3]] == [(0, 3), (0, 3), (0, 3)]
    close(got[6], np.zeros(3), real)


WRITE = """
    struct Body { pos: vec3f, kind: i32, trail: vec2h[3], heat: f32[2, 2], frame: mat3x3f }
    kernel write(mut p: Body[n], x: vec3f[n]) -> q: Body[n], before: vec3f[n], y: vec4f[n] {
        let was[i] = p[i].pos;
        p[i].pos = p[i].pos.zxy * 2.0;
        p[i].pos.y += x[i].x;
        p[i].kind = p[n - 1 - i].kind * 3;
        p[i].trail[k] = p[i].trail[k] * 0.3 + p[i].pos.xy;
        p[i].heat[1, k] = f32(k) + p[i].heat[0, k];
        before[i] = was[i];
        q[i].pos = x[i];
        q[i].kind = i32(n);
        q[i].trail[k] = p[i].trail[2 - k];
        q[i].heat[j, k] = p[i].heat[k, j];
        q[i].frame = mat3x3f(p[i].pos, was[i], q[i].pos);
        y[i].w = 1.0;
        y[i].x = q[i].frame[1].z;
        y[i].y = x[i].y;
        y[i].z = p[i].pos.x + 1.0;
    }
"""


def test_members_written() -> None:
    module = loaded(WRITE)
    p, x = zeros(module.Body.DTYPE, N), draw(np.float32, N, 3, seed=9)
    p["pos"], p["kind"] = draw(np.float32, N, 3), np.arange(N)
    p["trail"], p["heat"] = draw(np.float32, N, 3, 2), draw(np.float32, N, 2, 2)
    p["frame"]["value"] = draw(np.float32, N, 3, 3)
    old = p.copy()
    q, before, y = module.write_reference(p, x)
    assert q.dtype == module.Body.DTYPE
    close(before, old["pos"], np.float32)
    for i in range(N):
        a, b, c = map(float, old["pos"][i])
        pos = [c * 2, a * 2 + float(x[i, 0]), b * 2]
        close(p["pos"][i], pos, np.float32)
        assert p["kind"][i] == 3 * (N - 1 - i)
        assert q["kind"][i] == N
        trail = old["trail"][i].astype(np.float64) * 0.3 + pos[:2]
        np.testing.assert_allclose(p["trail"][i], trail, rtol=1e-3, atol=1e-3)
        assert np.array_equal(q["trail"][i], p["trail"][i][::-1])
        heat = [old["heat"][i, 0], [k + old["heat"][i, 0, k] for k in range(2)]]
        close(p["heat"][i], np.array([*map(np.asarray, heat)]), np.float32)
        close(q["heat"][i], p["heat"][i].T, np.float32)
        assert np.array_equal(p["frame"]["value"][i], old["frame"]["value"][i])
        close(q["pos"][i], x[i], np.float32)
        close(q["frame"]["value"][i], [pos, [a, b, c], x[i]], np.float32)
        close(y[i], [c, x[i, 1], pos[0] + 1, 1], np.float32)


SCENE = """
    struct Light { color: vec3f, power: f16, reach: f32[3] }
    struct Scene { lights: Light[2], view: mat4x4f, tint: vec2h, counts: vec3u, at: i32, bias: f32[5] }
    kernel lit(x: vec3f[n], near: i32[n], scene: Scene, v: vec3f, m: mat2x3f, k: vec2i)
        -> a: vec3f[n], b: vec4f[n], c: f32[n, 2, 3], d: f32[n], e: vec3f[n], f: f32[n], g: f32[n],
           h: i32[n] {
        host scale = scene.view[1].z * 2.0 + v.y;
        a[i] = scene.lights[near[i]].color * scene.lights[1].power + v;
        b[i] = scene.view * vec4f(x[i], 1.0);
        c[i, j, r] = scene.lights[j].reach[r] * x[i].x;
        d[i] = scene.view[3].y * x[i].z + scene.view[near[i]].w + scene.view[0][near[i]];
        e[i] = m * scene.tint + scene.lights[0].color * scale;
        f[i] = sum[q] (scene.bias[q] * x[i].y);
        g[i] = sum[j < 2] (dot(x[i], scene.lights[j].color) * scene.lights[j].power);
        h[i] = i32(scene.counts.z) + scene.at * k.y + k[near[i]];
    }
"""


def scene(module: Any, halves: type) -> Any:
    """Return a scene, and all that it holds in double."""
    color, reach = draw(float, 2, 3), draw(float, 2, 3, seed=1)
    power, tint = [0.1, 0.7], (0.3, -0.9)
    view, bias = draw(float, 4, 4), draw(float, 5)
    lights = tuple(
        module.Light(tuple(color[j].tolist()), power[j], tuple(reach[j].tolist()))
        for j in range(2)
    )
    made = module.Scene(
        lights, columns(view), tint, (1, 2, 2**31 + 3), -5, tuple(bias.tolist())
    )
    kept = [np.array(part, halves).astype(np.float64) for part in (power, tint)]
    return made, color, *kept, view, bias, reach


def test_parts_of_parameters(real: Any) -> None:
    """Halves are rounded, unless all is in double."""
    module = loaded(SCENE)
    halves = np.float16 if real == np.float32 else np.float64
    made, color, power, tint, view, bias, reach = scene(module, halves)
    x, v, m = draw(real, N, 3), (0.1, 0.2, 0.3), draw(float, 2, 3, seed=4)
    got = module.lit_reference(x, AT, scene=made, v=v, m=columns(m), k=(7, 11))
    scale = float(view[1, 2]) * 2 + v[1]
    rows: list[list[Any]] = []
    for i in range(N):
        y, light = x[i].astype(np.float64), clamp(AT[i], 2)
        rows.append(
            [
                [float(color[light, r]) * power[1] + v[r] for r in range(3)],
                sum(view[c] * float([*y, 1.0][c]) for c in range(4)),
                [[float(reach[j, r]) * y[0] for r in range(3)] for j in range(2)],
                view[3, 1] * y[2] + view[clamp(AT[i], 4), 3] + view[0, clamp(AT[i], 4)],
                m[0] * tint[0] + m[1] * tint[1] + color[0] * scale,
                sum(float(part) * y[1] for part in bias),
                sum(float(sum(y * color[j])) * power[j] for j in range(2)),
            ]
        )
    listed = [np.array([*map(np.asarray, part)]) for part in zip(*rows, strict=True)]
    for part, expected in zip(got[:-1], listed, strict=True):
        close(part, expected, real)
    whole = [-(2**31) + 3 - 55 + (7, 11)[clamp(place, 2)] for place in AT]
    assert got[-1].tolist() == [(value + 2**31) % 2**32 - 2**31 for value in whole]


ONE = """
    struct Sum { total: vec2f, count: u32 }
    kernel one(x: vec2f[n], mut state: Sum[]) -> y: Sum[], z: vec2f[] {
        state.total += sum[i] x[i];
        state.count += u32(n);
        state.total.y = 2.0;
        y.total = state.total;
        y.count = state.count;
        z = y.total / f32(state.count);
    }
"""


def test_a_struct_of_rank_0() -> None:
    module = loaded(ONE)
    x, state = draw(np.float32, N, 2), zeros(module.Sum.DTYPE)
    state["total"], state["count"] = (1, 2), 4
    y, z = module.one_reference(x, state)
    total = [1 + sum(map(float, x[:, 0])), 2.0]
    for array in (state, y):
        assert array.shape == ()
        close(array["total"], total, np.float32)
        assert int(array["count"]) == 4 + N
    close(z, [part / (4 + N) for part in total], np.float32)
    assert not np.shares_memory(y, state)


HALVES = """
    kernel halves(x: vec3h[n], m: mat2x2h[n], ids: i32[n]) -> y: vec3h[n], z: vec2f[n], w: vec3h[n] {
        y[i] = x[i] * 1.001;
        z[i] = m[i] * y[i].xy;
        w[i] = y[ids[i]];
    }
"""


def test_halves_are_rounded_where_they_are_kept() -> None:
    x = draw(np.float32, N, 3).astype(np.float16)
    m = draw(np.float32, N, 2, 2).astype(np.float16)
    y, z, w = loaded(HALVES).halves_reference(x, m, AT)
    scaled = (x.astype(np.float32) * np.float32(1.001)).astype(np.float16)
    assert y.dtype == w.dtype == np.float16
    assert np.array_equal(y, scaled)
    assert np.array_equal(w, [scaled[clamp(place, N)] for place in AT])
    kept, of = scaled.astype(np.float64), m.astype(np.float64)
    expected = [of[i, 0] * kept[i, 0] + of[i, 1] * kept[i, 1] for i in range(N)]
    close(z, expected, np.float32)
