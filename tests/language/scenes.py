"""Kernels with structs, vectors and matrices, and their meaning element by element.

The meanings are loops over plain arrays in double: no structured dtype, no broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Records: TypeAlias = Any
"""An array of records, by names of members."""
Given: TypeAlias = tuple[tuple[Array, ...], dict[str, Any]]
"""Tensors and scalars of a call."""


@dataclass(frozen=True)
class Case:
    """A kernel `f`, arguments for n elements, and what it leaves in its tensors.

    `meaning` takes the module and the arguments, and returns what changes, then the
    outputs, each as the numbers of all members in order.
    """

    name: str
    text: str
    given: Callable[[ModuleType, np.random.Generator, int], Given]
    meaning: Callable[..., tuple[Any, ...]]

    def __str__(self) -> str:
        """The name, as tests show it."""
        return self.name


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


# Bodies under gravity


def _bodies(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    bodies: Records = np.zeros(n, module.Body.DTYPE)
    bodies["pos"], bodies["vel"] = normal(rng, n, 3), normal(rng, n, 3)
    bodies["mass"] = rng.uniform(1, 2, n)
    return (bodies,), {"dt": 0.25}


def _fall(bodies: Records, *, dt: float) -> tuple[Any, ...]:
    pos, vel = (bodies[name].astype(np.float64) for name in ("pos", "vel"))
    mass = bodies["mass"].astype(np.float64)
    for i in range(len(bodies)):
        force = np.zeros(3)
        for j in range(len(bodies)):
            d = pos[j] - pos[i]
            force += mass[j] * d / (np.sqrt(d @ d + 0.25) ** 3)
        vel[i] = vel[i] + dt * force
    energy = sum(0.5 * m * (v @ v) for m, v in zip(mass, vel, strict=True))
    momentum = sum((m * v for m, v in zip(mass, vel, strict=True)), np.zeros(3))
    return {"pos": pos + dt * vel, "mass": mass, "vel": vel}, momentum, energy


BODIES = Case(
    "bodies under gravity",
    """
    struct Body { pos: vec3f, mass: f32, vel: vec3f }
    fn pull(d: vec3f) -> vec3f { let r = inverseSqrt(dot(d, d) + 0.25); d * r * r * r }
    kernel f(mut b: Body[n], dt: f32) -> momentum: vec3f[], energy: f32[] {
        b[i].vel += dt * sum[j] b[j].mass * pull(b[j].pos - b[i].pos);
        b[i].pos += dt * b[i].vel;
        momentum = sum[i] b[i].mass * b[i].vel;
        energy = sum[i] 0.5 * b[i].mass * dot(b[i].vel, b[i].vel);
    }
    """,
    _bodies,
    _fall,
)


# A camera and lights, as three.js has them: uniforms with arrays of structs


def _scene(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    lights = [
        module.Light(
            position=normal(rng, 3),
            color=rng.uniform(0, 1, 3),
            decay=float(rng.uniform(1, 2)),
        )
        for _ in range(3)
    ]
    scene = module.Scene(
        view=normal(rng, 4, 4),
        normals=normal(rng, 3, 3),
        uv=normal(rng, 2, 2),
        shifts=normal(rng, 3, 2),
        weights=rng.uniform(0, 1, 5),
        lights=lights,
        ambient=rng.uniform(0, 1, 3),
        enabled=(1, 0, 1),
    )
    points = normal(rng, n, 3), normal(rng, n, 3), normal(rng, n, 2)
    return points, {"scene": scene, "bias": normal(rng, 2)}


def _lit(
    p: Array, normals: Array, uv: Array, *, scene: Any, bias: Array
) -> tuple[Any, ...]:
    # A matrix is an array of its columns; what it does to v is sum of column * component.
    view, turn, spin = (np.array(m).T for m in (scene.view, scene.normals, scene.uv))
    clip: list[Any] = []
    color: list[Any] = []
    coords: list[Any] = []
    for point, normal_, t in zip(p, normals, uv, strict=True):
        clip.append(view @ np.array([*point, 1.0]))
        n = turn @ normal_
        n = n / np.sqrt(n @ n)
        total = np.array(scene.ambient)
        for which, light in enumerate(scene.lights):
            away = np.array(light.position) - point
            distance = np.sqrt(away @ away)
            strength = max(n @ (away / distance), 0.0) / (1 + distance**light.decay)
            if scene.enabled[which] > 0:
                total = total + strength * np.array(light.color)
        color.append([*np.clip(total, 0, 1), sum(scene.weights)])
        coords.append(spin @ t + np.array(scene.shifts[2]) + np.array(bias))
    return clip, color, coords


SCENE = Case(
    "a camera and lights",
    """
    struct Light { position: vec3f, color: vec3f, decay: f32 }
    struct Scene {
        view: mat4x4f, normals: mat3x3f, uv: mat2x2f, shifts: vec2f[3], weights: f32[5],
        lights: Light[3], ambient: vec3f, enabled: vec3u,
    }
    fn strength(n: vec3f, away: vec3f, decay: f32) -> f32 {
        let d = length(away);
        max(dot(n, away / d), 0.0) / (1.0 + pow(d, decay))
    }
    kernel f(p: vec3f[n], normals: vec3f[n], uv: vec2f[n], scene: Scene, bias: vec2f)
        -> clip: vec4f[n], color: vec4f[n], coords: vec2f[n] {
        clip[i] = scene.view * vec4f(p[i], 1.0);
        let turned[i] = normalize(scene.normals * normals[i]);
        let lit[i] = scene.ambient + sum[l]
            (if scene.enabled[l] > 0 { 1.0 } else { 0.0 })
            * strength(turned[i], scene.lights[l].position - p[i], scene.lights[l].decay)
            * scene.lights[l].color;
        color[i] = vec4f(saturate(lit[i]), sum[k] scene.weights[k]);
        coords[i] = scene.uv * uv[i] + scene.shifts[2] + bias;
    }
    """,
    _scene,
    _lit,
)


# The nearest sphere that a ray hits, as path tracers look for it


def _rays(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    spheres: Records = np.zeros(7, module.Sphere.DTYPE)
    spheres["center"] = 3 * normal(rng, 7, 3)
    spheres["radius"] = rng.uniform(0.5, 1.5, 7)
    spheres["material"]["albedo"] = rng.uniform(0, 1, (7, 3))
    spheres["material"]["kind"] = rng.integers(0, 3, 7)
    rays: Records = np.zeros(n, module.Ray.DTYPE)
    rays["dir"] = normal(rng, n, 3)
    return (rays, spheres), {}


def _traced(rays: Records, spheres: Records) -> tuple[Any, ...]:
    hits: list[Any] = []
    for ray in rays:
        d = ray["dir"].astype(np.float64)
        d = d / np.sqrt(d @ d)
        best, at = 1e30, -1
        for k, sphere in enumerate(spheres):
            oc = ray["origin"].astype(np.float64) - sphere["center"]
            b = oc @ d
            c = oc @ oc - float(sphere["radius"]) ** 2
            if b * b - c > 0:
                t = -b - np.sqrt(b * b - c)
                if 0 < t < best:
                    best, at = t, k
        found = spheres[max(at, 0)]["material"]
        color = found["albedo"] if at >= 0 else np.zeros(3)
        hits.append([*color, best, at, found["kind"] if at >= 0 else 7])
    columns = np.array(hits, np.float64).reshape(-1, 6)
    return (
        {"color": columns[:, :3], "t": columns[:, 3], "which": columns[:, 4:5]},
        columns[:, 5],
    )


RAYS = Case(
    "the nearest sphere",
    """
    struct Material { albedo: vec3f, kind: u32 }
    struct Sphere { center: vec3f, radius: f32, material: Material }
    struct Ray { origin: vec3f, dir: vec3f }
    struct Hit { color: vec3f, t: f32, which: i32[1] }
    fn hit(o: vec3f, d: vec3f, radius: f32) -> f32 {
        let b = dot(o, d);
        let root = b * b - dot(o, o) + radius * radius;
        let t = -b - sqrt(max(root, 0.0));
        if root > 0.0 and t > 0.0 { t } else { 1e30 }
    }
    kernel f(rays: Ray[n], s: Sphere[m]) -> h: Hit[n], kind: u32[n] {
        let d[i] = normalize(rays[i].dir);
        let t[i, k] = hit(rays[i].origin - s[k].center, d[i], s[k].radius);
        h[i].t = min[k] t[i, k];
        let at[i] = max[k] if t[i, k] < min(h[i].t + 0.001, 1e29) { k } else { -1 };
        h[i].which[0] = at[i];
        h[i].color = if at[i] >= 0 { s[at[i]].material.albedo } else { vec3f(0.0) };
        kind[i] = if at[i] >= 0 { s[at[i]].material.kind } else { 7 };
    }
    """,
    _rays,
    _traced,
)


# Matrices of every shape in products


def _matrices(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    del module
    arrays = normal(rng, n, 4, 3), normal(rng, n, 2, 4), normal(rng, n, 3)
    return arrays, {"m": normal(rng, 3, 2)}


def _products(a: Array, b: Array, v: Array, *, m: Array) -> tuple[Any, ...]:
    # a: mat4x3f is 4 columns of 3, so its matrix is a[i].T, of 3 rows and 4 columns.
    ab: list[Any] = []
    va: list[Any] = []
    sums: list[Any] = []
    transposed: list[Any] = []
    for x, y, w in zip(a.astype(np.float64), b.astype(np.float64), v, strict=True):
        left, right = x.T, y.T
        ab.append((left @ right).T)
        va.append(w.astype(np.float64) @ left)
        sums.append((2.0 * np.array(m).T - right[:2, [1, 0, 1]]).T)
        transposed.append(left + right[0, 0])
    return ab, va, sums, transposed


MATRICES = Case(
    "products of matrices",
    """
    kernel f(a: mat4x3f[n], b: mat2x4f[n], v: vec3f[n], m: mat3x2f)
        -> ab: mat2x3f[n], va: vec4f[n], s: mat3x2f[n], t: mat3x4f[n] {
        ab[i] = a[i] * b[i];
        va[i] = v[i] * a[i];
        s[i] = 2.0 * m - mat3x2f(b[i][1].xy, b[i][0].xy, b[i][1].xy);
        t[i] = transpose(a[i] + mat4x3f(b[i][0].xxx, b[i][0].xxx, b[i][0].xxx, b[i][0].rrr));
    }
    """,
    _matrices,
    _products,
)


# Parts of elements as targets


def _states(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    states: Records = np.zeros(n, module.State.DTYPE)
    states["v"], states["count"] = normal(rng, n, 4), rng.integers(0, 99, n)
    states["trail"]["value"] = normal(rng, n, 3, 3)
    states["inner"]["grid"] = normal(rng, n, 2, 2, 3)
    ids = rng.integers(-2, n + 2, n).astype(np.int32)
    return (states, ids), {}


def _moved(states: Records, ids: Array) -> tuple[Any, ...]:
    n = len(states)
    v = states["v"].astype(np.float64)
    count, grid = states["count"].copy(), states["inner"]["grid"].astype(np.float64)
    trail = states["trail"]["value"].astype(np.float64)
    v[:, 1] = v[:, 0] + v[:, 3]
    v[:, 0] *= 2.0
    for i in range(n):
        trail[i] = [trail[i, min(k + 1, 2)] for k in range(3)]
        trail[i, 2] = v[i, [2, 1, 0]]
        count[i] += 3
        grid[i] = grid[i] + v[i, 2] * (np.arange(2)[:, None, None] + 1)
        grid[i, 1, :, 2] = 0.5
    nearest = [min(max(int(k), 0), n - 1) for k in ids]
    members = {"v": v, "count": count, "trail": trail, "grid": grid}
    picked = {name: member[nearest] for name, member in members.items()}
    return members, picked


PARTS = Case(
    "parts as targets",
    """
    struct Inner { grid: f32[2, 2, 3] }
    struct State { v: vec4f, count: u32, trail: vec3f[3], inner: Inner }
    kernel f(mut s: State[n], ids: i32[n]) -> picked: State[n] {
        s[i].v.y = s[i].v.x + s[i].v.w;
        s[i].v.x *= 2.0;
        s[i].trail[k] = s[i].trail[min(k + 1, 2)];
        s[i].trail[2] = s[i].v.zyx;
        s[i].count += 3;
        s[i].inner.grid[a, b, c] += s[i].v.z * f32(a + 1);
        let half[i < n, b < 2] = 0.5 + 0.0 * f32(i + b);
        s[i].inner.grid[1, b, 2] = half[i, b];
        picked[i] = s[ids[i]];
    }
    """,
    _states,
    _moved,
)


# What is kept as f16


def _halves(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    x: Records = np.zeros(n, module.Half.DTYPE)
    for name in ("a", "v", "m", "w"):
        x[name] = normal(rng, *x[name].shape)
    p = module.Half(
        a=0.1, v=(1, 2.5, 3), m=((1, 2), (3, 4), (5, 6)), w=((1, 2), (3, 4))
    )
    return (x, normal(rng, n, 3).astype(np.float16)), {"p": p}


def _halved(x: Records, t: Array, *, p: Any) -> tuple[Any, ...]:
    a, v, m, w = (x[name].astype(np.float64) for name in ("a", "v", "m", "w"))
    half = np.float16(0.1).astype(np.float64)
    y = {
        "a": (a * half).astype(np.float32).astype(np.float16),
        "v": (v + t.astype(np.float64)).astype(np.float32).astype(np.float16),
        "m": (m * np.float32(2.0)).astype(np.float16),
        "w": w[:, ::-1].astype(np.float16) + np.array(p.w, np.float16)[0, 1],
    }
    return y, [np.array(p.m).T @ np.array(p.v) + u for u in t.astype(np.float64)[:, :2]]


HALVES = Case(
    "halves in structs",
    """
    struct Half { a: f16, v: vec3h, m: mat3x2h, w: vec2h[2] }
    kernel f(x: Half[n], t: vec3h[n], p: Half) -> y: Half[n], z: vec2f[n] {
        y[i].a = x[i].a * p.a;
        y[i].v = x[i].v + t[i];
        y[i].m = x[i].m * 2.0;
        y[i].w[k] = x[i].w[1 - k] + p.w[0].y;
        z[i] = p.m * p.v + t[i].xy;
    }
    """,
    _halves,
    _halved,
)


# Vectors of integers, with constants that WGSL must not compute with


def _integers(module: ModuleType, rng: np.random.Generator, n: int) -> Given:
    del module
    a = rng.integers(-9, 9, (n, 3)).astype(np.int32)
    return (a, rng.integers(0, 40, (n, 2)).astype(np.uint32)), {"k": (2, 0, -3)}


def _of_integers(a: Array, b: Array, *, k: Any) -> tuple[Any, ...]:
    divided: list[Any] = []
    remainders: list[Any] = []
    bits: list[Any] = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        by = [*k]
        divided.append(
            [u if d == 0 else int(u / d) for u, d in zip(x, by, strict=True)]
        )
        remainders.append(
            [
                0 if d == 0 else u - int(u / d) * d
                for u, d in zip(x, (3, 0, -2), strict=True)
            ]
        )
        shifted = [(u << (s % 32)) % 2**32 for u, s in zip(y, (1, 33), strict=True)]
        bits.append([(shifted[0] ^ 5) & 1023, (shifted[1] ^ 9) & 1023])
    wrapped = [(u + 2**32 + 5) % 2**32 - 2**31 for u in a[:, 0].tolist()]
    return divided, remainders, bits, wrapped


INTEGERS = Case(
    "vectors of integers",
    """
    const BIG: i32 = 2147483647;
    fn gone(v: vec2u) -> vec2u { let p = ~vec2u(vec2i(3)); v >> p }
    kernel f(a: vec3i[n], b: vec2u[n], k: vec3i)
        -> d: vec3i[n], r: vec3i[n], s: vec2u[n], w: i32[n] {
        d[i] = a[i] / k;
        r[i] = a[i] % vec3i(3, 0, -2);
        s[i] = (((b[i] << vec2u(1, 33)) ^ vec2u(5, 9)) & vec2u(1023)) + gone(b[i]);
        w[i] = (vec2i(BIG, BIG) + vec2i(6, 1)).x + a[i].x;
    }
    """,
    _integers,
    _of_integers,
)

CASES = (BODIES, SCENE, RAYS, MATRICES, PARTS, HALVES, INTEGERS)
