"""Kernels of structs, with their meaning as loops over elements, in double."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.language.composites import Array, Composite, Real, by_row, clamp, draw, wrap

Records = NDArray[np.void]
N = 6
PLACES = np.array([0, 1, 2, -1, 99, -(2**31)], np.int32)


def zeros(dtype: np.dtype[np.void], *shape: int) -> Records:
    return np.zeros(shape, dtype)


def doubles(records: Records, *members: str) -> list[Array]:
    """Return members in double, of what lies apart too."""
    found = [records[member] for member in members]
    plain = [part["value"] if part.dtype.names else part for part in found]
    return [part.astype(np.float64) for part in plain]


READ = """
    struct Spin { axis: vec3f, turn: mat2x3f }
    struct Particle {
        pos: vec3f, mass: f32, trail: f32[3], spots: vec3f[2, 3], half: vec2h, id: i32,
        spins: Spin[2], weights: mat3x3h, class: u32,
    }
    kernel f(p: Particle[n], at: i32[n], far: f32[n])
        -> a: vec3f[n], b: f32[n, 3], c: vec3f[n], d: f32[n], e: vec3f[n, 2], g: vec3f[n],
           h: u32[n], k: f32[n], total: vec3f[], mixed: f32[3, 2] {
        a[i] = p[i].spots[at[i], 1] + p[i].mass * p[i].pos;
        b[i, q] = p[at[i]].trail[q];
        c[i] = p[i].spins[1].turn * p[i].half;
        d[i] = (sum[q] p[i].trail[q]) + far[i];
        e[i, j] = p[i].spins[j].axis * p[i].spins[1 - j].turn[at[i]].y;
        g[i] = p[i].weights * p[i].pos;
        h[i] = p[i].class + u32(p[i].id);
        k[i] = p[i].pos[at[i]] + p[n - 1 - i].trail[2] + p[i].spots[0, 2].z;
        total = sum[i] (p[i].pos * p[i].mass);
        mixed[q, j] = sum[i] p[i].trail[q] * p[i].spins[j].axis.x;
    }
