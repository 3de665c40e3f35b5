"""What the npm package makes of shaders before it compiles them, in node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.plan.wgsl import Declarations, only
from kerngen.runtime import Context
from tests.web import node
from tests.web.browser import ROOT

pytestmark = pytest.mark.web

JOB = """
import { only } from "@/wgsl.js";
export default (pairs) => pairs.map(([text, entry]) => only(text, entry));
"""


def test_one_entry_point_is_left_with_all_that_it_uses(
    package: Path, tmp_path: Path
) -> None:
    """What Python's runtime blanks out, too, is the rest: what no entry point is left for."""
    assert package.is_dir()
    files = sorted((ROOT / "generated").rglob("*.wgsl"))[::20]
    texts = [file.read_text("utf-8") for file in files]
    codes = [(text, Declarations(text)) for text in texts]
    pairs = [(t, x) for t, c in codes for x in c.texts if c.is_entry_point(x)]
    assert len(pairs) > 2 * len(files) > 40
    found: list[str] = node.run(tmp_path, JOB, pairs)
    for (text, entry), left in zip(pairs, found, strict=True):
        needed, lines = only(text, entry).splitlines(), left.splitlines()
        whole = text.splitlines()
        assert left.count("@compute") == 1
        for need, line, original in zip(needed, lines, whole, strict=True):
            assert line in ("", original)
            assert need in ("", line)
    spared = sum(len(text) for text, _ in pairs) - sum(map(len, found))
    possible = sum(len(text) - len(only(text, entry)) for text, entry in pairs)
    assert 0.9 * possible < spared <= possible


DOTS = """
import { withDots } from "@/dots.js";
export default ([text, features]) => withDots(text, new Set(features));
"""

SHADER = """
@group(0) @binding(0) var<storage, read> words: array<vec2u>;
@group(0) @binding(1) var<storage, read_write> sums: array<vec2u>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) at: vec3u) {
    let w = words[at.x];
    sums[at.x] = vec2u(bitcast<u32>(dot4I8Packed(w.x, w.y)), dot4U8Packed(w.x, w.y));
}
"""


def test_dots_of_bytes_are_added_where_a_browser_lacks_them(
    ctx: Context, tmp_path: Path, package: Path
) -> None:
    """What is added hides WGSL's own; the device computes by it what NumPy does."""
    assert package.is_dir()
    known, lacking = ["packed_4x8_integer_dot_product"], list[str]()
    assert node.run(tmp_path, DOTS, [SHADER, known]) == SHADER
    text = node.run(tmp_path, DOTS, [SHADER, lacking])
    assert "fn dot4I8Packed(" in text
    data = np.random.default_rng(0).integers(0, 256, (9, 2, 4)).astype(np.uint8)
    sums = _run(ctx, text, data.tobytes())
    for column, kind in enumerate((np.int8, np.uint8)):
        wide = data.view(kind).astype(np.int32)
        want = (wide[:, 0] * wide[:, 1]).sum(axis=1)
        np.testing.assert_array_equal(sums[:, column], want)


def _run(ctx: Context, code: str, words: bytes) -> NDArray[np.int32]:
    """Run a shader for each pair of words."""
    device: Any = ctx.device
    made = device.create_shader_module(code=code)
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": made, "entry_point": "main"}
    )
    # Usages: COPY_SRC and STORAGE.
    buffers = [
        device.create_buffer_with_data(data=data, usage=0x84)
        for data in (words, bytes(len(words)))
    ]
    entries = [
        {"binding": place, "resource": {"buffer": buffer}}
        for place, buffer in enumerate(buffers)
    ]
    layout = pipeline.get_bind_group_layout(0)
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, device.create_bind_group(layout=layout, entries=entries))
    compute.dispatch_workgroups(len(words) // 8)
    compute.end()
    device.queue.submit([encoder.finish()])
    found = np.frombuffer(device.queue.read_buffer(buffers[1]), np.int32)
    return found.reshape(-1, 2)
