"""Bind WGSL texts for tests, and import what they become."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerngen.bind.build import bind
from kerngen.runtime.bound import BindGroup
from kerngen.source.text import Source

_numbers: Final = itertools.count()


def files_of(text: str, name: str = "shader.wgsl") -> dict[str, bytes]:
    """Return the files that a text becomes, by path."""
    return dict(bind(Source(name, text), text.encode()).files)


def module_of(text: str, folder: Path) -> Any:
    """Write what a text becomes to a folder, and import it."""
    name = f"bound{next(_numbers)}"
    for path, content in files_of(text, f"{name}.wgsl").items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))


def drawn(
    device: Any,
    pipeline: Any,
    groups: Sequence[BindGroup],
    vertices: NDArray[Any],
    *,
    size: int,
    draws: tuple[int, int],
) -> NDArray[np.uint8]:
    """Return a square picture; `draws` are the counts of vertices and of instances."""
    usage = import_module("wgpu").BufferUsage.VERTEX
    whole = (size, size, 1)
    target = device.create_texture(size=whole, format="rgba8unorm", usage=0x11)
    encoder = device.create_command_encoder()
    color = {
        "view": target.create_view(),
        "load_op": "clear",
        "store_op": "store",
        "clear_value": (0, 0, 0, 0),
    }
    render = encoder.begin_render_pass(color_attachments=[color])
    render.set_pipeline(pipeline)
    for index, group in enumerate(groups):
        render.set_bind_group(index, group.create(device))
    buffer = device.create_buffer_with_data(data=vertices, usage=usage)
    render.set_vertex_buffer(0, buffer)
    render.draw(*draws)
    render.end()
    device.queue.submit([encoder.finish()])
    layout = {"offset": 0, "bytes_per_row": 4 * size, "rows_per_image": size}
    data = device.queue.read_texture({"texture": target}, layout, whole)
    return np.frombuffer(data, np.uint8).reshape(size, size, 4)