"""


def particles(module: ModuleType, count: int) -> Records:
    """Return particles of which every member has values of its own."""
    p = zeros(module.Particle.DTYPE, count)
    p["pos"], p["mass"] = draw(np.float32, count, 3), draw(np.float32, count)
    p["trail"] = draw(np.float32, count, 3, seed=2)
    p["half"] = draw(np.float32, count, 2)
    p["spots"]["value"] = draw(np.float32, count, 2, 3, 3)
    p["spins"]["axis"] = draw(np.float32, count, 2, 3)
    p["spins"]["turn"]["value"] = draw(np.float32, count, 2, 2, 3)
    p["weights"]["value"] = draw(np.float32, count, 3, 3)
    p["id"] = np.resize(PLACES, count)
    p["class_"] = np.arange(count) + 2**31
    return p


def read_arguments(module: ModuleType, real: Real) -> tuple[Any, ...]:
    return particles(module, N), PLACES, draw(real, N)


def read(p: Records, at: Array, far: Array) -> list[Any]:
    pos, trail, half, mass = doubles(p, "pos", "trail", "half", "mass")
    spots, weights = doubles(p, "spots", "weights")
    axis, turn = doubles(p["spins"], "axis", "turn")
    rows = (
        [
            spots[i, clamp(at[i], 2), 1] + mass[i] * pos[i],
            trail[clamp(at[i], N)],
            turn[i, 1, 0] * half[i, 0] + turn[i, 1, 1] * half[i, 1],
            sum(trail[i]) + far[i],
            [axis[i, j] * turn[i, 1 - j, clamp(at[i], 2), 1] for j in range(2)],
            sum(weights[i, c] * pos[i, c] for c in range(3)),
            np.uint32((i + 2**31 + int(at[i])) % 2**32),
            pos[i, clamp(at[i], 3)] + trail[N - 1 - i, 2] + spots[i, 0, 2, 2],
        ]
        for i in range(N)
    )
    total = sum((pos[i] * mass[i] for i in range(N)), np.zeros(3))
    mixed = [
        [sum(trail[i, q] * axis[i, j, 0] for i in range(N)) for j in range(2)]
        for q in range(3)
    ]
    return [*by_row(rows), total, mixed]


WRITE = """
    struct Body { pos: vec3f, kind: i32, trail: vec2h[3], heat: f32[2, 2], frame: mat3x3f }
    kernel f(mut p: Body[n], x: vec3f[n]) -> q: Body[n], before: vec3f[n], y: vec4f[n] {
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


def write_arguments(module: ModuleType, real: Real) -> tuple[Any, ...]:
    p = zeros(module.Body.DTYPE, N)
    p["pos"], p["kind"] = draw(np.float32, N, 3), np.arange(N)
    p["trail"], p["heat"] = draw(np.float32, N, 3, 2), draw(np.float32, N, 2, 2)
    p["frame"]["value"] = draw(np.float32, N, 3, 3)
    return p, draw(real, N, 3, seed=9)


def write(p: Records, x: Array) -> list[Any]:
    was, trail, heat, frame = doubles(p, "pos", "trail", "heat", "frame")
    pos = np.array([[2 * c, 2 * a + x[i, 0], 2 * b] for i, (a, b, c) in enumerate(was)])
    trail = trail * 0.3 + pos[:, None, :2]
    warm = [[h[0], [k + h[0, k] for k in range(2)]] for h in heat]
    made = {
        "pos": x,
        "kind": np.full(N, N, np.int32),
        "trail": trail[:, ::-1],
        "heat": [np.array(h).T for h in warm],
        "frame": [[pos[i], was[i], x[i]] for i in range(N)],
    }
    changed = {
        "pos": pos,
        "kind": np.array([3 * (N - 1 - i) for i in range(N)], np.int32),
        "trail": trail,
        "heat": warm,
        "frame": frame,
    }
    y = [[was[i, 2], x[i, 1], pos[i, 0] + 1, 1.0] for i in range(N)]
    return [made, was, y, changed]


SCENE = """
    struct Light { color: vec3f, power: f16, reach: f32[3] }
    struct Scene {
        lights: Light[2], view: mat4x4f, tint: vec2h, counts: vec3u, at: i32, bias: f32[5],
        near: i32[4], turns: mat2x2f[2],
    }
    kernel f(x: vec3f[n], places: i32[n], scene: Scene, v: vec3f, m: mat2x3f, k: vec2i)
        -> a: vec3f[n], b: vec4f[n], c: f32[n, 2, 3], d: f32[n], e: vec3f[n], g: f32[n],
           h: f32[n], o: i32[n], r: vec3f[n], t: vec2f[n] {
        host scale = scene.view[1].z * 2.0 + v.y;
        a[i] = scene.lights[places[i]].color * scene.lights[1].power + v;
        b[i] = scene.view * vec4f(x[i], 1.0);
        c[i, j, q] = scene.lights[j].reach[q] * x[i].x;
        d[i] = scene.view[3].y * x[i].z + scene.view[places[i]].w + scene.view[0][places[i]];
        e[i] = m * scene.tint + scene.lights[0].color * scale;
        g[i] = sum[q] (scene.bias[q] * x[i].y);
        h[i] = sum[j < 2] (dot(x[i], scene.lights[j].color) * scene.lights[j].power);
        o[i] = i32(scene.counts.z) + scene.at * k.y + k[places[i]];
        r[i] = x[scene.near[i % 4]] + x[i + scene.at];
        t[i] = scene.turns[places[i]] * x[i].xy;
    }
"""


def columns(m: Array) -> tuple[tuple[float, ...], ...]:
    """Return a matrix as a caller writes it."""
    return tuple(tuple(map(float, column)) for column in m)


def scene_scalars(module: ModuleType) -> dict[str, Any]:
    """Return parameters of which f16 holds the halves exactly."""
    color, reach = draw(np.float64, 2, 3), draw(np.float64, 2, 3, seed=1)
    lights = (
        module.Light(tuple(color[0]), 0.75, tuple(reach[0])),
        module.Light(tuple(color[1]), -1.5, tuple(reach[1])),
    )
    scene = module.Scene(
        lights=lights,
        view=columns(draw(np.float64, 4, 4)),
        tint=(0.25, -1.125),
        counts=(1, 2, 2**31 + 3),
        at=-5,
        bias=tuple(draw(np.float64, 5)),
        near=(3, -4, 77, 1),
        turns=tuple(columns(m) for m in draw(np.float64, 2, 2, 2)),
    )
    m = columns(draw(np.float64, 2, 3, seed=4))
    return {"scene": scene, "v": (0.1, 0.2, 0.3), "m": m, "k": (7, 11)}


def lit(x: Array, places: Array, *, scene: Any, v: Any, m: Any, k: Any) -> list[Any]:
    color = np.array([light.color for light in scene.lights])
    reach = np.array([light.reach for light in scene.lights])
    power = [light.power for light in scene.lights]
    view, turns, sides = map(np.array, (scene.view, scene.turns, m))
    scale = view[1, 2] * 2 + v[1]
    rows = (
        [
            color[clamp(places[i], 2)] * power[1] + np.array(v),
            sum(view[c] * [*x[i], 1.0][c] for c in range(4)),
            [[reach[j, q] * x[i, 0] for q in range(3)] for j in range(2)],
            view[3, 1] * x[i, 2]
            + view[clamp(places[i], 4), 3]
            + view[0, clamp(places[i], 4)],
            sides[0] * scene.tint[0] + sides[1] * scene.tint[1] + color[0] * scale,
            sum(bias * x[i, 1] for bias in scene.bias),
            sum(sum(x[i] * color[j]) * power[j] for j in range(2)),
            np.int32(wrap(2**31 + 3 - 5 * k[1] + k[clamp(places[i], 2)])),
            x[clamp(scene.near[i % 4], N)] + x[clamp(i - 5, N)],
            sum(turns[clamp(places[i], 2), c] * x[i, c] for c in range(2)),
        ]
        for i in range(N)
    )
    return by_row(rows)


ONE = """
    struct Sum { total: vec2f, count: u32 }
    kernel f(x: vec2f[n], mut state: Sum[]) -> y: Sum[], z: vec2f[] {
        state.total += sum[i] x[i];
        state.count += u32(n);
        state.total.y = 2.0;
        y.total = state.total;
        y.count = state.count;
        z = y.total / f32(state.count);
    }
"""


def one_arguments(module: ModuleType, real: Real) -> tuple[Any, ...]:
    state = zeros(module.Sum.DTYPE)
    state["total"], state["count"] = (1, 2), 4
    return draw(real, N, 2), state


def one(x: Array, state: Records) -> list[Any]:
    total = [float(state["total"][0]) + sum(x[:, 0]), 2.0]
    kept = {"total": total, "count": np.uint32(4 + N)}
    return [kept, [part / (4 + N) for part in total], kept]


HALVES = """
    kernel f(x: vec3h[n], m: mat2x2h[n], ids: i32[n]) -> y: vec3h[n], z: vec2f[n], w: vec3h[n] {
        y[i] = x[i] * 0.3;
        z[i] = m[i] * x[i].xy;
        w[i] = y[ids[i]];
    }
"""


def half_arguments(_module: ModuleType, _real: Real) -> tuple[Any, ...]:
    x, m = draw(np.float32, N, 3), draw(np.float32, N, 2, 2)
    return x.astype(np.float16), m.astype(np.float16), PLACES


def halves(x: Array, m: Array, ids: Array) -> list[Any]:
    scaled = (x.astype(np.float32) * np.float32(0.3)).astype(np.float16)
    z = [m[i, 0] * x[i, 0] + m[i, 1] * x[i, 1] for i in range(N)]
    return [scaled, z, np.array([scaled[clamp(place, N)] for place in ids])]


RECORDS = (
    Composite("members read", READ, read_arguments, read),
    Composite(
        "members of nothing",
        READ,
        lambda module, real: (particles(module, 0), PLACES[:0], draw(real, 0)),
        lambda *_: [
            *(np.zeros(shape) for shape in ((0, 3), (0, 3), (0, 3), (0,), (0, 2, 3))),
            *(np.zeros((0, 3)), np.zeros(0, np.uint32), np.zeros(0)),
            *(np.zeros(3), np.zeros((3, 2))),
        ],
    ),
    Composite("members written", WRITE, write_arguments, write),
    Composite(
        "parameters",
        SCENE,
        lambda _, real: (draw(real, N, 3), PLACES),
        lit,
        scene_scalars,
    ),
    Composite("rank 0", ONE, one_arguments, one, reals=(np.float32,)),
    Composite("halves", HALVES, half_arguments, halves, reals=(np.float32,)),
)
