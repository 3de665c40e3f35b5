"""Strategy `fold`: states of a recurrence that are reduced, and not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError
from kerngen.verify.ways import ways
from tests.budget import several
from tests.compile import built

Array = NDArray[Any]
SUMS = """
kernel sums(a: f32[d, s], x: f32[b, m, d], c: f32[s, m], w: f32[d]) -> y: f32[m, b, d] {
    let h[n, t, i, k] =
        (if t > 0 { a[i, k] * h[n, t - 1, i, k] } else { 0.0 })
        + (if t > 1 { 0.25 * h[n, t - 2, i, k] } else { 2.0 }) + x[n, t, i];
    y[t, n, i] = w[i] * (KIND[k when k != 1] c[k, t] * h[n, t, i, k]) + 1.0;
}
"""
BACK = """
kernel back(a: f32[d, s], x: f32[m]) -> y: f32[m] {
    let h[i, k, t] = if t < m - 1 { a[i, k] * h[i, k, t + 1] + x[t] } else { x[t] };
    let most[i, t] = max[k] h[i, k, t];
    y[t] = sum[i] most[i, t];
}
"""
READS = """
kernel reads(
    x: f16[b, m, d], a: f32[d, s], g: f32[b, m], u: f32[b, m, s], e: f32[m, d, s], w: f32[b, m, s],
) -> y: f32[b, m, d] {
    let h[n, t, i, k] =
        (if t > 0 { a[i, k] * g[n, t - 1] * h[n, t - 1, i, k] } else { 0.0 })
        + g[n, t] * x[n, t, i] * u[n, t, k] + e[t, i, k];
    y[n, t, i] = sum[k] h[n, t, i, k] * w[n, t, k];
}
"""
SIZES = (1, 4, 5, 12, 16, 17, 64, 130)
"""Lanes for each number of states, and more states than lanes."""


def states(a: Array, x: Array) -> Array:
    """Return h[n, t, i, k] in float64."""
    b, m, _ = x.shape
    h = np.zeros((b, m, *a.shape))
    for t in range(m):
        h[:, t] = x[:, t, :, None]
        h[:, t] += a * h[:, t - 1] if t > 0 else 0
        h[:, t] += 0.25 * h[:, t - 2] if t > 1 else 2
    return h


@pytest.mark.parametrize(
    "kind", ["sum", pytest.param("max", marks=pytest.mark.nightly)]
)
def test_every_number_of_states(ctx: gpu.Context, kind: str) -> None:
    with built(SUMS.replace("KIND", kind) + "schedule sums { fold }") as (sums,):
        for s in several(SIZES, by_day=4):
            for b, m, d in ((2, 9, 3), (1, 1, 40), (1, 0, 2)):
                random = np.random.default_rng(s)
                shapes = (d, s), (b, m, d), (s, m), (d,)
                given = [random.uniform(-1, 1, z).astype(np.float32) for z in shapes]
                (y,) = sums.launch(ctx, (*map(ctx.tensor, given),), (), (None,))
                a, x, c, w = (each.astype(np.float64) for each in given)
                terms = states(a, x) * c.T[:, None]
                terms[..., 1:2] = 0 if kind == "sum" else -np.inf
                found = getattr(np, kind)(terms, axis=-1)
                wanted = (w * found).swapaxes(0, 1) + 1
                np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_every_shader_writes_sums_of_nothing(ctx: gpu.Context) -> None:
    """Those too that are not chosen where there are no states."""
    with built(SUMS.replace("KIND", "sum") + "schedule sums { fold }") as (sums,):
        shapes = (3, 0), (2, 5, 3), (0, 5), (3,)
        given = tuple(ctx.tensor(np.ones(z, np.float32)) for z in shapes)
        for way in ways(sums):
            out = ctx.tensor(np.full((5, 2, 3), 7, np.float32))
            (y,) = way.kernel.launch(ctx, given, (), (out,))
            np.testing.assert_array_equal(y.numpy(), np.ones((5, 2, 3)), str(way))


@pytest.mark.parametrize(
    ("variant", "sizes"),
    [
        # By day these two are held in tests/numeric/test_guards.py.
        pytest.param("fours4_aligned", (2, 37, 32, 16), marks=pytest.mark.nightly),
        pytest.param("fours4", (2, 18, 33, 12), marks=pytest.mark.nightly),
        ("fours16_aligned", (3, 9, 8, 20)),
        ("lanes16", (2, 17, 3, 9)),
    ],
)
def test_reads_by_what_they_depend_on(
    ctx: gpu.Context, variant: str, sizes: tuple[int, int, int, int]
) -> None:
    """Elements, states, both, none; shared by a workgroup's elements, and of f16."""
    b, m, d, s = sizes
    random = np.random.default_rng(1)
    shapes = (b, m, d), (d, s), (b, m), (b, m, s), (m, d, s), (b, m, s)
    x, a, g, u, e, w = (random.uniform(-1, 1, z).astype(np.float32) for z in shapes)
    x = x.astype(np.float16)
    with built(READS) as (reads,):
        (choice,) = ctx.backend.choices(reads, {"b": b, "m": m, "d": d, "s": s})
        given = (ctx.tensor(x, gpu.f16), *map(ctx.tensor, (a, g, u, e, w)))
        (y,) = reads.launch(ctx, given, (), (None,))
    assert choice.shaders == (f"reads.fold:{variant}",)
    h, wanted = np.zeros((b, d, s)), np.zeros((b, m, d))
    for t in range(m):
        h *= a * g[:, t - 1, None, None] if t else 0.0
        h += (g[:, t, None] * x[:, t].astype(float))[..., None] * u[:, t, None]
        h += e[t]
        wanted[:, t] = (h * w[:, t, None]).sum(-1)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_from_the_end(ctx: gpu.Context) -> None:
    with built(BACK) as (back,):
        a, x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 5)).astype(np.float32)
        x = x.ravel()[:13].copy()
        (y,) = back.launch(ctx, (ctx.tensor(a), ctx.tensor(x)), (), (None,))
        h, wanted = np.zeros((3, 5)), np.zeros(13)
        for t in reversed(range(13)):
            h = a * h + x[t]
            wanted[t] = h.max(1).sum()
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5)


