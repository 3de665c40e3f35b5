"""What a user of a notebook sees, in IPython itself."""

from __future__ import annotations

import re
from html import escape

import numpy as np
import pytest

import kerngen
import kerngen.runtime as gpu
import kerngen_kernels.matmul
from kerngen.runtime import f32
from tests.jit.conftest import Notebook

CELL = """%%kern{name}
/// Twice x.
kernel twice(x: f32[n]) -> y: f32[n] {{
    y[i] = 2.0 * {read};
}}
struct Light {{ power: f32 }}
"""


def test_a_cell_offers_its_kernels(notebook: Notebook, ctx: gpu.Context) -> None:
    assert notebook.run(CELL.format(name="", read="x[i]")) is None
    twice = notebook.names["twice"]
    np.testing.assert_array_equal(twice(ctx.vector([1.0, 2.0], f32)).numpy(), [2, 4])
    assert {"twice_reference", "Light"} <= notebook.names.keys()


def test_a_cell_offers_a_module_by_name(notebook: Notebook) -> None:
    assert notebook.run(CELL.format(name=" doubling", read="x[i]")) is None
    assert "twice" not in notebook.names
    module = notebook.names["doubling"]
    assert isinstance(module, kerngen.KernelModule)
    html = notebook.shown(module)["text/html"]
    assert "<b>doubling</b>" in html
    assert "<b>twice</b> Twice x." in html
    assert "<summary>Light</summary>" in html


def test_a_wrong_cell_shows_its_diagnostics_alone(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(
        notebook.run(CELL.format(name="", read="x[j]")), kerngen.CompileError
    )
    out = capsys.readouterr().out
    assert "\x1b[" in out, "in colours"
    text = re.sub(r"\x1b\[[\d;]*m", "", out)
    assert text.startswith("error[KG0401]: ")
    # The line is the cell's, the magic's own among them.
    assert " --> cell.kern:4:20\n" in text
    assert "4 |     y[i] = 2.0 * x[j];" in text
    assert "Traceback" not in text
    assert "twice" not in notebook.names


def test_a_name_that_is_none_is_refused(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(notebook.run(CELL.format(name=" a-b", read="x[i]")), ValueError)
    out = capsys.readouterr().out
    assert out.strip() == "ModuleNameError: 'a-b' can't be the name of a module."


def bare(page: str) -> str:
    """Return a page without what is for its looks."""
    return re.sub(r' style="[^"]*"|</?span[^>]*>', "", page)


def test_kernels_are_shown(notebook: Notebook) -> None:
    """The equation, how it is called, the layout, and the shaders."""
    html = bare(notebook.shown(kerngen_kernels.matmul.matmul_nt)["text/html"])
    assert "c[i, j] = alpha * sum[p] a[i, p] * b[j, p];" in html
    assert "matmul_nt(a: Matrix[f32], b: Matrix[f32], *, " in html
    assert "<td>0</td><td>4</td><td>m: u32</td>" in html
    default = "gemm_stream264"
    assert f"<summary>{default}</summary>" in html
    assert "<summary>gemv when m == 1 or n == 1</summary>" in html
    assert f"<summary>matmul_nt.{default}, PADDED = 0 when k % 16 == 0 and " in html
    assert "@compute @workgroup_size(" in html
    assert len(html) < 110_000
    call = f"print(kerngen.runtime.wgsl(matmul_nt, 'matmul_nt.{default}'))"
    assert f"that are not in this page; to see them:<pre>{escape(call)}" in html
    text = gpu.wgsl(kerngen_kernels.matmul.matmul_nt, f"matmul_nt.{default}")
    assert "@compute @workgroup_size(" in text
    with pytest.raises(gpu.UnknownNameError, match="no shader 'gemm': there"):
        gpu.wgsl(kerngen_kernels.matmul.matmul_nt, "gemm")
    made = kerngen.compile("kernel one(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }")
    html = notebook.shown(made.one)["text/html"]
    assert "@compute @workgroup_size(" in html
    assert "<summary>one.map when n % 4 == 0</summary>" in html


def test_what_is_not_generated_is_shown_as_ever(notebook: Notebook) -> None:
    values = (re.sub, re, gpu, kerngen, kerngen_kernels.matmul.matmul_nt_reference)
    for value in values:
        assert notebook.shown(value).keys() == {"text/plain"}
    assert "text/html" in notebook.shown(kerngen_kernels.matmul)


def test_tensors_are_shown_as_numpy_shows_them(
    notebook: Notebook, ctx: gpu.Context
) -> None:
    rng = np.random.default_rng(0)
    for shape in ((), (0,), (3, 4), (7, 300), (2, 3, 200_000), (600_000,), (9, 70_000)):
        array = rng.normal(size=shape).astype(np.float32)
        html = notebook.shown(ctx.tensor(array))["text/html"]
        assert str(array) in html, shape
        lengths = ", ".join(map(str, shape))
        assert f"<code>f32[{lengths}]</code> on {ctx.adapter_name}" in html


def test_a_tensor_that_cannot_be_read_says_why(notebook: Notebook) -> None:
    with gpu.open(adapter="software") as ctx:
        tensor = ctx.vector([1.0], f32)
    html = notebook.shown(tensor)["text/html"]
    assert "can&#x27;t be read: " in html
