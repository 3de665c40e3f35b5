"""Shaders of many kinds, bound as they are, against NumPy in float64."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.runtime import Context, bound, f16, f32, i32, u32, vec2h, vec4u

from .bound import module_of

SHADERS: Final = Path(__file__).with_name("shaders")
Array = NDArray[Any]


@pytest.fixture(scope="module", name="load")
def bound_shader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what binds a shader by its name."""
    folder = tmp_path_factory.mktemp("shaders")

    @cache
    def load(name: str) -> Any:
        return module_of((SHADERS / f"{name}.wgsl").read_text("utf-8"), folder)

    return load


def records(count: int | tuple[()], cls: Any) -> Any:
    """Return empty structs of a bound module."""
    return np.zeros(count, cls.DTYPE)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(("width", "height", "block"), [(12, 12, 8), (7, 10, 3)])
def test_life(load: Any, ctx: Context, width: int, height: int, block: int) -> None:
    life = load("life")
    cells = rng().integers(0, 2, (height, width), np.uint32)
    pipeline = life.Step(WIDTH=width, HEIGHT=height, BLOCK=block)
    assert pipeline.workgroup_size == (block, block, 1)
    if height == width:
        assert life.Step(WIDTH=width).constants == {"WIDTH": width, "BLOCK": 8}
    before, after = ctx.matrix(cells, u32), ctx.zeros((height, width), u32)
    for _ in range(3):
        group = life.Group0(before=before, after=after)
        pipeline.bind(group).dispatch_threads(width, height)
        before, after = after, before
        shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
        around = sum(np.roll(cells, shift, (0, 1)) for shift in shifts)
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(np.uint32)
    np.testing.assert_array_equal(before.numpy(), cells)


def test_flock(load: Any, ctx: Context) -> None:
    flock = load("flock")
    birds = records(50, flock.Bird)
    birds["place"], birds["speed"] = rng().uniform(-1, 1, (2, 50, 2))
    cls = bound.sized(flock.Flock, 50)
    record = records((), cls)
    record["birds"] = birds
    old, fresh = ctx.scalar(record, cls), ctx.zeros((), cls)
    rules = flock.Rules(near=0.5, pull=0.25, delta=0.1)
    group = flock.Group0(rules=rules, old=old, fresh=fresh)
    flock.Fly().bind(group).dispatch_threads(50)
    place, speed = (birds[name].astype(np.float64) for name in ("place", "speed"))
    way = place[None] - place[:, None]
    near = (np.sqrt((way**2).sum(2)) < 0.5) & ~np.eye(50, dtype=bool)
    count = near.sum(1)
    mean = np.where(count[:, None], (way * near[..., None]).sum(1), 0)
    speed = speed + 0.25 * mean / np.maximum(count, 1)[:, None]
    found = fresh.numpy()["birds"]
    np.testing.assert_allclose(found["speed"], speed, atol=1e-5)
    np.testing.assert_allclose(found["place"], place + 0.1 * speed, atol=1e-5)


def test_sort(load: Any, ctx: Context) -> None:
    sort = load("sort")
    numbers = rng().integers(-1000, 1000, 128, np.int32)
    values = ctx.vector(numbers, i32)
    group, size = sort.Group0(values=values), 2
    with ctx.batch():
        while size <= 128:
            distance = size // 2
            while distance:
                now = sort.Group1(now=sort.Step(size=size, distance=distance))
                sort.Exchange().bind(group, now).dispatch_threads(64)
                distance //= 2
            size *= 2
    np.testing.assert_array_equal(values.numpy(), np.sort(numbers))


def test_product(load: Any, ctx: Context) -> None:
    product = load("product")
    a, b = rng().standard_normal((13, 21)), rng().standard_normal((21, 10))
    c = ctx.zeros((13, 10), f32)
    group = product.Group0(
        shape=product.Shape(m=13, k=21, n=10),
        a=ctx.matrix(a, f32),
        b=ctx.matrix(b, f32),
        c=c,
    )
    product.Multiply().bind(group).dispatch_threads(10, 13)
    np.testing.assert_allclose(c.numpy(), a @ b, atol=1e-5)


