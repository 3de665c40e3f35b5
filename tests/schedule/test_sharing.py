"""Shaders that differ in nothing but their kernels are one file, and one pipeline."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kerngen
from kerngen.compiler import compile_text
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
    plan = compile_text(SOURCE, "k.kern").files["wgsl/k/k.plan"].decode()
    _, _, after = plan.partition(f"\nkernel {name} ")
    own, _, _ = after.partition("\n\n")
    return [part.split("(")[0] for part in own.split(" run ")[1:]]


def test_equal_shaders_are_one_file() -> None:
    files = {
        path: data.decode()
        for path, data in compile_text(SOURCE, "k.kern").files.items()
        if path.endswith(".wgsl")
    }
    codes = [text.split("\n\n", 1)[1] for text in files.values()]
    assert len({*codes}) == len(codes)
    assert shaders_of("highest") == shaders_of("largest")
    assert shaders_of("centred")[:4] == shaders_of("largest")
    # A uniform struct with one more member is another one.
    assert not {*shaders_of("scaled")} & {*shaders_of("largest")}
    assert files["wgsl/k/largest.reduce.wgsl"].splitlines()[1:5] == [
        "//     y[i] = max[j] x[i, j];",
        "// Also run for centred, stage y: reduce.",
        "// Also run for highest, stage y: reduce.",
        files["wgsl/k/scaled.reduce.wgsl"].splitlines()[2],
    ]


def test_lengths_of_rows_are_constants_of_one_shader(ctx: Context) -> None:
    """Each has a pipeline of its own, and joins its lanes in the order of before."""
    text = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = sum[j] x[i, j]; }"
    plan = compile_text(text, "f.kern").files["wgsl/f/f.plan"].decode()
    given = re.findall(r"run f.rows.upto\(x, y\*\) \| with LANES = (\d+),", plan)
    assert given == ["4", "8", "32", "128", "256"]
    module = kerngen.compile(text)
    before = internals(ctx).counters.snapshot()
    for number, (lanes, n) in enumerate(zip(map(int, given), RUNGS, strict=True)):
        data = np.random.default_rng(n).normal(size=(70, n)).astype(np.float32)
        found = module.f(ctx.matrix(data, f32)).numpy()
        np.testing.assert_array_equal(found, joined(data, lanes))
        assert (internals(ctx).counters - before).pipelines_created == number + 1


RUNGS = (32, 128, 512, 2048, 4096)
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
