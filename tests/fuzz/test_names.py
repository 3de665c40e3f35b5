"""Names that Python, WGSL or generated code use themselves: refused, or escaped."""

from __future__ import annotations

import keyword
from typing import Any, Final

import pytest

from kerngen.compiler import CompiledModule, compile_text
from kerngen.jit.memory import installed
from kerngen.source.diagnostic import CompileError
from tests.programs.judges import Judge, naga

WORDS: Final = (
    *keyword.kwlist,
    *keyword.softkwlist,
    *"len range f32 select main self cls out ctx np gpu ref real print float".split(),
    *"object property Any NDArray ABI annotations Kernel Path dataclass".split(),
    *"k_reference KUniform KOutput _x __x __init__ __class__ _ __ ___ _1 i_".split(),
    *"geometry hostmath array DTYPE FIELDS pack index count name mro __all__".split(),
    *"dtype shape WGSL _WGSL check_abi warnings exec eval u lane grid workgroup".split(),
    *"element function private storage var ptr fn_ override atomic vec4f NULL".split(),
)

PROGRAM: Final = """\
const c{0}: f32 = 2.0;
struct {0} {{ {0}: f32, {0}_: vec3f }}
fn {0}({0}: f32) -> f32 {{ let {0}_ = {0} + 1.0; {0}_ * {0} }}
kernel {0}({0}: f32[n], {0}_: f32 = 1.0, s: {0}, {0}__: u32) -> {0}___: f32[n], y: f32[n] {{
    host {0}____ = {0}__ + 1;
    let l[{0}_____] = sum[{0}______] {0}[{0}______] * {0}[{0}_____] * f32({0}____);
    {0}___[i] = l[i] * {0}_ * s.{0} * s.{0}_.x;
    y[i] = {0}[i];
}}
"""
"""One name, and the names that it might be escaped to, wherever a name may stand."""

PLAIN: Final = """\
fn {0}({0}: f32) -> f32 {{ {0} * 2.0 }}
kernel {0}(x: f32[{0}], {0}_: f32) -> {0}__: f32[{0}] {{ {0}__[i] = {0}(x[i]) * {0}_; }}
kernel k({0}: f32[n]) -> y: f32[n] {{ y[i] = {0}[i]; }}
"""


@pytest.fixture(scope="module")
def judge() -> Judge:
    return naga()


def runs(compiled: CompiledModule) -> Any:
    """Import a module; every name in it is there."""
    with installed([compiled]) as modules:
        module = modules["names.kern"]
        assert all(hasattr(module, name) for name in module.__all__)
        return module


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("program", [PROGRAM, PLAIN], ids=["everywhere", "kernel"])
def test_any_name_is_escaped_or_refused(program: str, step: int, judge: Judge) -> None:
    words = WORDS[::step]
    accepted = 0
    for word in words:
        try:
            compiled = compile_text(program.format(word), "names.kern", formatted=False)
        except CompileError:
            continue
        accepted += 1
        runs(compiled)
        for path, text in compiled.files.items():
            if path.endswith(".wgsl"):
                assert judge(text.decode()) == "", word
    assert accepted > len(words) // 2
