"""Strategy `scan` against NumPy: directions, kinds, axes, and lengths of every variant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.calls.kernel import Kernel
from kerngen.source.diagnostic import CompileError
from tests.budget import sampled, several
from tests.compile import built

KINDS = {
    "sum": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}
RELATIONS = ("<=", "<", ">=", ">")
SHAPES = (
    (2, 3, 5),  # a lane or a few per row
    (3, 70, 8),  # parts across memory, of vectors
    (1, 200, 3),
    (1, 2, 1031),  # a tile and a bit, of scalars
    (2, 1, 8196),  # parts along memory, of vectors
    (1, 1, 9001),
)
"""Lengths that take each of the ways to scan."""


def meaning(x: NDArray[Any], axis: int, kind: str, relation: str) -> NDArray[Any]:
    """What NumPy accumulates, in either direction, with the element itself or without."""
    function, nothing = KINDS[kind]
    rows = np.moveaxis(x.astype(np.float64), axis, -1)
    is_suffix = relation.startswith(">")
    if is_suffix:
        rows = rows[..., ::-1]
    if "=" not in relation:
        first = np.full((*rows.shape[:-1], 1), nothing)
        rows = np.concatenate((first, rows[..., :-1]), -1)
    found = function.accumulate(rows, -1)
    return np.moveaxis(found[..., ::-1] if is_suffix else found, -1, axis)


def run(ctx: gpu.Context, kernel: Kernel, x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return what the device gives."""
    made = kernel.launch(ctx, (ctx.tensor(x),), (), kernel.no_out)
    return tuple(tensor.numpy() for tensor in made)


def _pairs() -> list[Any]:
    """Every kind in every direction; by default a sum to the right, a maximum to the left."""
    return [
        pytest.param(
            kind,
            relation,
            marks=[] if number == place and number % 2 == 0 else [pytest.mark.nightly],
        )
        for number, kind in enumerate(KINDS)
        for place, relation in enumerate(RELATIONS)
    ]


@pytest.mark.parametrize(("kind", "relation"), _pairs())
def test_every_prefix_and_suffix(ctx: gpu.Context, kind: str, relation: str) -> None:
    """Along memory and across it, with terms and results that are computed."""
    text = f"""kernel f(x: f32[h, m, n]) -> y: f32[h, m, n], z: f32[h, m, n] {{
        y[k, i, j] = {kind}[p when p {relation} i] -x[k, p, j];
        z[k, i, j] = 2.0 * {kind}[p when p {relation} j] x[k, i, p] + x[k, i, j]; }}"""
    rng = np.random.default_rng(5)
    with built(f"{text} schedule f {{ scan }}") as (kernel,):
        for shape in SHAPES:
            terms = (-1, 1) if kind == "prod" else range(-3, 4)
            x = rng.choice(terms, shape).astype(np.float32)
            across, along = run(ctx, kernel, x)
            np.testing.assert_array_equal(across, meaning(-x, 1, kind, relation))
            expected = 2.0 * meaning(x, 2, kind, relation) + x
            np.testing.assert_array_equal(along, expected, str(shape))


PREFIX = "kernel f(x: u32[n]) -> y: u32[n] { y[i] = sum[p when p <= i] x[p]; }"


LENGTHS = (0, 8191, 300_000, 1, 2, 8192, 8193, 3_000_017)


@pytest.mark.parametrize("options", sampled(["", "subgroups(1)", "lanes(64)"], 2))
def test_long_rows(ctx: gpu.Context, options: str) -> None:
    """Modulo 2^32, so exactly; the longest in parts of several tiles."""
    with built(f"{PREFIX} schedule f {{ scan {options} }}") as (kernel,):
        for length in several(LENGTHS, by_day=3):
            rng = np.random.default_rng(length)
            x = rng.integers(0, 2**32, length, np.uint32)
            (got,) = run(ctx, kernel, x)
            np.testing.assert_array_equal(got, np.cumsum(x, dtype=np.uint32))


@pytest.mark.parametrize("length", sampled([33, 1, 31, 132, 128, 1031], 3))
def test_few_lanes_take_rows_of_any_length(ctx: gpu.Context, length: int) -> None:
    """Several rows share a workgroup, and each is scanned tile by tile."""
    text = (
        "kernel f(x: u32[m, n]) -> y: u32[m, n] {"
        " y[i, j] = sum[p when p <= j] x[i, p]; } schedule f { scan lanes(8) }"
    )
    x = np.random.default_rng(length).integers(0, 2**32, (35, length), np.uint32)
    with built(text) as (kernel,):
        (got,) = run(ctx, kernel, x)
    np.testing.assert_array_equal(got, np.cumsum(x, 1, dtype=np.uint32))


@pytest.mark.nightly
def test_many_rows(ctx: gpu.Context) -> None:
    """More workgroups than one dimension of a dispatch holds, with rows to spare."""
    text = (
        "kernel f(x: u32[m, n]) -> y: u32[m, n] {"
        " y[i, j] = sum[p when p >= j] x[i, p]; } schedule f { scan lanes(64) }"
    )
    x = np.random.default_rng(1).integers(0, 2**32, (70_001, 5), np.uint32)
    with built(text) as (kernel,):
        (got,) = run(ctx, kernel, x)
    expected = np.cumsum(x[:, ::-1], 1, dtype=np.uint32)[:, ::-1]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(1, 300_001), (100_000, 3)])
