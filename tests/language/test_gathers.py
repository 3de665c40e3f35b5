"""Gathers are clamped to their axis; where it is empty, the call is refused."""

from __future__ import annotations

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32, i32
from kerngen.runtime.backend import Kind
from tests.compile import built

PLAIN = (
    "kernel f(x: f32[v, d], ids: i32[n]) -> y: f32[n, d] { y[i, j] = x[ids[i], j]; }"
)
OF_A_LET = (
    "kernel f(x: f32[v], ids: i32[n]) -> y: f32[n] {"
    " let e[i] = 2.0 * x[i]; y[i] = sum[j] e[ids[j]] * f32(i); }"
)


@pytest.mark.parametrize("adapter", ["software", "reference"])
def test_a_gather_from_an_empty_axis_is_refused(adapter: Kind) -> None:
    with built(PLAIN) as (kernel,), gpu.open(adapter=adapter) as ctx:
        x, ids = ctx.empty((0, 3), f32), ctx.vector(np.zeros(2, np.int32), i32)
        with pytest.raises(gpu.ShapeError, match=r"axis 0 of 'x' .* empty \(v=0\)"):
            kernel.launch(ctx, (x, ids), (), (None,))


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (2, 0)])
def test_an_empty_domain_checks_nothing(
    ctx: gpu.Context, rows: int, columns: int
) -> None:
    with built(PLAIN) as (kernel,):
        x, ids = ctx.empty((0, columns), f32), ctx.vector(np.zeros(rows, np.int32), i32)
        (y,) = kernel.launch(ctx, (x, ids), (), (None,))
        assert y.numpy().shape == (rows, columns)


def test_a_statement_that_is_empty_checks_no_reduction_in_it(
    ctx: gpu.Context,
) -> None:
    sum_ = "y[i] = z[i] + sum[j] x[ids[j]];"
    text = f"kernel f(x: f32[v], ids: i32[q], z: f32[m]) -> y: f32[m] {{ {sum_} }}"
    with built(text) as (kernel,):
        empty, ids = ctx.empty((0,), f32), ctx.vector(np.zeros(2, np.int32), i32)
        (y,) = kernel.launch(ctx, (empty, ids, empty), (), (None,))
        assert y.numpy().shape == (0,)


def test_a_let_that_nothing_reads_is_checked(ctx: gpu.Context) -> None:
    let = "let e[t] = x[ids[t]]; y[i] = 1.0;"
    text = f"kernel f(x: f32[v], ids: i32[n]) -> y: f32[n] {{ {let} }}"
    with built(text) as (kernel,):
        ids = ctx.vector(np.zeros(2, np.int32), i32)
        with pytest.raises(gpu.ShapeError, match="axis 0 of 'x'"):
            kernel.launch(ctx, (ctx.empty((0,), f32), ids), (), (None,))


def test_a_gather_of_a_let_is_refused_too(ctx: gpu.Context) -> None:
    with built(OF_A_LET) as (kernel,):
        ids = ctx.vector(np.zeros(2, np.int32), i32)
        with pytest.raises(gpu.ShapeError, match="axis 0 of 'e'"):
            kernel.launch(ctx, (ctx.empty((0,), f32), ids), (), (None,))
