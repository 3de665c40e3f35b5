"""Workgroup memory of shaders that `verify` runs: it holds a pattern, whatever its type."""

from __future__ import annotations

import numpy as np

import kerngen.runtime as gpu
from kerngen.verify.unset import with_unset_memory
from tests.numeric.probe import read_back

WORD = 0x7FC12345
VARIABLES = (
    ("u32", "{}"),
    ("atomic<u32>", "atomicLoad(&{})"),
    ("array<f32, SIZE>", "bitcast<u32>({}[32])"),
    ("array<atomic<u32>, 70>", "atomicLoad(&{}[69])"),
    ("array<vec3i, 2>", "u32({}[1].z)"),
    ("array<array<vec4f, 3>, 5>", "bitcast<u32>({}[4][2].w)"),
    ("array<mat2x3f, 5>", "bitcast<u32>({}[4][1].z)"),
)


def test_it_holds_a_pattern(ctx: gpu.Context) -> None:
    declared = "\n".join(
        f"var<workgroup> own{i}: {type_};" for i, (type_, _) in enumerate(VARIABLES)
    )
    stores = "\n".join(
        f"words[{i}] = {read.format(f'own{i}')};"
        for i, (_, read) in enumerate(VARIABLES)
    )
    code = f"""
override SIZE: u32 = 33;
@group(0) @binding(0) var<uniform> uniforms: vec4u;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;
{declared}

@compute @workgroup_size(32)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(num_workgroups) grid: vec3u,
) {{
if (lane == uniforms.x) {{
{stores}
}}
}}
"""
    unset = with_unset_memory(code, WORD)
    words = read_back(ctx.device, unset, bytes(16), 16, len(VARIABLES))
    np.testing.assert_array_equal(words, WORD)


def test_arrays_are_filled_element_by_element() -> None:
    """Those in workgroup memory by all lanes, those inside them and matrices in loops."""
    code = """
var<workgroup> own: array<array<mat2x3f, 4>, 70>;
@compute @workgroup_size(32)
fn main(
    @builtin(local_invocation_index) lane: u32,
) {
}
"""
    found = with_unset_memory(code, WORD)
    assert (
        "for (var p = lane; p < 70; p += 32) {\n"
        "for (var pp = 0u; pp < 4; pp += 1u) {\n"
        "for (var ppp = 0u; ppp < 2; ppp += 1u) {\n"
        "own[p][pp][ppp] = vec3f(bitcast<f32>("
    ) in found


def test_a_shader_without_such_memory_is_as_before() -> None:
    assert with_unset_memory("fn main() {}", WORD) == "fn main() {}"


def test_lanes_share_the_work_and_wait_for_each_other() -> None:
    """As in the module's own example; what is no array is filled by the first lane."""
    head = """
var<workgroup> part: array<f32, 256>;
var<workgroup> top: vec2u;
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) lane_: u32,
    @builtin(workgroup_id) group: vec3u,
) {
"""
    body = "part[lane_] = 1.0;\n}\n"
    assert (
        with_unset_memory(head + body, WORD)
        == head
        + (
            f"var unset_word = {WORD}u;\n"
            "for (var p = lane_; p < 256; p += 64) {\n"
            "part[p] = f32(bitcast<f32>(unset_word));\n"
            "}\n"
            "if (lane_ == 0u) {\n"
            "top = vec2u(bitcast<u32>(unset_word));\n"
            "}\n"
            "workgroupBarrier();\n"
        )
        + body
    )
