"""More shaders, bound as they are, against NumPy in float64: textures, holes, atomics."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.runtime import Context, bound, f32, i32, u32, vec4f

from .bound import drawn, module_of

SHADERS: Final = Path(__file__).with_name("shaders")
Array = NDArray[Any]


@pytest.fixture(name="load")
def bound_shader(tmp_path: Path) -> Any:
    """Return what binds a shader by its name."""

    def load(name: str) -> Any:
        return module_of((SHADERS / f"{name}.wgsl").read_text("utf-8"), tmp_path)

    return load


def records(count: int | tuple[()], cls: Any) -> Any:
    """Return empty structs of a bound module."""
    return np.zeros(count, cls.DTYPE)


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_mirrors(load: Any, ctx: Context) -> None:
    mirrors, height, width = load("mirrors"), 5, 9
    assert mirrors.Camera.SIZE == 96
    spheres = records(4, mirrors.Sphere)
    spheres["centre"] = rng().uniform(-1, 1, (4, 3)) + np.array([0, 0, 3])
    spheres["radius"], spheres["material"] = 0.7, (0, 1, 1, 2)
    scene_type = bound.sized(mirrors.Scene, 4)
    scene = records((), scene_type)
    scene["background"], scene["count"], scene["spheres"] = (0.1, 0.2, 0.4), 4, spheres
    materials = records(3, mirrors.Material)
    materials["albedo"] = rng().uniform(0.2, 1, (3, 3))
    materials["emission"][2], materials["kind"] = (1, 2, 3), (0, 1, 0)
    image = ctx.zeros((height, width), vec4f)
    lit = mirrors.Group1(
        scene=ctx.scalar(scene, scene_type),
        materials=ctx.vector(materials, mirrors.Material),
    )
    for frame in range(2):
        camera = mirrors.Camera(
            eye=(0, 0, -2),
            aspect=1.5,
            turn=np.eye(3),
            size=(width, height),
            frame=frame,
        )
        groups = mirrors.Group0(camera=camera), lit, mirrors.Group2(image=image)
        mirrors.Trace().bind(*groups).dispatch_threads(width, height)
    at_x, at_y = (np.arange(width) + 0.5) / width - 0.5, np.arange(height)
    found, traced = image.numpy(), np.ones((height, width, 4))
    for y, x in np.ndindex(height, width):
        ray = np.array([at_x[x] * 1.5, (at_y[y] + 0.5) / height - 0.5, 1])
        traced[y, x, :3] = light_on(ray / np.linalg.norm(ray), scene, materials)
    assert len(np.unique(traced.round(6).reshape(-1, 4), axis=0)) > 3
    np.testing.assert_allclose(found, traced, atol=1e-3)


def light_on(ray: Any, scene: Any, materials: Any) -> Array:
    """Return the light that a ray from the eye meets."""
    eye: Any = np.array([0.0, 0, -2])
    light: Any = np.zeros(3)
    carried: Any = np.ones(3)
    for _ in range(3):
        hits: list[tuple[float, Any, Any]] = []
        for sphere in scene["spheres"]:
            way = sphere["centre"].astype(float) - eye
            inside = float(sphere["radius"]) ** 2 - (way @ way - (way @ ray) ** 2)
            far = way @ ray - np.sqrt(max(inside, 0))
            if inside >= 0 and far > 1e-3:
                hits.append((far, (ray * far - way) / sphere["radius"], sphere))
        if not hits:
            return np.asarray(light + carried * scene["background"])
        far, normal, sphere = min(hits, key=lambda hit: hit[0])
        material = materials[sphere["material"]]
        light = light + carried * material["emission"]
        if material["kind"] == 0:
            return np.asarray(light + carried * material["albedo"] * max(-normal[2], 0))
        carried = carried * material["albedo"]
        eye, ray = eye + far * ray, ray - 2 * (ray @ normal) * normal
    return np.asarray(light)


def test_particles_are_moved_and_drawn(load: Any, ctx: Context) -> None:
    particles, device = load("particles"), ctx.device
    start = records(3, particles.Particle)
    start["position"] = [(-0.5, 0.5), (0.5, 0.5), (0.5, -0.95)]
    start["velocity"], start["colour"], start["life"] = (0, -1), (1, 0, 0, 1), 0.05
    moved = ctx.vector(start, particles.Particle)
    simulation = particles.Simulation(delta=0.1, gravity=(0, -1), bounce=0.5)
    group = particles.Group0(simulation=simulation, particles=moved)
    particles.Advance().bind(group).dispatch_threads(3)
    found = moved.numpy()
    np.testing.assert_allclose(found["position"][:, 1], [0.39, 0.39, -0.94], atol=1e-6)
    np.testing.assert_allclose(found["velocity"][:, 1], [-1.1, -1.1, 0.55], atol=1e-6)
    np.testing.assert_array_equal(found["life"], 0)
    groups = particles.RenderGroup0(drawn=moved), particles.RenderGroup1(
        view=particles.View(scale=(1, 1), size=0.25)
    )
    corners = particles.Corner.buffer("offset")
    offsets: Any = np.zeros(6, corners.dtype)
    offsets["offset"] = [(-1, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)]
    pipeline: Any = device.create_render_pipeline(
        layout=bound.pipeline_layout(device, *map(type, groups)),
        vertex=particles.Corner().state(device, corners),
        fragment=particles.Shade().state(device, {"format": "rgba8unorm"}),
        primitive={"topology": "triangle-list"},
    )
    picture = drawn(device, pipeline, groups, offsets, size=16, draws=(6, 3))
    # Squares of 4 x 4 pixels of 16 x 16; the last one is cut off by the lower edge.
    assert (picture[..., 0] == 255).sum() == 16 + 16 + 4 * 2
    assert (picture[3:7, 2:6, 0] == 255).all()


def test_resampling(load: Any, ctx: Context) -> None:
    resample, device = load("resample"), ctx.device
    picture = rng().integers(0, 256, (4, 8, 4), np.uint8)
    layers = rng().random((3, 2, 2, 4)).astype(np.float32)
    ids = rng().integers(0, 3, (6, 8, 1), np.uint32)
    result = texture(device, np.zeros((6, 8, 4), np.float32), "rgba32float", 0x8)
    sums = ctx.zeros(3, u32)
    group = resample.Group0(
        picture=texture(device, picture, "rgba8unorm", 0x4).create_view(),
        layers=texture(device, layers, "rgba32float", 0x4).create_view(
            dimension="2d-array"
        ),
        smooth_=device.create_sampler(mag_filter="linear", min_filter="linear"),
        settings=resample.Settings(shift=(0.03, 0.02), level=0, layer=1),
        result=result.create_view(),
        ids=texture(device, ids, "r32uint", 0x4).create_view(),
        sums=sums,
    )
    pipeline = resample.Resample(unfilterable=("layers",))
    pipeline.bind(group).dispatch_threads(8, 6)
    ctx.submit()
    layout, size = {"bytes_per_row": 128, "rows_per_image": 6}, (8, 6, 1)
    data = device.queue.read_texture({"texture": result}, layout, size)
    found = np.frombuffer(data, np.float32).reshape(6, 8, 4)
    expected = smoothed(picture / 255, (6, 8), (0.03, 0.02))
    expected += np.tile(layers[1], (3, 4, 1))
    np.testing.assert_allclose(found, expected, atol=5e-3)
    np.testing.assert_array_equal(sums.numpy(), np.bincount(ids.ravel(), minlength=3))


def texture(device: Any, data: Array, format_: str, usage: int) -> Any:
    """Return a texture with data `[height, width, 4]`, or `[layers, height, width, 4]`."""
    *layers, height, width, _ = data.shape
    size = (width, height, *(layers or [1]))
    made = device.create_texture(size=size, format=format_, usage=usage | 0x3)
    layout = {
        "bytes_per_row": data.strides[-3],
        "rows_per_image": height,
    }
    device.queue.write_texture({"texture": made}, data, layout, size)
    return made


def smoothed(
    picture: Array, shape: tuple[int, int], shift: tuple[float, float]
) -> Array:
    """Return a picture at another size, between its pixels, its edges repeated."""
    result = np.zeros((*shape, picture.shape[2]))
    for y, x in np.ndindex(*shape):
        at_y = ((y + 0.5) / shape[0] + shift[1]) * picture.shape[0] - 0.5
        at_x = ((x + 0.5) / shape[1] + shift[0]) * picture.shape[1] - 0.5
        low_y, low_x = int(np.floor(at_y)), int(np.floor(at_x))
        for j, i in np.ndindex(2, 2):
            weight = 1 - abs(at_y - low_y - j), 1 - abs(at_x - low_x - i)
            row = min(max(low_y + j, 0), picture.shape[0] - 1)
            column = min(max(low_x + i, 0), picture.shape[1] - 1)
            result[y, x] += weight[0] * weight[1] * picture[row, column]
    return result


def test_records_with_holes(load: Any, ctx: Context) -> None:
    module, count = load("records"), 7
    track_type = bound.sized(module.Track, count)
    assert 64 + count * 224 == track_type.SIZE
    track = records((), track_type)
    keys = records(count, module.Key)
    keys["time"], keys["weight"] = rng().random((2, count))
    keys["at"], bones = rng().random((count, 2)), keys["bones"]
    bones["axis"] = rng().standard_normal((count, 2, 3))
    bones["turn"]["value"] = rng().standard_normal((count, 2, 3, 3))
    bones["flags"] = rng().integers(0, 1000, (count, 2, 3))
    track["name"], track["length"], track["keys"] = 5, 2.5, keys
    track["limits"]["value"] = [[-0.5] * 3, [0.75] * 3]
    means = ctx.zeros(count, module.Mean)
    group = module.Group0(track=ctx.scalar(track, track_type), means=means)
    module.Fold().bind(group).dispatch_threads(count)
    found = means.numpy()
    axis = (bones["axis"] * keys["weight"][:, None, None]).astype(float).sum(1)
    np.testing.assert_allclose(found["axis"], axis.clip(-0.5, 0.75), atol=1e-5)
    # Columns of `turn` are the rows of its array.
    turned = np.einsum("nbcr,nbc->nr", bones["turn"]["value"], bones["axis"])
    turned = (
        turned * keys["at"][:, :1] + keys["at"][:, 1:] + keys["time"][:, None] * 2.5
    )
    np.testing.assert_allclose(found["turned"], turned, atol=1e-4)
    flags = np.bitwise_xor.reduce(bones["flags"].reshape(count, 6), 1) + 5
    np.testing.assert_array_equal(found["flags"], flags)


@pytest.mark.parametrize("chosen", [{}, {"TILE": 4, "ROWS": 1, "negate": True}])
def test_turned_by_tiles(load: Any, ctx: Context, chosen: dict[str, Any]) -> None:
    turned, values = load("turned"), rng().standard_normal((10, 13))
    pipeline = turned.Transpose(half_scale=0.25, **chosen)
    tile = chosen.get("TILE", 8)
    assert pipeline.workgroup_size == (tile, chosen.get("ROWS", 4), 1)
    matrix, result = ctx.matrix(values, f32), ctx.zeros((13, 10), f32)
    shape = turned.Shape(rows=10, columns=13)
    group = turned.Group0(shape=shape, matrix=matrix, result=result)
    pipeline.bind(group).dispatch_workgroups(-(-13 // tile), -(-10 // tile))
    sign = -0.5 if chosen else 0.5
    np.testing.assert_allclose(result.numpy(), sign * values.T, rtol=1e-6)


def test_counts(load: Any, ctx: Context) -> None:
    counts, values = load("counts"), rng().integers(-999, 999, 77, np.int32)
    found_type = bound.sized(counts.Found, 5)
    record = records((), found_type)
    record["first"] = 2**32 - 1
    found = ctx.scalar(record, found_type)
    group = counts.Group0(values=ctx.vector(values, i32), found=found)
    counts.Count().bind(group).dispatch_threads(77)
    result, bins = found.numpy(), (values + 1000) % 5
    assert result["extremes"]["least"] == values.min()
    assert result["extremes"]["most"] == values.max()
    assert result["bits"] == 31
    np.testing.assert_array_equal(result["bins"], np.bincount(bins))
    np.testing.assert_array_equal(
        result["first"], np.unique(bins, return_index=True)[1]
    )


def test_nested_templates(load: Any, ctx: Context) -> None:
    nested = load("nested")
    blocks = records(2, nested.Block)
    blocks["rows"] = rng().random((2, 2, 3, 4))
    blocks["grid"] = rng().integers(0, 9, (2, 2, 4, 2))
    blocks["corners"] = rng().random((2, 2, 4, 2))
    sums = ctx.zeros((2, 4), f32)
    group = nested.Group0(blocks=ctx.vector(blocks, nested.Block), sums=sums)
    nested.Add().bind(group).dispatch_threads(1, 2)
    expected = np.zeros((2, 4))
    expected[:, 0] = blocks["rows"].astype(float).sum((1, 2, 3))
    expected[:, 1:3] = blocks["grid"].sum((1, 2))
    expected[:, 3] = 1 + blocks["corners"][:, 1, 3, 1]
    np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-6)


def test_entry_points_share_their_groups(load: Any, ctx: Context) -> None:
    norm, values = load("norm"), rng().standard_normal((5, 20)) * 3 + 1
    rows, gain = ctx.matrix(values, f32), rng().random(20)
    shape = norm.Shape(rows=5, columns=20, epsilon=1e-5)
    group = norm.Group0(shape=shape, rows=rows, moments=ctx.zeros(5, norm.Moments))
    with ctx.batch():
        norm.Means().bind(group).dispatch_threads(5)
        norm.Scales().bind(group).dispatch_threads(5)
        gains = norm.Group1(gain=ctx.vector(gain, f32))
        norm.Apply().bind(group, gains).dispatch_threads(20, 5)
    away = values - values.mean(1, keepdims=True)
    expected = away / np.sqrt((away**2).mean(1, keepdims=True) + 1e-5) * gain
    np.testing.assert_allclose(rows.numpy(), expected, atol=1e-5)
