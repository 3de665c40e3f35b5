"""Judges of shaders: what another compiler has against one, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from kerngen.runtime.device.shaders import SUBGROUPS
from tests.judges.tint import Tint

Judge: TypeAlias = Callable[[str], str]


def naga() -> Judge:
    """Return a judge that asks wgpu, on a software adapter if there is one."""
    wgpu: Any = import_module("wgpu")
    adapters: list[Any] = wgpu.gpu.enumerate_adapters_sync()
    adapter = min(adapters, key=lambda each: each.info["adapter_type"] != "CPU")
    device = adapter.request_device_sync(required_features=["shader-f16", "subgroup"])

    def judge(shader: str) -> str:
        shader = shader.replace(SUBGROUPS, "")  # as the runtime does
        try:
            device.create_shader_module(code=shader)
        except wgpu.GPUError as error:
            return str(error)
        return ""

    return judge


@contextmanager
def both() -> Generator[Mapping[str, Judge]]:
    """Yield naga and Tint, the latter in one process for as long as the block."""
    tint = Tint()
    try:
        yield {"naga": naga(), "Tint": tint.refuses}
    finally:
        tint.close()
