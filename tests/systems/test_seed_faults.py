"""Faults that systems like these have had elsewhere, and that must not be possible here.

A test for each, named after the fault: a struct that the shader reads otherwise, results
that change with the number of rows, work that is skipped or silently detours over the
host, errors that get lost.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.batch import Batch
from kerngen.matmul_cache import Layout, MatmulCache
from kerngen.plan.wgsl import Declarations
from kerngen.runtime import Context, Counters, DeviceLost, Error, f32
from kerngen.train import Trainer
from kerngen_kernels import elementwise, gemv, matmul
from tests.conftest import open_software_context
from tests.project.tree import python_files
from tests.runtime.kernels import internals
from tests.systems.products import check_product, narrow_context

WGSL = Path(gemv.__file__).with_name("wgsl")


def normals(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# ---- products


def test_the_gemv_shaders_read_the_struct_as_it_is_written(ctx: Context) -> None:
    """The fault: `{n, k}` was read where `{m, k, n}` was written."""
    written = [
        (field.name, field.type.__name__, field.offset)
        for field in gemv.GemvUniform.FIELDS
    ]
    files = sorted(WGSL.glob("gemv/gemv.*.wgsl"))
    assert len(files) >= 3
    for file in files:
        (body,) = re.findall(r"struct Uniform \{(.*?)\}", file.read_text(), re.DOTALL)
        members = re.findall(r"(\w+): (\w+),  // offset (\d+)", body)
        assert [(name, kind, int(at)) for name, kind, at in members] == written
    w, x = normals(37, 52), normals(52, seed=1)
    y = gemv.gemv(ctx.matrix(w, f32), ctx.vector(x, f32), alpha=1.0)
    check_product(y.numpy()[None], x[None], w, "37 by 52")


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize(("k", "n"), [(64, 128), (63, 130), (1000, 3)])
def test_a_weight_gives_the_same_for_one_row_and_for_two(
    ctx: Context, k: int, n: int, layout: Layout
) -> None:
    """The fault: its layout was `[n, k]` for one row and `[k, n]` for more."""
    weight, x = normals(n, k), normals(2, k, seed=1)
    cache = MatmulCache(ctx)
    cache.upload_weight("w", weight if layout == "nk" else weight.T, layout)
    for rows in (x[:1], x):
        check_product(cache.matmul("w", rows), rows, weight, f"{len(rows)} rows")
    product = matmul.matmul_nt if layout == "nk" else matmul.matmul_nn
    stored = ctx.matrix(weight if layout == "nk" else weight.T, f32)
    for rows in (x[:1], x):
        result = product(ctx.matrix(rows, f32), stored).numpy()
        check_product(result, rows, weight, f"{len(rows)} rows")


def test_a_weight_above_the_limit_is_split_and_never_skipped() -> None:
    """The fault: it was left out, with a line on stderr."""
    weight, x = normals(300, 100), normals(3, 100, seed=1)
    with narrow_context(16384) as ctx:
        cache = MatmulCache(ctx)
        cache.upload_weight("w", weight)
        assert len(cache.plan(3, 100, 300).parts) > 1
        for rows in (x[:1], x):
            check_product(cache.matmul("w", rows), rows, weight, f"{len(rows)} rows")
        with pytest.raises(gpu.LimitError, match="'large': One row of a weight"):
            cache.upload_weight("large", normals(2, 5000))
        assert cache.weight_names == ("w",)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 6, 7, 9, 255, 257, 1023])
def test_rows_of_any_length_are_multiplied(ctx: Context, k: int) -> None:
    """The fault: GEMV read rows in fours, and nothing checked that k is one."""
    w, x = normals(5, k), normals(1, k, seed=1)
    weight, row = ctx.matrix(w, f32), ctx.matrix(x, f32)
    by_gemv = gemv.gemv(weight, row.reshape(k)).reshape((1, 5))
    for result in (by_gemv, matmul.matmul_nt(row, weight)):
        check_product(result.numpy(), x, w, f"k = {k}")


@pytest.mark.parametrize("layout", get_args(Layout))
@pytest.mark.parametrize("rows", [1, 5])
def test_a_split_product_does_not_visit_the_host(rows: int, layout: Layout) -> None:
    """The fault: what the parts added up to was downloaded and uploaded for each."""
    weight, x = normals(300, 100), normals(rows, 100, seed=1)
    with narrow_context(16384) as ctx:
        cache = MatmulCache(ctx)
        cache.upload_weight("w", weight if layout == "nk" else weight.T, layout)
        assert len(cache.plan(rows, 100, 300, layout).parts) > 1
        tensor = ctx.matrix(x, f32)
        before = ctx.counters.snapshot()
        result = cache.matmul("w", tensor)
        done = ctx.counters - before
        assert (done.readbacks, done.uploads) == (0, 0)
        check_product(result.numpy(), x, weight, layout)


def test_tiles_are_accumulated_in_named_vectors() -> None:
    """The fault: a private array, indexed in loops, is no register on many drivers."""
    texts = [file.read_text("utf-8") for file in WGSL.glob("*/*.gemm*.wgsl")]
    functions = [
        text
        for each in texts
        for name, text in Declarations(each).texts.items()
        if "\n@compute" in text and not name.startswith("finish")
    ]
    assert len(functions) > 40
    for text in functions:
        assert re.search(
            r"^ +var acc_0(_0)?(: vec4f| = vec4f\(0\.0\));$", text, re.MULTILINE
        ), text
        summing = text.rpartition("workgroupBarrier();")[0]  # Later, they are stored.
        assert not re.search(r"var(<private>)? \w+\s*(: |= )array<", summing), text
        assert not re.search(r"\bacc\w*\[", text), text


# ---- dispatches, pipelines, bind groups


@pytest.mark.parametrize("beyond", [0, 1, 4])
def test_elementwise_kernels_go_beyond_65535_workgroups(
    ctx: Context, beyond: int
) -> None:
    """The fault: one dimension of groups of 256 ends at 16,776,960 elements."""
    n = 16_776_960 + beyond
    array = np.full(n, -1, np.float32)
    array[-5:] = [1, 2, 3, 4, 5]
    result = elementwise.relu(ctx.vector(array, f32)).numpy()
    np.testing.assert_array_equal(result[-6:], [0, 1, 2, 3, 4, 5])
    assert result[:-5].max() == 0


def created(done: Counters) -> tuple[int, int, int]:
    return done.buffers_created, done.bind_groups_created, done.pipelines_created


def test_a_call_creates_no_uniform_buffer_and_no_bind_group(ctx: Context) -> None:
    """The fault: both were made anew on every call."""
    x = ctx.vector(normals(100), f32)

    def step(alpha: float) -> None:
        for n in range(50):
            elementwise.scale(x, alpha=alpha + n)
        ctx.submit()

    step(1.0)
    before = ctx.counters.snapshot()
    step(2.0)
    assert created(ctx.counters - before) == (0, 0, 0)


def test_pipelines_are_found_by_the_text_of_the_shader_and_the_device() -> None:
    """The fault: the key was the address of a string, which another one may get."""
    with open_software_context() as first, open_software_context() as second:
        for ctx in (first, second):
            shaders = internals(ctx)._shaders
            compiled = [
                _compiled(
                    shaders,
                    f"// No. {number}\n@compute @workgroup_size({size}) fn main() {{}}",
                )
                for number, size in enumerate((1, 2, 1, 2))
            ]
            assert compiled[0] is compiled[2] is not compiled[1] is compiled[3]
            assert ctx.counters.pipelines_created == 2
            x = ctx.vector([-1.0, 2.0], f32)
            np.testing.assert_array_equal(elementwise.relu(x).numpy(), [0, 2])
            assert ctx.counters.pipelines_created == 3


def _compiled(shaders: Any, text: str) -> Any:
    key = import_module("kerngen.runtime.device.shaders").ShaderKey.of(
        text, "main", 0, ()
    )
    return shaders.compile(key, text, "")


# ---- errors


def test_no_error_is_dropped() -> None:
    """The fault: results of waiting for the device were thrown away, by `.ok()`."""
    parts = ("runtime", "batch", "matmul_cache", "nn", "train")
    files = [file for part in parts for file in python_files(f"kerngen/{part}")]
    assert len(files) > 50
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, file
                silent = all(isinstance(each, ast.Pass) for each in node.body)
                assert not silent, f"{file}:{node.lineno}"
            assert not (isinstance(node, ast.Name) and node.id == "suppress"), file


def test_errors_have_classes_and_one_root(ctx: Context) -> None:
    """The fault: errors were strings, or ended the process."""
    batch = Batch(ctx)
    x = batch.upload(np.ones(3))
    wrong: list[Any] = [
        lambda: batch.read(x),
        lambda: batch.add(x, batch.upload(np.ones(4))),
        lambda: MatmulCache(ctx).matmul("none", np.ones(3)),
        lambda: elementwise.add(ctx.zeros(3, f32), ctx.zeros(4, f32)),
        lambda: ctx.vector(np.ones(3, np.complex64), f32),
    ]
    for call in wrong:
        with pytest.raises(Error) as caught:
            call()
        assert type(caught.value) is not Error


def test_a_lost_device_is_an_error_of_the_call_that_waits() -> None:
    with open_software_context() as ctx:
        batch = Batch(ctx)
        y = batch.relu(batch.upload(np.ones(3)))
        batch.execute()
        ctx.device.destroy()
        with pytest.raises(DeviceLost):
            batch.read(y)


# ---- training


def adamw(values: NDArray[np.float64], gradients: list[NDArray[Any]]) -> Any:
    """AdamW's equations in float64, with its usual settings."""
    m, v = np.zeros_like(values), np.zeros_like(values)
    for step, gradient in enumerate(gradients, start=1):
        values = values * (1 - 0.1 * 0.01)
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        root = np.sqrt(v / (1 - 0.999**step)) + 1e-8
        values = values - 0.1 * m / (1 - 0.9**step) / root
    return values


