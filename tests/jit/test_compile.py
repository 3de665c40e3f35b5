"""`kerngen.compile` and `kerngen.load`: the modules of a build, without its files."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import kerngen
import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.compiler import compile_text
from kerngen.plan.tree import dispatches_in
from kerngen.plan.wgsl import only
from kerngen.runtime import f32
from kerngen.runtime.calls.choices import kernel_of
from kerngen.runtime.calls.kernel import Kernel
from tests.cli.sample import edit, files

AXPY = """/// a x + y.
kernel axpy(x: f32[n], y: f32[n], a: f32 = 2.0) -> z: f32[n] {
    z[i] = a * x[i] + y[i];
}
"""
WRONG = "kernel wrong(x: f32[n]) -> y: f32[n] { y[i] = x[j]; }\n"
LIGHT = "struct Light { at: vec3f, power: f32 }\n"
SCENE = """use "{path}";
kernel powers(lights: Light[n], by: f32) -> p: f32[n] {{ p[i] = by * lights[i].power; }}
"""


def test_bytes_are_no_program() -> None:
    text: Any = b"kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }"
    with pytest.raises(TypeError, match=r"text of a program, got bytes; kerngen\.load"):
        kerngen.compile(text)


def test_a_text_becomes_a_module_that_runs(ctx: gpu.Context) -> None:
    module = kerngen.compile(AXPY)
    x, y = np.arange(7.0), np.ones(7)
    z = module.axpy(ctx.vector(x, f32), ctx.vector(y, f32), a=3.0)
    np.testing.assert_array_equal(z.numpy(), 3.0 * x + y)
    np.testing.assert_array_equal(module.axpy_reference(x, y), 2.0 * x + y)


def test_a_module_is_what_the_build_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = kerngen.compile(AXPY, name="blas")
    built = compile_text(AXPY, "blas.kern")
    assert inspect.getsource(module) == built.binding
    kernel = kernel_of(module.axpy)
    assert isinstance(kernel, Kernel)
    folder = module.__name__.rpartition(".")[2]
    for dispatch in dispatches_in(kernel.body):
        text = built.files[f"wgsl/{folder}/{dispatch.file}"].decode()
        assert kernel.shader(dispatch) == only(text, dispatch.entry)
    assert list(tmp_path.iterdir()) == []


def test_the_same_text_is_compiled_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        modules = [*pool.map(kerngen.compile, [AXPY] * 4)]
    assert all(module is modules[0] for module in modules)
    assert kerngen.compile(AXPY, name="other") is not modules[0]
    assert kerngen.compile(f"// more\n{AXPY}") is not modules[0]


def test_a_name_is_a_name() -> None:
    for name in ("", "if", "a/b", "a-b", "<b>"):
        with pytest.raises(ValueError, match="can't be the name of a module"):
            kerngen.compile(AXPY, name=name)


@pytest.mark.parametrize(
    "used",
    ["lights.kern", "../lights.kern", "deep/lights.kern", "../../a/b/lights.kern"],
)
def test_a_file_takes_along_what_it_uses(
    used: str, tmp_path: Path, ctx: gpu.Context
) -> None:
    file = tmp_path / "dsl" / "scene.kern"
    edit(file, SCENE.format(path=used))
    edit(file.parent / used, LIGHT)
    before = files(tmp_path)
    module = kerngen.load(file)
    assert kerngen.load(str(file)) is module
    light: Any = inspect.unwrap(module.powers).__globals__["Light"]
    tensor = ctx.tensor([light(at=(0, 0, 0), power=p) for p in (1.0, 2.0, 3.0)], light)
    np.testing.assert_array_equal(module.powers(tensor, by=2.0).numpy(), [2, 4, 6])
    assert files(tmp_path) == before

    edit(file.parent / used, f"// changed\n{LIGHT}")
    assert kerngen.load(file) is not module


def test_a_text_may_use_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(tmp_path / "lights.kern", LIGHT)
    monkeypatch.chdir(tmp_path)
    module = kerngen.compile(SCENE.format(path="lights.kern"))
    assert isinstance(module.powers, FunctionType)


def test_what_is_no_kernel_file_is_refused(tmp_path: Path) -> None:
    edit(tmp_path / "a.txt", AXPY)
    with pytest.raises(ValueError, match=r"a\.txt' is not a \.kern file\."):
        kerngen.load(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError):
        kerngen.load(tmp_path / "b.kern")


def test_a_wrong_program_raises_its_report() -> None:
    with pytest.raises(kerngen.CompileError) as caught:
        kerngen.compile(WRONG)
    report = str(caught.value)
    assert report.startswith("error[KG0401]: ")
    assert " --> kernels.kern:1:49" in report
    assert WRONG.strip() in report
    assert [fault.code for fault in caught.value.diagnostics] == ["KG0401"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == report


def test_hostile_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        kerngen.compile("// \ud800")
    for text in ("\0", "\x1b[31m", "kernel " * 500, "\N{RIGHT-TO-LEFT OVERRIDE}"):
        with pytest.raises(kerngen.CompileError) as caught:
            kerngen.compile(text)
        assert {*"\0\x1b\N{RIGHT-TO-LEFT OVERRIDE}"}.isdisjoint(str(caught.value))


def test_a_missing_file_hides_no_other_fault() -> None:
    with pytest.raises(kerngen.CompileError) as caught:
        kerngen.compile(f'use "missing.kern";\n{WRONG}kernel')
    assert len(caught.value.diagnostics) > 1


def test_the_report_is_the_command_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(tmp_path / "wrong.kern", WRONG)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kerngen.CompileError) as caught:
        kerngen.load("wrong.kern")
    assert main(["check", "wrong.kern"], standalone_mode=False) == 1
    assert capsys.readouterr().out.startswith(str(caught.value))


def test_tracebacks_and_help_show_generated_code(ctx: gpu.Context) -> None:
    module = kerngen.compile(AXPY)
    x = ctx.vector([1.0], f32)
    with pytest.raises(gpu.DtypeError) as caught:
        module.axpy(x, x, a="two")
    shown = "".join(traceback.format_exception(caught.value))
    assert "_AXPY.launch(ctx, (x, y), (a,), (out,))" in shown
    assert inspect.getsource(module.axpy).startswith("@_AXPY.function\ndef axpy(")
    assert inspect.getsource(module.AxpyUniform).startswith("@dataclass")
    page = pydoc.plain(pydoc.render_doc(module))
    assert "a x + y." in page
    assert repr(module) == "<module 'kernels' in memory: axpy>"


@pytest.mark.nightly
def test_instances_are_pickled_by_their_source() -> None:
    module = kerngen.compile(AXPY)
    uniform = module.AxpyUniform(n=3, a=0.5)
    data = pickle.dumps(uniform)
    assert pickle.loads(data) == uniform
    program = (
        f"import kerngen, pickle; kerngen.compile({AXPY!r}); "
        f"print(pickle.loads({data!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "AxpyUniform(n=3, a=0.5)\n"


def test_a_module_that_does_not_import_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"// forgotten\n{AXPY}"
    with monkeypatch.context() as patch:
        patch.setattr("kerngen.runtime.abi.ABI", 0)
        before = {*sys.modules}
        with pytest.raises(gpu.AbiError):
            kerngen.compile(text)
        assert {*sys.modules} == before
    assert kerngen.compile(text).axpy


def test_warnings_of_a_program_are_given_once() -> None:
    text = "kernel near(x: f32[n]) -> y: f32[n] { y[i] = x[(i - 1) % n]; }"
    with pytest.warns(
        kerngen.CompileWarning, match=r"(?s)KG0417.*'mod\(i - 1, n\)'"
    ) as given:
        module = kerngen.compile(text, name="near")
    assert [Path(each.filename).name for each in given] == [Path(__file__).name]
    assert kerngen.compile(text, name="near") is module
