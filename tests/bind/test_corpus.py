"""WGSL of others: read as naga reads it, or refused with a place and a reason.

`KERNGEN_WGSL` names a folder with checkouts, such as those of webgpu-samples, wgpu, vello,
pygfx and wgsl_to_wgpu: none of their files is a part of this repository.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any, Final

import pytest

import kerngen.runtime as gpu
from kerngen.bind.build import bind
from kerngen.bind.resolve import read
from kerngen.runtime.bound.bindings import Binding, Storage, Uniform
from kerngen.runtime.bound.pipeline import ComputePipeline
from kerngen.runtime.device.shaders import SUBGROUPS
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source

from .bound import module_of

FOLDER: Final = "KERNGEN_WGSL"
PARTS: Final = "KG1407"
"""The code of files that other files complete."""

UNDECLARED: Final = "no definition in scope for identifier"
"""What naga says of a part of a program: its pipelines would lack bindings."""

OTHER_TOOLS: Final = {"KG1405", "KG1406"}
"""The codes of files that are no WGSL, or go beyond it, which naga may take."""


def files() -> list[Path]:
    if FOLDER not in os.environ:
        pytest.skip(f"{FOLDER} names no folder with checkouts of WGSL")
    found = sorted(Path(os.environ[FOLDER]).rglob("*.wgsl"))
    assert found, f"there are no .wgsl files in {os.environ[FOLDER]}"
    return found


def refusal(text: str, name: str) -> str:
    """Return the code of why a text is not bound, or nothing."""
    try:
        bind(Source(name, text), text.encode())
    except CompileError as error:
        for fault in error.diagnostics:
            assert fault.message.endswith(".")
            assert 0 <= fault.span.start <= len(text)
        return error.diagnostics[0].code
    return ""


@pytest.mark.nightly
def test_files_are_read_or_refused_as_naga_reads_them() -> None:
    codes = Counter[str]()
    wrong: list[str] = []
    took: list[float] = []
    with gpu.open(adapter="software") as ctx:
        for file in files():
            text = file.read_text("utf-8", errors="replace")
            start = process_time()
            code = refusal(text, file.name)
            took.append(process_time() - start)
            codes[code or "read"] += 1
            why = refused(ctx, text)
            if code and code not in OTHER_TOOLS and not why:
                wrong.append(f"{file}: {code}")
            if not code and UNDECLARED in why and read(Source(file.name, text)).entries:
                wrong.append(f"{file}: {why}")
    print(codes, f"{max(took[1:]):.3f} s at most")
    assert wrong == []
    known = sum(codes[each] for each in ("read", *OTHER_TOOLS, PARTS))
    assert known > 0.95 * codes.total()


@pytest.mark.nightly
def test_pipelines_have_the_layouts_that_naga_asks_for(tmp_path: Path) -> None:
    seen = Counter[str]()
    with gpu.open(adapter="software") as ctx:
        for file in files():
            text = file.read_text("utf-8", errors="replace")
            if refusal(text, file.name) or not accepts(ctx, text):
                continue
            module = module_of(text, tmp_path)
            for name in module.__all__:
                cls = getattr(module, name)
                if issubclass(cls, ComputePipeline) and not required(cls):
                    seen["pipelines"] += 1
                    check_tight(ctx, cls, f"{file}: {name}", seen)
    print(seen)
    assert seen["pipelines"]


def required(cls: Any) -> bool:
    """Whether a pipeline can't be made without arguments."""
    try:
        cls()
    except TypeError:
        return True
    return False


def check_tight(ctx: gpu.Context, cls: Any, name: str, seen: Counter[str]) -> None:
    """Let naga accept our layout of each binding, and refuse one with a byte less."""
    layouts = {group.GROUP: list(group.BINDINGS) for group in cls.GROUPS}
    message = compiled(ctx, cls, layouts)
    assert "requires" in message or "limit" in message or not message, name
    if message:
        return
    for index, bindings in layouts.items():
        for number, binding in enumerate(bindings):
            if isinstance(binding, Uniform | Storage):
                less = [*bindings]
                less[number] = Less(binding)
                if compiled(ctx, cls, {**layouts, index: less}):
                    seen["tight"] += 1
                else:
                    seen["unused"] += 1  # by this entry point, but by another one


class Less:
    """A binding that states a byte less."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding

    def layout(self) -> Any:
        entry: Any = self._binding.layout()
        size = entry["buffer"]["min_binding_size"] - 1
        return {**entry, "buffer": {**entry["buffer"], "min_binding_size": size}}


def compiled(ctx: gpu.Context, cls: Any, layouts: dict[int, list[Any]]) -> str:
    """Return why a pipeline is refused, or nothing."""
    device = ctx.device
    try:
        groups = [
            device.create_bind_group_layout(
                entries=[each.layout() for each in layouts.get(index, [])]
            )
            for index in range(max(layouts, default=-1) + 1)
        ]
        device.create_compute_pipeline(
            layout=device.create_pipeline_layout(bind_group_layouts=groups),
            compute={
                "module": device.create_shader_module(
                    code=without_line(cls.SHADER.code)
                ),
                "entry_point": cls.ENTRY,
                "constants": cls().constants,
            },
        )
    except Exception as error:  # noqa: BLE001 - wgpu's has no class of its own
        return str(error)
    return ""


def without_line(text: str) -> str:
    return text.replace(SUBGROUPS, "")


def accepts(ctx: gpu.Context, text: str) -> bool:
    """Whether naga reads a text."""
    return not refused(ctx, text)


def refused(ctx: gpu.Context, text: str) -> str:
    """Return why naga does not read a text, or nothing."""
    try:
        ctx.device.create_shader_module(code=without_line(text))
    except Exception as error:  # noqa: BLE001 - wgpu's has no class of its own
        return str(error)
    return ""