def test_the_same_bits_each_time(ctx: gpu.Context, shape: tuple[int, int]) -> None:
    """Sums of floats depend on their order, which is fixed; no sum is a long chain."""
    axis = int(np.argmax(shape))
    term = "x[i, p]" if axis else "x[p, j]"
    text = (
        "kernel f(x: f32[m, n]) -> y: f32[m, n] {"
        f" y[i, j] = sum[p when p <= {'ij'[axis]}] {term}; }}"
    )
    x = np.random.default_rng(2).uniform(0.5, 1.5, shape).astype(np.float32)
    with built(text) as (kernel,):
        first, second = (run(ctx, kernel, x)[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()
    expected = np.cumsum(x, axis, dtype=np.float64)
    # A chain of 100,000 additions is off by some 1e-4; NumPy's in f32 is.
    np.testing.assert_allclose(first, expected, rtol=2e-5 if axis else 2e-4)


def strategies(text: str) -> list[str]:
    """Return the strategies that may run the one stage of a kernel, by default."""
    (program,) = compile_text(text, "scan.kern").programs
    (stage,) = program.stages
    return [schedule.strategy for schedule in stage.schedules]


@pytest.mark.parametrize(
    "value",
    [
        "sum[p when p <= i] x[p]",
        "sum[p when not (i <= p)] x[p]",
        "sum[p] if p > i and x[p] > 0.0 { x[p] } else { 0.0 }",
        "max[p when i + 1 <= p] abs(x[p])",
        "x[i] / prod[p when p >= i] x[p]",
    ],
)
def test_is_chosen(value: str) -> None:
    text = f"kernel f(x: f32[n]) -> y: f32[n] {{ y[i] = {value}; }}"
    assert set(strategies(text)) == {"scan"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("sum[p] x[p] * f32(i)", "no reduction of a prefix or a suffix"),
        ("sum[p when p <= i] x[p] * x[i]", "more than where a prefix or a suffix ends"),
        ("f32(argmax[p when p <= i] x[p])", "a place is not known from the one before"),
        ("sum[p when p <= i and p > i - 3] x[p]", "more than where a prefix"),
        ("sum[p when p < i - 1] x[p]", "a part does not end at 'i', or right before"),
        ("sum[p when p <= i + 1] x[p]", "a part does not end at 'i', or right before"),
        ("sum[p < 4 when p <= i] x[0] * f32(p)", "'p' and 'i' range over different"),
        ("2.0 * x[i]", "the stage holds no reduction"),
    ],
)
def test_says_why_it_does_not_fit(value: str, reason: str) -> None:
    text = f"kernel f(x: f32[n]) -> y: f32[n] {{ y[i] = {value}; }}"
    assert "scan" not in strategies(text)
    with pytest.raises(CompileError) as caught:
        compile_text(f"{text} schedule f {{ scan }}", "scan.kern")
    assert reason in str(caught.value)


def test_says_which_options_suit() -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(f"{PREFIX} schedule f {{ scan lanes(48) }}", "scan.kern")
    assert "48 lanes are not a power of two" in str(caught.value)
    with pytest.raises(CompileError) as caught:
        compile_text(
            f"{PREFIX} schedule f {{ scan lanes(32) subgroups(1) }}", "scan.kern"
        )
    assert "rows of fewer than 64 lanes share a workgroup" in str(caught.value)
    text = (
        "kernel f(x: f32[m, n]) -> y: f32[m, n] {"
        " y[i, j] = sum[p when p <= i] x[p, j]; } schedule f { scan lanes(64) }"
    )
    with pytest.raises(CompileError) as caught:
        compile_text(text, "scan.kern")
    assert "memory runs across its rows" in str(caught.value)


SEGMENTS = """kernel f(x: f32[n], ids: u32[n], w: f32[m]) -> y: f32[n] {
    let begins[i < n] = sum[r when u32(w[r]) == u32(i)] 1;
    let h[i] = FACTOR * (if i > 0 and begins[i] == 0 { h[i - 1] } else { 0.0 }) + x[i];
    y[i] = h[i];
}
"""


def test_sums_of_segments_are_scans() -> None:
    """Other factors may overflow together; the reduction is no part of the recurrence."""
    for factor, wanted in (("1.0", "scan"), ("0.5", "scan_redo1")):
        text = SEGMENTS.replace("FACTOR", factor)
        begins, h = compile_text(text, "t.kern").programs[0].stages
        assert [each.label for each in h.schedules] == [wanted, "recur"]
        assert begins.schedules[0].strategy == "scatter"


def test_segments_behind_nan(ctx: gpu.Context) -> None:
    random = np.random.default_rng(0)
    x = random.integers(-9, 10, 9001).astype(np.float32)
    x[[5, 4000]] = np.nan, np.inf
    starts = np.array([0, 6, 6, 9, 4001, 4100, 9000], np.float32)
    with built(SEGMENTS.replace("FACTOR", "1.0")) as (kernel,):
        given = x, np.zeros(9001, np.uint32), starts
        (y,) = kernel.launch(ctx, (*map(ctx.tensor, given),), (), kernel.no_out)
    parts = np.split(x.astype(np.float64), starts[1:].astype(int))
    wanted = np.concatenate([part.cumsum() for part in parts])
    np.testing.assert_array_equal(y.numpy(), wanted)