def test_scan(load: Any, ctx: Context) -> None:
    scan = load("scan")
    numbers = rng().integers(0, 100, 1000, np.uint32)
    data = ctx.vector(numbers, u32)
    group = scan.Group0(data=data, sums=ctx.zeros(16, u32))
    for pipeline in (scan.Within(), scan.Across()):
        pipeline.bind(group).dispatch_threads(1000)
    np.testing.assert_array_equal(data.numpy(), np.cumsum(numbers))


def test_rays(load: Any, ctx: Context) -> None:
    rays, side = load("rays"), 12
    spheres = records(5, rays.Sphere)
    spheres["centre"] = rng().uniform(-1, 1, (5, 3)) + np.array([0, 0, 3])
    spheres["radius"] = rng().uniform(0.3, 0.7, 5)
    angle = 0.2
    turn = np.array(
        [
            [np.cos(angle), 0, -np.sin(angle)],
            [0, 1, 0],
            [np.sin(angle), 0, np.cos(angle)],
        ]
    )
    lights = ((0.6, 0.8, 0, 0.5), (0, 0, -1, 2))
    view = rays.View(eye=(0.1, 0, -1), side=side, turn=turn, lights=lights)
    hits = ctx.zeros((side, side), rays.Hit)
    rays.Look().bind(
        rays.Group0(view=view),
        rays.Group1(spheres=ctx.vector(spheres, rays.Sphere), hits=hits),
    ).dispatch_threads(side, side)
    found = hits.numpy()
    expected = looked(side, spheres, turn, np.array(lights))
    np.testing.assert_array_equal(found["sphere"], expected[1])
    assert (expected[1] >= 0).any()
    assert (expected[1] < 0).any()
    for name, values in zip(("distance", "light"), expected[::2], strict=True):
        np.testing.assert_allclose(found[name], values, rtol=1e-3, atol=1e-3)


def looked(
    side: int, spheres: Array, turn: Array, lights: Array
) -> tuple[Array, Array, Array]:
    """Return distance, sphere and light of each ray; columns of `turn` are its rows."""
    at = (np.arange(side) + 0.5) / side - 0.5
    grid = np.stack([*np.meshgrid(at, at), np.ones((side, side))], -1)
    ray = grid @ turn
    ray /= np.sqrt((ray**2).sum(-1, keepdims=True))
    eye = np.array([0.1, 0, -1])
    centre, radius = spheres["centre"].astype(float), spheres["radius"].astype(float)
    way = centre - eye
    along = ray @ way.T
    inside = radius**2 - ((way**2).sum(1) - along**2)
    far = along - np.sqrt(np.maximum(inside, 0))
    far = np.where((inside < 0) | (far <= 0), 1e9, far)
    nearest = far.argmin(-1)
    distance = far.min(-1)
    place = eye + distance[..., None] * ray
    out = (place - centre[nearest]) / radius[nearest][..., None]
    light = (np.maximum(out @ lights[:, :3].T, 0) * lights[:, 3]).sum(-1)
    missed = distance == 1e9
    return distance, np.where(missed, -1, nearest), np.where(missed, 0, light)


def test_heat(load: Any, ctx: Context) -> None:
    heat = load("heat")
    values = rng().standard_normal((4, 5, 6))
    fresh = ctx.zeros((4, 5, 6), f32)
    group = heat.Group0(old=ctx.tensor3(values, f32), next=fresh)
    pipeline = heat.Spread(rate=0.05)
    assert pipeline.constants == {"1": 0.05}
    pipeline.bind(group).dispatch_threads(6, 5, 4)
    padded = np.pad(values, 1, "edge")
    around = sum(
        np.roll(padded, by, axis)[1:-1, 1:-1, 1:-1] - values
        for axis in range(3)
        for by in (-1, 1)
    )
    np.testing.assert_allclose(fresh.numpy(), values + 0.05 * around, atol=1e-6)


