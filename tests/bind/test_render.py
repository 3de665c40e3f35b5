"""Bound vertex and fragment shaders draw what NumPy expects, called by wgpu itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import Context, bound, vec2f

from .bound import drawn, module_of

SHADER = """
struct Camera { view: mat4x4f, tint: vec4f }
struct VertexIn { @location(0) place: vec3f, @location(1) color: vec4f }
struct Varying { @builtin(position) clip: vec4f, @location(0) color: vec4f }
override gain: f32 = 1.0;
@group(0) @binding(0) var<uniform> camera: Camera;
@group(0) @binding(1) var<storage, read> shifts: array<vec2f>;
@group(1) @binding(0) var<storage, read_write> total: array<u32>;
@vertex
fn vs(in: VertexIn, @location(5) weight: f32, @builtin(instance_index) i: u32) -> Varying {
    let place = vec4f(in.place + vec3f(shifts[i] * weight, 0.0), 1.0);
    return Varying(camera.view * place, in.color);
}
@fragment
fn fs(in: Varying) -> @location(0) vec4f { return in.color * camera.tint * gain; }
@compute @workgroup_size(1)
fn count() { total[0] = arrayLength(&shifts); }
"""
TURN = ((0, 1, 0, 0), (-1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
"""A quarter of a turn, whose columns these are."""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return module_of(SHADER, tmp_path_factory.mktemp("render"))


def turned(module: Any, ctx: Context, gain: float) -> NDArray[np.uint8]:
    """Return a picture of the lower half of the plane, turned to the right one."""
    device: Any = ctx.device
    vs, fs = module.Vs(), module.Fs(gain=gain)
    buffer = vs.buffer("place", "color", "weight", formats={"color": "unorm8x4"})
    assert buffer.dtype.itemsize == 12 + 4 + 4
    vertices: Any = np.zeros(6, buffer.dtype)
    corners = [(-1, -1), (1, -1), (1, 0), (-1, -1), (1, 0), (-1, 0)]
    vertices["place"][:, :2] = corners
    vertices["place"][:, 0] -= 4
    vertices["color"] = (255, 128, 0, 255)
    vertices["weight"] = 2
    shifts = ctx.vector([(2, 0)], vec2f)
    camera = module.Camera(view=TURN, tint=(1, 1, 1, 1))
    group = module.Group0(camera=camera, shifts=shifts)
    pipeline = device.create_render_pipeline(
        layout=bound.pipeline_layout(device, module.Group0),
        vertex=vs.state(device, buffer),
        fragment=fs.state(device, {"format": "rgba8unorm"}),
        primitive={"topology": "triangle-list"},
    )
    return drawn(device, pipeline, (group,), vertices, size=8, draws=(6, 1))


def test_a_picture_is_as_expected(module: Any, ctx: Context) -> None:
    expected = np.zeros((8, 8, 4), np.uint8)
    expected[:, 4:] = (128, 64, 0, 128)
    np.testing.assert_allclose(turned(module, ctx, 0.5), expected, atol=1)


def test_each_binding_is_seen_by_the_stages_that_use_it(module: Any) -> None:
    seen = {each.name: each.visibility for each in module.Group0.BINDINGS}
    assert seen == {"camera": 1 | 2, "shifts": 1 | 4}
    assert module.Vs.GROUPS == module.Fs.GROUPS == (module.Group0,)
    assert [*module.Count.GROUPS] == [module.Group0, module.Group1]


def test_wrong_parts_of_pipelines_are_refused(module: Any, ctx: Context) -> None:
    vs = module.Vs()
    with pytest.raises(gpu.ArgumentError, match="no input 'uv'; there are 'place'"):
        vs.buffer("uv")
    with pytest.raises(gpu.ArgumentError, match="'color' can't be 'uint8x4'"):
        vs.buffer(formats={"color": "uint8x4"})
    with pytest.raises(gpu.ArgumentError, match=r"locations \[0\]; the shader has"):
        vs.state(ctx.device, vs.buffer("place"))
    with pytest.raises(gpu.ArgumentError, match="target 1 has no output"):
        module.Fs().state(ctx.device, None, {"format": "rgba8unorm"})


def test_entry_points_that_bind_other_things_have_groups_of_their_own(
    tmp_path: Path,
) -> None:
    module = module_of(
        """
@group(0) @binding(0) var<uniform> a: f32;
@group(0) @binding(0) var<storage, read_write> b: array<f32>;
@group(0) @binding(1) var<storage, read_write> c: array<f32>;
fn helper() -> f32 { return a; }
@compute @workgroup_size(1) fn first() { c[0] = helper(); }
@compute @workgroup_size(1) fn second() { c[0] = b[0]; }
@compute @workgroup_size(1) fn third() { b[0] = c[0]; }
@fragment fn draw() -> @location(0) vec4f { return vec4f(a); }
""",
        tmp_path,
    )
    names = {name for name in module.__all__ if "Group" in name}
    assert names == {"FirstGroup0", "RenderGroup0", "SecondGroup0"}
    assert module.Third.GROUPS == module.Second.GROUPS == (module.SecondGroup0,)
