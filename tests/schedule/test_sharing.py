"""Shaders of a schedule are one file; those of equal code are one pipeline."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kerngen
from kerngen.compiler import compile_text
from kerngen.plan.read import read_plan
from kerngen.plan.tree import dispatches_in
from kerngen.plan.wgsl import only
from kerngen.runtime import Context, f32
from tests.runtime.kernels import internals

SOURCE = """
    kernel largest(x: f32[m, n]) -> y: f32[m] { y[i] = max[j] x[i, j]; }
    kernel centred(x: f32[m, n]) -> z: f32[m, n] {
        let y[i] = max[j] x[i, j];
        z[i, j] = x[i, j] - y[i];
    }
    kernel highest(x: f32[m, n]) -> y: f32[m] { y[i] = max[j] x[i, j]; }
    kernel scaled(x: f32[m, n], a: f32) -> y: f32[m] { y[i] = max[j] x[i, j]; }
    schedule largest { reduce }
    schedule centred.y { reduce }
    schedule highest { reduce }
    schedule scaled { reduce }
"""


def shaders_of(name: str) -> list[str]:
    """The files that a kernel's plan runs, in the plan's order."""
    files = compile_text(SOURCE, "k.kern").files
    plan = read_plan(files["wgsl/k/k.plan"].decode())
    (own,) = (kernel for kernel in plan.kernels if kernel.name == name)
    return [each.wgsl for each in dispatches_in(own.body)]


def test_equal_shaders_are_one_entry_point() -> None:
    files = {
        path: data.decode()
        for path, data in compile_text(SOURCE, "k.kern").files.items()
        if path.endswith(".wgsl")
    }
    assert shaders_of("highest") == shaders_of("largest")
    assert shaders_of("centred")[:3] == shaders_of("largest")
    # A uniform struct with one more member is another one.
    assert not {*shaders_of("scaled")} & {*shaders_of("largest")}
    text = files["wgsl/k/largest.reduce.wgsl"]
    assert text.splitlines()[:3] == [
        "// largest, stage y: reduce.",
        "//     y[i] = max[j] x[i, j];",
        files["wgsl/k/scaled.reduce.wgsl"].splitlines()[2],
    ]
    assert text.count("// Also run for highest, stage y: reduce.\n@compute") == 3


def test_entry_points_share_what_is_equal() -> None:
    text = compile_text(SOURCE, "k.kern").files["wgsl/k/largest.reduce.wgsl"].decode()
    assert re.findall(r"^fn (\w+)\(\n", text, re.MULTILINE) == [
        "main",
        "finish",
        "edge",
    ]
    for line in (
        "struct Uniform {",
        "fn row_max(",
        "fn max_rank4(",
        "x: array<vec4f>;",
    ):
        assert text.count(line) == 1
    bindings = re.findall(r"@binding\((\d)\) var<[\w, ]+> (\w+)", text)
    assert bindings == [
        *(("0", "u"), ("1", "x"), ("2", "parts")),
        *(("1", "y"), ("2", "parts_finish")),
        ("1", "x_edge"),
    ]


def test_an_entry_point_is_compiled_without_the_others() -> None:
    """On the lines that it has in the file, which messages of naga name."""
    text = compile_text(SOURCE, "k.kern").files["wgsl/k/largest.reduce.wgsl"].decode()
    part = only(text, "edge")
    assert re.findall(r"\bfn (\w+)", part) == ["row_max", "max_rank", "edge"]
    pairs = zip(text.splitlines(), part.splitlines(), strict=True)
    assert all(line in {full, ""} for full, line in pairs)
    assert only(text, "upto") == text
    assert only(text, "row_max") == text


NAMES = """
    kernel f(edge: f32[n], compute: f32[n], u: f32[n], x: f32[n], main: f32) -> y: f32[n] {
        y[i] = edge[i] * compute[i] + u[i] + x[i] * main;
    }
"""


def test_names_of_entry_points_are_no_tensors(ctx: Context) -> None:
    module = kerngen.compile(NAMES)
    for n in (8, 7):
        data = np.random.default_rng(n).normal(size=(4, n)).astype(np.float32)
        found = module.f(*(ctx.vector(each, f32) for each in data), main=3.0).numpy()
        a, b, c, d = data.astype(float)
        np.testing.assert_allclose(found, a * b + c + d * 3, rtol=1e-5, atol=1e-5)


def test_lengths_of_rows_are_constants_of_one_shader(ctx: Context) -> None:
    """Each has a pipeline of its own, and joins its lanes in the order of before."""
    text = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = sum[j] x[i, j]; }"
    plan = compile_text(text, "f.kern").files["wgsl/f/f.plan"].decode()
    given = re.findall(r"run f.rows.upto\(x, y\*\) \| with LANES = (\d+),", plan)
    assert given == ["2", "4", "8", "32", "128", "256"]
    module = kerngen.compile(text)
    before = internals(ctx).counters.snapshot()
    for number, (lanes, n) in enumerate(zip(map(int, given), RUNGS, strict=True)):
        data = np.random.default_rng(n).normal(size=(70, n)).astype(np.float32)
        found = module.f(ctx.matrix(data, f32)).numpy()
        np.testing.assert_array_equal(found, joined(data, lanes))
        assert (internals(ctx).counters - before).pipelines_created == number + 1


RUNGS = (16, 32, 128, 512, 2048, 4096)
"""The longest rows of each pipeline."""


def joined(rows: NDArray[np.float32], lanes: int) -> NDArray[Any]:
    """The sums of rows as lanes with vectors of four add them up, step by step."""
    vectors = rows.reshape(len(rows), -1, lanes, 4)
    parts = np.zeros((len(rows), lanes, 4), np.float32)
    for held in range(vectors.shape[1]):
        parts += vectors[:, held]
    each = (parts[..., 0] + parts[..., 1]) + (parts[..., 2] + parts[..., 3])
    while each.shape[1] > 4:
        a, b, c, d = np.split(each, 4, axis=1)
        each = (a + b) + (c + d)
    while each.shape[1] > 1:
        each = each[:, ::2] + each[:, 1::2]
    return each[:, 0]


def test_kernels_of_one_file_share_a_pipeline(ctx: Context) -> None:
    module = kerngen.compile(SOURCE)
    data = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    x = ctx.matrix(data, f32)
    np.testing.assert_array_equal(module.largest(x).numpy(), data.max(1))
    before = internals(ctx).counters.snapshot()
    np.testing.assert_array_equal(module.highest(x).numpy(), data.max(1))
    assert (internals(ctx).counters - before).pipelines_created == 0
    np.testing.assert_array_equal(module.scaled(x, a=1.0).numpy(), data.max(1))
    assert (internals(ctx).counters - before).pipelines_created == 2