CONDITIONS: dict[str, Callable[[int], bool]] = {
    "t * 1000000000 > 0": lambda t: (t * 10**9 + 2**31) % 2**32 > 2**31,
    "t + 2147483647 > 0": lambda t: t == 0,
    "not (t < 2)": lambda t: t >= 2,
    "m - t < m": lambda t: t > 0,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_that_wrap_are_not_left_out(
    ctx: gpu.Context, condition: str
) -> None:
    inner = f"if {condition} {{ a[k] * h[t - 1, k] + x[t] }} else {{ 0.25 }}"
    text = f"""
    kernel wraps(a: f32[s], x: f32[m]) -> y: f32[m] {{
        let h[t, k] = if t > 0 {{ {inner} }} else {{ 1.0 }};
        y[t] = sum[k] h[t, k];
    }}
    schedule wraps {{ fold }}
    """
    a, x = np.linspace(-0.9, 0.9, 8, dtype=np.float32), np.ones(10, np.float32)
    with built(text) as (wraps,):
        (y,) = wraps.launch(ctx, (ctx.tensor(a), ctx.tensor(x)), (), (None,))
        h, wanted = np.ones(8), np.full(10, 8.0)
        for t in range(1, 10):
            h = a * h + x[t] if CONDITIONS[condition](t) else np.full(8, 0.25)
            wanted[t] = h.sum()
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5)


def test_no_state_is_stored() -> None:
    """The shaders bind the inputs and the result alone; with more states, sums too."""
    (program,) = compile_text(SUMS.replace("KIND", "sum"), "f.kern").programs
    bound = {
        f"{s.stem}.{s.variant}": s.code.count("var<storage") for s in program.shaders
    }
    folds = {stem.split(".")[-1]: n for stem, n in bound.items() if "fold" in stem}
    lanes = dict.fromkeys(("fours4", "fours16", "lanes4", "lanes16", "lanes64"), 5)
    assert folds == {**lanes, "many": 6}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("z[t, i] = h[t, i, 0];", "'z' reads other states than one for each term"),
        ("z[t, i] = sum[k] h[t, i, k] * h[t, i, 0];", "as other stages read it"),
    ],
)
def test_what_is_not_folded(more: str, reason: str) -> None:
    text = (
        "kernel f(x: f32[m, d, s]) -> y: f32[m, d], z: f32[m, d] {"
        " let h[t, i, k] = if t > 0 { 0.5 * h[t - 1, i, k] + x[t, i, k] } else { 0.0 };"
        f" y[t, i] = sum[k] h[t, i, k]; {more} }} schedule f.h {{ fold }}"
    )
    with pytest.raises(CompileError, match=reason):
        compile_text(text, "f.kern")
