"""Axes that lie side by side are one axis of a product, and nothing else is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kerngen.compiler import compile_text
from kerngen.ir.staging.stages import Stage
from kerngen.runtime import Context, f32
from kerngen.schedule.merged_axes import with_merged_axes
from kerngen.source.diagnostic import CompileError
from tests.compile import built, built_module
from tests.language.cases import Inputs

MERGED = {
    "sp,phd->shd": ("s hd", "p"),
    "shd,hdp->sp": ("s p", "hd"),
    "bsp,pd->bsd": ("bs d", "p"),
    "bspq,pqhd->bshd": ("bs hd", "pq"),
    "oc,bcij->boij": ("b o ij", "c"),
    "boij,bcij->oc": ("o c", "b ij"),
    "ocij,bcij->bo": ("b o", "cij"),
    "bhid,bhjd->bhij": ("b h i j", "d"),
    "sp,phd->hsd": ("h s d", "p"),
    "sp,pdh->shd": ("s h d", "p"),
    "shd,dhp->sp": ("s p", "h d"),
}
"""Einsums, each with the indices of the result and of the sum once axes are merged."""

LENGTHS = (
    {
        "s": 33,
        "p": 20,
        "q": 4,
        "h": 4,
        "d": 8,
        "b": 3,
        "o": 17,
        "c": 24,
        "i": 6,
        "j": 10,
    },
    {"s": 5, "p": 7, "q": 3, "h": 3, "d": 5, "b": 2, "o": 9, "c": 6, "i": 7, "j": 1},
    {
        "s": 1,
        "p": 16,
        "q": 4,
        "h": 2,
        "d": 64,
        "b": 1,
        "o": 128,
        "c": 32,
        "i": 12,
        "j": 4,
    },
    {"s": 4, "p": 0, "q": 4, "h": 2, "d": 2, "b": 2, "o": 4, "c": 0, "i": 2, "j": 2},
)


def source(einsum: str, schedule: str = "") -> str:
    """A kernel for an einsum: index `ii` is over dim `i`, and so on."""
    left, right, result = einsum.replace("->", ",").split(",")
    over = [axis for axis in dict.fromkeys(left + right) if axis not in result]
    x, w, y = (", ".join(axis * 2 for axis in axes) for axes in (left, right, result))
    dims = (", ".join(axes) for axes in (left, right, result))
    tensors = "x: f32[{}], w: f32[{}]) -> y: f32[{}".format(*dims)
    indices = ", ".join(axis * 2 for axis in over)
    text = f"kernel f({tensors}] {{ y[{y}] = sum[{indices}] x[{x}] * w[{w}]; }}"
    return f"{text} schedule f {{ {schedule} }}" if schedule else text


def stage_of(text: str) -> Stage:
    (program,) = compile_text(text, "s.kern").programs
    (stage,) = program.staged.stages
    return stage


@pytest.mark.parametrize(("einsum", "merged"), MERGED.items())
def test_neighbours_of_one_side_are_merged(
    einsum: str, merged: tuple[str, str]
) -> None:
    stage = with_merged_axes(stage_of(source(einsum)), ())
    assert stage.reduction is not None
    found = stage.domain, stage.reduction.indices
    for indices, names in zip(found, merged, strict=True):
        wanted = ["_".join(axis * 2 for axis in name) for name in names.split()]
        assert [index.name for index in indices] == wanted


@pytest.mark.parametrize(
    "schedule",
    ["", pytest.param("gemm tile(16, 32, 16) micro(4, 4)", marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("einsum", MERGED)
def test_results_are_those_of_numpy(ctx: Context, einsum: str, schedule: str) -> None:
    inputs = einsum.partition("->")[0].split(",")
    with built(source(einsum, schedule)) as (kernel,):
        for lengths in LENGTHS:
            draw = Inputs(7)
            arrays = [draw.f32(*(lengths[axis] for axis in axes)) for axes in inputs]
            tensors = tuple(ctx.tensor(array, f32) for array in arrays)
            (y,) = kernel.launch(ctx, tensors, (), (None,))
            # Small integers: sums are exact in any order.
            np.testing.assert_array_equal(y.numpy(), np.einsum(einsum, *arrays))


OTHER_USES = {
    "f32(g) * sum[q] x[i, q] * w[q, g, j]": "sp,phd,h->shd",
    "z[i, g] * sum[q] x[i, q] * w[q, g, j]": "sp,phd,sh->shd",
    "sum[q] x[i, q] * w[q, h - 1 - g, j]": "sp,phd->shd",
    "sum[q] x[i, q] * if g > 0 { w[q, g, j] } else { 0.0 }": "sp,phd,h->shd",
}
"""Values that read the index g otherwise than beside j, with einsums for their results."""


@pytest.mark.parametrize(("value", "einsum"), OTHER_USES.items())
def test_an_index_with_another_use_is_kept(
    ctx: Context, value: str, einsum: str
) -> None:
    text = (
        "kernel f(x: f32[s, p], w: f32[p, h, d], z: f32[s, h]) -> y: f32[s, h, d] "
        f"{{ y[i, g, j] = {value}; }}"
    )
    stage = stage_of(text)
    assert with_merged_axes(stage, ()) == stage
    draw = Inputs(3)
    x, w, z = draw.f32(40, 20), draw.f32(20, 3, 32), draw.f32(40, 3)
    heads = np.arange(3.0)
    factors = {
        "f": (x, w, heads),
        "z": (x, w, z),
        "h": (x, w[:, ::-1]),
        "g": (x, w, heads > 0),
    }[next(key for key in ("f32", "z[", "h -", "g > 0") if key in value)[0]]
    with built(text) as (kernel,):
        tensors = tuple(ctx.tensor(array, f32) for array in (x, w, z))
        (y,) = kernel.launch(ctx, tensors, (), (None,))
        np.testing.assert_array_equal(y.numpy(), np.einsum(einsum, *factors))


def test_axes_of_what_other_stages_read_are_kept(ctx: Context) -> None:
    text = (
        "kernel f(x: f32[s, p], w: f32[p, h, d]) -> y: f32[s, h, d], z: f32[s, h] {"
        " let a[i, g, j] = sum[q] x[i, q] * w[q, g, j];"
        " y[i, g, j] = sum[q] x[i, q] * w[q, g, j];"
        " z[i, g] = max[j] a[i, g, j]; }"
    )
    (program,) = compile_text(text, "s.kern").programs
    merged = {
        stage.name: len(with_merged_axes(stage, program.staged.stages).domain)
        for stage in program.staged.stages
    }
    assert merged["a"] == 3
    draw = Inputs(3)
    x, w = draw.f32(40, 20), draw.f32(20, 3, 32)
    wanted = np.einsum("sp,phd->shd", x, w)
    with built(text) as (kernel,):
        inputs = (ctx.tensor(x, f32), ctx.tensor(w, f32))
        y, z = kernel.launch(ctx, inputs, (), (None, None))
        np.testing.assert_array_equal(y.numpy(), wanted)
        np.testing.assert_array_equal(z.numpy(), wanted.max(2))


@pytest.mark.parametrize(
    ("renamed", "to"),
    [("q", "g_j"), ("i", "g_j"), ("y", "g_j"), ("w", "g_j"), ("z", "g_j")],
)
def test_a_merged_index_has_a_name_of_its_own(
    ctx: Context, renamed: str, to: str
) -> None:
    text = (
        "kernel f(x: f32[s, p], w: f32[p, h, d], z: f32[h, d]) -> y: f32[s, h, d] "
        "{ y[i, g, j] = z[g, j] + sum[q] x[i, q] * w[q, g, j]; }"
    )
    text = re.sub(rf"\b{renamed}\b", to, text)
    for s, p, h, d in ((1, 7, 3, 5), (33, 16, 4, 8)):
        draw = Inputs(3)
        x, w, z = draw.f32(s, p), draw.f32(p, h, d), draw.f32(h, d)
        with built(text) as (kernel,):
            tensors = tuple(ctx.tensor(array, f32) for array in (x, w, z))
            (y,) = kernel.launch(ctx, tensors, (), (None,))
            wanted = z + np.einsum("sp,phd->shd", x, w)
            np.testing.assert_array_equal(y.numpy(), wanted)


def test_axes_of_results_within_elements_are_kept(ctx: Context) -> None:
    text = (
        "struct A { v: f32[3], } kernel f(x: f32[s, p], w: f32[p, h, d, 3]) "
        "-> y: A[s, h, d] { y[i, g, j].v[k] = sum[q] x[i, q] * w[q, g, j, k]; }"
    )
    draw = Inputs(3)
    x, w = draw.f32(40, 20), draw.f32(20, 3, 8, 3)
    with built(text) as (kernel,):
        inputs = (ctx.tensor(x, f32), ctx.tensor(w, f32))
        (y,) = kernel.launch(ctx, inputs, (), (None,))
        wanted = np.einsum("sp,phdk->shdk", x, w)
        np.testing.assert_array_equal(y.numpy()["v"], wanted)


def test_reasons_are_those_for_which_a_schedule_is_refused() -> None:
    text = source("sp,phd->shd")
    (program,) = compile_text(text, "s.kern").programs
    with pytest.raises(CompileError) as refused:
        compile_text(f"{text} schedule f {{ rows }}", "s.kern")
    reason = dict(program.find_others(0))["rows"]
    assert reason in str(refused.value)


PARTS = """
struct Gains { each: f32[3] }
kernel of_vectors(x: f32[n], g: f32[n, m, 3, 2]) -> z: f32[3, n] {
    let v[k, i] = mat3x2f(
        g[k, i, 0, 0], g[k, i, 0, 1], g[k, i, 1, 0], g[k, i, 1, 1], g[k, i, 2, 0], g[k, i, 2, 1]
    );
    z[l, k] = min[i < m] v[k, i][l].y * x[k];
}
kernel of_structs(x: f32[n, m], d: Gains) -> z: f32[3, n] {
    z[l, k] = sum[i] x[k, i] * d.each[l];
}
"""


def test_an_index_into_a_value_is_no_factor(ctx: Context) -> None:
    """A subscript stays one where parts of a term that depend on a row are taken out."""
    draw = Inputs(3)
    x, g, w = draw.f32(4), draw.f32(4, 5, 3, 2), draw.f32(4, 5)
    with built_module(PARTS) as module:
        of_vectors = module.of_vectors(ctx.tensor(x), ctx.tensor(g)).numpy()
        gains = module.Gains(each=(1.0, 2.0, 3.0))
        of_structs = module.of_structs(ctx.tensor(w), d=gains).numpy()
    expected = (g[..., 1] * x[:, None, None]).min(1).T
    np.testing.assert_array_equal(of_vectors, expected)
    np.testing.assert_array_equal(of_structs, np.outer([1, 2, 3], w.sum(1)))