def test_several_parameters_have_one_count_of_steps(ctx: Context) -> None:
    """The fault: every parameter's update counted as a step of its own."""
    initial = {name: normals(7, seed=seed) for seed, name in enumerate("abc")}
    trainer = Trainer(ctx, initial)
    steps = [
        {name: normals(7, seed=10 * step + ord(name)) for name in "abc"}
        for step in range(3)
    ]
    for count, gradients in enumerate(steps, start=1):
        for name, gradient in gradients.items():
            trainer.gradients[name].copy_from(gradient)
        trainer.adamw_step(lr=0.1)
        assert trainer.step_count == count
    for name, values in initial.items():
        exact = adamw(values.astype(np.float64), [step[name] for step in steps])
        result = trainer.tensors[name].numpy()
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-6)


def test_clipping_reads_nothing_back(ctx: Context) -> None:
    """The fault: the gradient was downloaded to sum its squares."""
    trainer = Trainer(ctx, {"a": np.zeros(5), "b": np.zeros((2, 3))})
    gradients = {"a": normals(5), "b": normals(2, 3, seed=1)}
    for name, gradient in gradients.items():
        trainer.gradients[name].copy_from(gradient)
    before = ctx.counters.snapshot()
    norm = trainer.clip_gradients(0.5)
    done = ctx.counters - before
    assert (done.readbacks, done.uploads, done.submits) == (0, 0, 0)
    exact = np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients.values()))
    assert norm.item() == pytest.approx(exact, rel=1e-6)
    for name, gradient in gradients.items():
        clipped = trainer.gradients[name].numpy()
        np.testing.assert_allclose(clipped, gradient * 0.5 / exact, rtol=1e-5)


def test_gradients_of_a_product_transpose_and_download_nothing(ctx: Context) -> None:
    """The fault: operands were transposed on the host, through full downloads."""
    a, b, grad = normals(3, 4), normals(4, 5, seed=1), normals(3, 5, seed=2)
    trainer = Trainer(ctx, {"b": b})
    tensors = [ctx.matrix(array, f32) for array in (a, b, grad)]
    before = ctx.counters.snapshot()
    grad_a, grad_b = trainer.matmul_backward(*tensors)
    done = ctx.counters - before
    assert (done.calls, done.copies, done.readbacks, done.uploads) == (2, 0, 0, 0)
    check_product(grad_a.numpy(), grad, b, "by a")
    check_product(grad_b.numpy(), a.T, grad.T, "by b")
