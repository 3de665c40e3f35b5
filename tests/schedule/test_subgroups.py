"""Lanes that share a row, as many as are asked for, and that join by subgroups."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.plan.adapter import AdapterInfo
from kerngen.plan.hostmath import ceil_div
from kerngen.plan.tree import choices_in
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.shaders import SUBGROUPS, ShaderCache, ShaderKey
from kerngen.schedule.rows.strategy import row_options, shapes
from kerngen.source.diagnostic import CompileError
from kerngen_kernels.softmax import softmax
from tests.budget import sampled
from tests.compile import built

from .rows import CASES, check

SUM = "kernel f(x: f32[n]) -> s: f32[] { s = sum[i] x[i]; }"
JOINED = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = sum[j] x[i, j]; }"
LENGTHS = (1, 3, 5, 63, 64, 65, 255, 257, 260, 1023, 1024, 1028, 4099)
SHORT_OF = (8188, 16384, 16388, 16389)
"""Around the longest row that 256 lanes hold."""


def shaders(kernel: Kernel) -> dict[str, str]:
    """The texts of a kernel's shaders by the names of their files."""
    folder = kernel.folder
    assert isinstance(folder, Path)
    return {file.name: file.read_text("utf-8") for file in folder.glob("*.wgsl")}


@pytest.mark.parametrize(
    ("name", "options"),
    sampled(
        product(
            ("a maximum, then a sum, then every element", "rows of two axes"),
            (
                "lanes(4)",
                "lanes(64) subgroups(1)",
                "lanes(256) subgroups(1)",
                "subgroups(1)",
            ),
        ),
        3,
        "-".join,
    ),
)
def test_so_many_lanes_share_a_row(ctx: gpu.Context, name: str, options: str) -> None:
    case = CASES[name]
    with built(f"{case.text}\nschedule f {{ rows {options} }}") as (kernel,):
        assert ("subgroupAdd" in "".join(shaders(kernel).values())) == (
            "subgroups" in options
        )
        for n in LENGTHS:
            check(ctx, case, kernel, 3, n)


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("a maximum, then a sum, then every element", 1),
        ("two trailing axes", 6),
    ],
)
def test_long_rows_are_held_by_many_lanes(
    ctx: gpu.Context, name: str, last: int
) -> None:
    """Rows of `last` times as many elements as their first axis is long."""
    case = CASES[name]
    with built(case.text) as (kernel,):
        for n in (*SHORT_OF, 8193, 16_383, 16_385, 32_767, 32_768, 40_004, 40_005):
            check(ctx, case, kernel, 2, ceil_div(n, last))


@pytest.mark.parametrize(
    ("n", "shader"),
    [
        (2047, "rows:edge_upto"),
        (2049, "rows:edge_long"),
        (8191, "rows:edge_long"),
        (8193, "rows_lanes512:edge_upto16384"),
        (16_383, "rows_lanes512:edge_upto16384"),
        (16_384, "rows:upto16384"),
        (16_385, "rows_lanes1024_subgroups1:edge_upto32768"),
        (32_769, "rows_lanes1024_subgroups1:edge"),
    ],
)
def test_rows_of_any_length_are_held_if_lanes_are_enough(
    ctx: gpu.Context, n: int, shader: str
) -> None:
    (choice,) = ctx.choices(softmax, m=100, n=n)
    assert choice.shaders == (f"softmax.{shader}",)


@pytest.mark.parametrize(
    ("held", "longest"), [(1, 8192), (2, 8192), (3, 4096), (4, 4096), (5, 2048)]
)
def test_lanes_hold_no_more_numbers_than_they_have_room_for(
    held: int, longest: int
) -> None:
    options = row_options({})
    lengths = [x.most or 0 for x in shapes(options, held, 2) if x.width == 1]
    assert max(lengths) == longest
    assert max(x.most or 0 for x in shapes(options, held, 1) if x.width == 1) == 2048


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_parts_are_joined_by_subgroups(ctx: gpu.Context, kind: str) -> None:
    text = SUM.replace("sum[", f"{kind}[")
    with built(f"{text}\nschedule f {{ reduce subgroups(1) }}") as (kernel,):
        for n in (1, 3, 5, 255, 256, 1025, 4096, 20_003, 300_000):
            x = np.where(np.arange(n) % 20_011 == n // 2, 2.0, 1.0).astype(np.float32)
            x[-1] = -3.0
            (s,) = kernel.launch(ctx, (ctx.tensor(x),), (), (None,))
            assert s.item() == getattr(np, kind)(x)


def test_vectors_are_joined_by_subgroups(ctx: gpu.Context) -> None:
    text = "kernel f(x: vec3f[n]) -> s: vec3f[] { s = sum[i] x[i]; }"
    with built(f"{text}\nschedule f {{ reduce subgroups(1) }}") as (kernel,):
        x = np.arange(3 * 1000, dtype=np.float32).reshape(1000, 3) % 11
        (s,) = kernel.launch(ctx, (ctx.tensor(x, gpu.vec3f),), (), (None,))
        np.testing.assert_array_equal(s.numpy(), x.sum(0))


def test_shaders_with_subgroups_enable_them() -> None:
    text = JOINED.replace("x: f32", "x: f16")
    with built(f"{text}\nschedule f {{ rows subgroups(1) }}") as (kernel,):
        for shader in shaders(kernel).values():
            lines = shader.splitlines()
            assert ("enable f16;" in lines) == ("f16" in shader)
            assert (SUBGROUPS in lines) == ("subgroup_size" in shader)


def test_a_naga_that_accepts_the_line_is_given_it() -> None:
    device = Mock()
    text = f"// A shader.\n{SUBGROUPS}\n"
    ShaderCache(device, Counters()).compile(
        ShaderKey.of(text, "main", 0, ()), text, "f"
    )
    device.create_shader_module.assert_called_with(label="f", code=text)


def test_the_same_bits_each_time(ctx: gpu.Context) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5000), dtype=np.float32)
    with built(f"{JOINED}\nschedule f {{ rows subgroups(1) }}") as (kernel,):
        found = {
            kernel.launch(ctx, (ctx.tensor(x),), (), (None,))[0].numpy().tobytes()
            for _ in range(5)
        }
    assert len(found) == 1


def test_adapters_without_subgroups_pass_them_over() -> None:
    with built(f"{JOINED}\nschedule f {{ rows subgroups(1) }}") as (kernel,):
        choice = next(choices_in(kernel.body))
        asked, *others = choice.cases
        full = AdapterInfo(16384, 1024, subgroups=True, f16=False)
        assert asked.needs.subgroups
        assert full.offers(asked.needs)
        without = AdapterInfo(16384, 1024, subgroups=False, f16=False)
        assert not without.offers(asked.needs)
        assert others
        assert not any(case.needs.subgroups for case in others)


@pytest.mark.parametrize(
    ("text", "schedule", "reason"),
    [
        (JOINED, "rows lanes(12)", "12 lanes are not a power of two"),
        (
            JOINED.replace("y: f32[m] { y[i] = sum[j]", "y: f32[n] { y[j] = sum[i]"),
            "reduce subgroups(1)",
            "neighbouring lanes have different columns",
        ),
        (
            "kernel f(x: mat2x2f[n]) -> s: mat2x2f[] { s = sum[i] x[i]; }",
            "reduce subgroups(1)",
            "no subgroup joins matrices",
        ),
    ],
)
def test_what_suits_no_subgroup(text: str, schedule: str, reason: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(f"{text}\nschedule f {{ {schedule} }}", "f.kern")
    (fault,) = caught.value.diagnostics
    assert fault.code == "KG0751"
    assert reason in fault.label
