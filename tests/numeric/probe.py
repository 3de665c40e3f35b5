"""Ask the GPU which bits it reads from a uniform struct, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.device.gpu import COPY_DST, COPY_SRC, STORAGE, UNIFORM
from kerngen.runtime.struct import Field

Device: TypeAlias = Any
"""A `wgpu.GPUDevice`, which has no types."""

Words: TypeAlias = NDArray[np.uint32]


def shader(struct: str, name: str, fields: Sequence[Field]) -> str:
    """A shader around a struct's text that writes the bits of each field, in order."""
    parts = [
        f"uniforms.{field.name}{part}"
        for field in fields
        for part in ((".x", ".y", ".z", ".w")[: field.count] if field.shape else ("",))
    ]
    stores = "\n".join(
        f"    words[{i}] = bitcast<u32>({p});" for i, p in enumerate(parts)
    )
    return f"""
{struct}

@group(0) @binding(0) var<uniform> uniforms: {name};
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(1)
fn main() {{
{stores}
}}
"""


def read_back(device: Device, code: str, data: bytes, bound: int, count: int) -> Words:
    """Run the probe with `bound` bytes of the uniform buffer; return `count` words."""
    uniform = device.create_buffer(size=max(len(data), 16), usage=UNIFORM | COPY_DST)
    device.queue.write_buffer(uniform, 0, data)
    words = device.create_buffer(size=4 * count, usage=STORAGE | COPY_SRC)
    entries = [
        {"binding": 0, "visibility": 4, "buffer": {"type": "uniform"}},
        {"binding": 1, "visibility": 4, "buffer": {"type": "storage"}},
    ]
    layout = device.create_bind_group_layout(entries=entries)
    pipeline = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={
            "module": device.create_shader_module(code=code),
            "entry_point": "main",
        },
    )
    group = device.create_bind_group(
        layout=layout,
        entries=[
            {"binding": 0, "resource": {"buffer": uniform, "offset": 0, "size": bound}},
            {
                "binding": 1,
                "resource": {"buffer": words, "offset": 0, "size": 4 * count},
            },
        ],
    )
    encoder = device.create_command_encoder()
    running = encoder.begin_compute_pass()
    running.set_pipeline(pipeline)
    running.set_bind_group(0, group)
    running.dispatch_workgroups(1)
    running.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(device.queue.read_buffer(words), np.uint32)