def test_compaction(load: Any, ctx: Context) -> None:
    compact = load("compact")
    values = rng().standard_normal(100)
    kept = ctx.zeros((), bound.sized(compact.Kept, 100))
    group = compact.Group0(
        test=compact.Test(least=-0.5, most=1.0),
        values=ctx.vector(values, f32),
        kept=kept,
    )
    compact.SelectBetween().bind(group).dispatch_threads(100)
    record = kept.numpy()
    expected = np.sort(values[(values >= -0.5) & (values <= 1.0)])
    found = np.sort(record["values"][: record["count"]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_halves(load: Any, ctx: Context) -> None:
    halves = load("halves")
    pairs = records(9, halves.Pair)
    pairs["a"], pairs["b"] = rng().uniform(-1, 1, (9, 3)), rng().uniform(-1, 1, 9)
    pairs["turn"] = rng().uniform(-1, 1, (9, 2, 2))
    sums = ctx.zeros(9, vec2h)
    group = halves.Group0(pairs=ctx.vector(pairs, halves.Pair), sums=sums)
    halves.Add().bind(group).dispatch_threads(9)
    a, b, turn = (pairs[name].astype(np.float64) for name in ("a", "b", "turn"))
    expected = np.einsum("ncr,nc->nr", turn, a[:, :2] + b[:, None]) + a[:, 2:]
    np.testing.assert_allclose(sums.numpy(), expected, atol=5e-3)
    assert halves.Pair.SIZE == 16
    assert f16.DTYPE.itemsize == 2


def test_blur(load: Any, ctx: Context) -> None:
    blur, wgpu = load("blur"), import_module("wgpu")
    device: Any = ctx.device
    data = rng().random((6, 9, 4)).astype(np.float32)
    usage = wgpu.TextureUsage

    def texture(flags: int) -> Any:
        return device.create_texture(
            size=(9, 6, 1), format="rgba32float", usage=flags | 3
        )

    picture, blurred = texture(usage.TEXTURE_BINDING), texture(usage.STORAGE_BINDING)
    layout, size = {"bytes_per_row": 9 * 16, "rows_per_image": 6}, (9, 6, 1)
    device.queue.write_texture({"texture": picture}, data, layout, size)
    views = blur.Group1(picture=picture.create_view(), blurred=blurred.create_view())
    window = blur.Group0(window=blur.Window(reach=1))
    blur.Blur().bind(window, views, ctx=ctx).dispatch_threads(9, 6)
    ctx.submit()
    found = device.queue.read_texture({"texture": blurred}, layout, size)
    padded = np.pad(data.astype(np.float64), ((1, 1), (1, 1), (0, 0)), "edge")
    expected = sum(padded[y : y + 6, x : x + 9] for y in range(3) for x in range(3)) / 9
    result = np.frombuffer(found, np.float32).reshape(6, 9, 4)
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_bodies(load: Any, ctx: Context) -> None:
    bodies = load("bodies")
    start = records(70, bodies.Body)
    start["place"] = rng().uniform(0, 1, (70, 4))
    all_ = ctx.vector(start, bodies.Body)
    settings = bodies.Settings(softening=0.1, step=0, damping=0, count=70)
    pipeline = bodies.Attract(TILE=16)
    pipeline.bind(bodies.Group0(bodies=all_, settings=settings)).dispatch_threads(70)
    place = start["place"].astype(np.float64)
    way = place[None, :, :3] - place[:, None, :3]
    far = (way**2).sum(-1) + 0.1
    pull = (way * (place[:, 3] / far**1.5)[..., None]).sum(1)
    np.testing.assert_allclose(all_.numpy()["speed"][:, :3], pull, atol=1e-3)


def test_random_numbers(load: Any, ctx: Context) -> None:
    random = load("random")
    numbers = ctx.zeros(40, vec4u)
    group = random.Group0(seed=random.Seed(state=(123, 456)), numbers=numbers)
    random.Draw().bind(group).dispatch_threads(40)

    def turn(x: Array) -> Array:
        state = x * np.uint32(747796405) + np.uint32(2891336453)
        word = ((state >> ((state >> 28) + 4)) ^ state) * np.uint32(277803737)
        return np.asarray((word >> 22) ^ word)

    i = np.arange(40, dtype=np.uint32)
    first = turn(i ^ np.uint32(123))
    second = turn(first + np.uint32(456))
    expected = np.stack([first, second, turn(second), i], 1)
    np.testing.assert_array_equal(numbers.numpy(), expected)
