"""Tint accepts every standard shader; it is stricter than naga about uniformity."""

from __future__ import annotations

import signal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kerngen.compiler import compile_text
from kerngen.runtime import Context
from kerngen.runtime.device.shaders import SUBGROUPS
from tests.budget import several
from tests.fuzz.hostile import PATHS, program, programs
from tests.judges import tint
from tests.judges.tint import Tint, refused
from tests.language.cases import CASES
from tests.language.halves import HALVES
from tests.project.tree import ROOT

GENERATED = Path(__file__).parents[2] / "generated" / "kerngen_kernels" / "wgsl"

NOT_UNIFORM = """
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    if (lane < 3u) {
        workgroupBarrier();
    }
}
"""


DIVERGENT_SUM = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) place: u32,
) {
    if (place < 3u) {
        x[lane] = subgroupAdd(x[lane]);
    }
}
"""


def test_every_standard_shader_is_accepted() -> None:
    shaders = sorted(GENERATED.glob("*/*.wgsl"))
    assert len(shaders) > 50
    assert refused([*several(shaders, by_day=60)]) == {}


def test_every_case_of_the_language_is_accepted(tmp_path: Path) -> None:
    shaders: list[Path] = []
    for case in several((*CASES, *HALVES), by_day=12):
        for path, content in compile_text(
            case.text, f"{case}.kern", formatted=False
        ).files.items():
            if path.endswith(".wgsl"):
                shaders.append(tmp_path / Path(path).name)
                shaders[-1].write_bytes(content)
    assert len(shaders) > 20
    assert refused(shaders) == {}


@pytest.mark.nightly
def test_what_comments_and_names_say_is_nothing_to_both_compilers(
    tmp_path: Path, ctx: Context
) -> None:
    sources = [(text, "k.kern") for turn in range(3) for text in programs(turn)]
    sources += [(program("text"), path) for path in PATHS]
    shaders: list[Path] = []
    for number, (text, path) in enumerate(sources):
        for name, content in compile_text(text, path).files.items():
            if name.endswith(".wgsl"):
                shader = content.decode().replace(SUBGROUPS, "")
                ctx.device.create_shader_module(code=shader)
                shaders.append(tmp_path / f"{number}.wgsl")
                shaders[-1].write_bytes(content)
    assert len(shaders) >= len(sources)
    assert refused(shaders) == {}


def test_the_judge_refuses_a_barrier_in_divergent_control_flow(tmp_path: Path) -> None:
    shader = tmp_path / "divergent.wgsl"
    shader.write_text(NOT_UNIFORM, encoding="utf-8")
    (message,) = refused([shader]).values()
    assert "uniform control flow" in message


def test_the_judge_wants_the_line_that_enables_subgroups(tmp_path: Path) -> None:
    shader = tmp_path / "divergent.wgsl"
    shader.write_text(DIVERGENT_SUM, encoding="utf-8")
    (message,) = refused([shader]).values()
    assert "subgroup" in message
    shader.write_text(f"{SUBGROUPS}{DIVERGENT_SUM}", encoding="utf-8")
    (message,) = refused([shader]).values()
    assert "'subgroupAdd' must only be called from uniform control flow" in message


def test_naga_refuses_the_line_that_enables_subgroups(ctx: Context) -> None:
    """Once this fails, naga takes the line, and needs nothing of these any longer.

    `_accepted` and `_accepts` in `kerngen/runtime/device/shaders.py` can go when the oldest wgpu
    that `pyproject.toml` admits takes it; so can the replacements of `SUBGROUPS` in tests.
    """
    wgpu: Any = import_module("wgpu")
    with pytest.raises(wgpu.GPUValidationError, match="`subgroups` enable-extension"):
        ctx.device.create_shader_module(code=SUBGROUPS)


def test_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tint, "PATIENCE", 0.2)
    judge: Any = Tint()
    try:
        judge._process.send_signal(signal.SIGSTOP)
        with pytest.raises(AssertionError, match="hung"):
            judge.refuses(NOT_UNIFORM)
    finally:
        judge.close()


@pytest.mark.nightly
def test_tint_accepts_recurrences(tmp_path: Path) -> None:
    """Dispatches for each step have a barrier, which Tint wants in uniform control flow."""
    source = ROOT / "tests" / "language" / "recurrences.kern"
    files = compile_text(source.read_text("utf-8"), "recurrences.kern").files
    shaders = [tmp_path / Path(path).name for path in files if path.endswith(".wgsl")]
    for path, content in files.items():
        if path.endswith(".wgsl"):
            (tmp_path / Path(path).name).write_bytes(content)
    assert any("steps" in shader.name for shader in shaders)
    assert refused(shaders) == {}
