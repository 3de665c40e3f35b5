"""Kernels of rows, what NumPy says of them, and how they are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime.calls.kernel import Kernel

Array: TypeAlias = NDArray[Any]

WIDE = "rows_lanes1024_subgroups1"
EDGE = "rows_lanes512"
LOWEST = -np.inf


@final
@dataclass(frozen=True)
class Case:
    """A kernel of rows: its equations, its arguments, and what NumPy makes of those.

    `meaning` takes three arrays, the last ones being none of the kernel's if it has fewer.
    """

    text: str
    meaning: Callable[[Array, Array, Array], tuple[Array, ...]]
    together: int
    shapes: Callable[[int, int], list[tuple[int, ...]]]


def matrix(m: int, n: int) -> list[tuple[int, ...]]:
    return [(m, n)]


def top(x: Array) -> Array:
    return np.asarray(np.max(x, 1, keepdims=True, initial=LOWEST))


def row_sum(x: Array) -> Array:
    return np.asarray(x.sum(1, keepdims=True))


CASES = {
    "a maximum, then a sum, then every element": Case(
        """kernel f(x: f32[m, n]) -> y: f32[m, n] {
            let top[i] = max[j] x[i, j];
            let s[row] = sum[q] (x[row, q] - top[row]);
            y[i, j] = 2.0 * x[i, j] - s[i];
        }""",
        lambda x, _, __: (2 * x - row_sum(x - top(x)),),
        3,
        matrix,
    ),
    "two sums in one pass": Case(
        """kernel f(x: f32[m, n]) -> s: f32[m], q: f32[m], y: f32[m, n] {
            s[i] = sum[j] x[i, j];
            q[r] = sum[p] x[r, p] * x[r, p];
            y[i, j] = x[i, j] + s[i] - q[i];
        }""",
        lambda x, _, __: (x.sum(1), (x * x).sum(1), x + row_sum(x) - row_sum(x * x)),
        3,
        matrix,
    ),
    "elements that later passes need": Case(
        """kernel f(x: f32[m, n], w: f32[m, n]) -> r: f32[m, n], y: f32[m, n] {
            r[i, j] = x[i, j] + 3.0 * w[i, j];
            let t[i] = sum[j] r[i, j];
            y[i, j] = r[i, j] - t[i];
        }""",
        lambda x, w, _: (x + 3 * w, x + 3 * w - row_sum(x + 3 * w)),
        3,
        lambda m, n: [(m, n), (m, n)],
    ),
    "what is read and written in place": Case(
        """kernel f(mut x: f32[m, n], mut s: f32[m]) {
            s[i] = s[i] + sum[j] x[i, j] * s[i];
            x[i, j] = x[i, j] - s[i];
        }""",
        lambda x, s, _: (x - (s + x.sum(1) * s)[:, None], s + x.sum(1) * s),
        2,
        lambda m, n: [(m, n), (m,)],
    ),
    "an output that is written twice": Case(
        """kernel f(x: f32[m, n]) -> y: f32[m, n] {
            y[i, j] = 2.0 * x[i, j];
            let s[i] = sum[j] y[i, j];
            y[i, j] += s[i];
        }""",
        lambda x, _, __: (2 * x + 2 * row_sum(x),),
        2,
        matrix,
    ),
    "a let of what is written twice": Case(
        """kernel f(mut x: f32[m, n]) -> y: f32[m, n] {
            x[i, j] = 2.0 * x[i, j];
            let s[i] = sum[j] x[i, j];
            let d[i, j] = x[i, j];
            x[i, j] = x[i, j] - s[i];
            let u[i] = max[j] x[i, j];
            y[i, j] = x[i, j] + u[i] + d[i, j];
        }""",
        lambda x, _, __: (
            2 * x - row_sum(2 * x),
            4 * x - row_sum(2 * x) + top(2 * x - row_sum(2 * x)),
        ),
        3,
        matrix,
    ),
    "an output that repeats another": Case(
        """kernel f(x: f32[m, n]) -> a: f32[m, n], z: f32[m, n], c: f32[m, n] {
            a[i, j] = 2.0 * x[i, j];
            let s[i] = sum[j] a[i, j];
            z[i, j] = a[i, j] - s[i];
            c[i, j] = a[i, j];
        }""",
        lambda x, _, __: (2 * x, 2 * x - row_sum(2 * x), 2 * x),
        3,
        matrix,
    ),
    "broadcasts, numbers beside rows, positions": Case(
        """kernel f(x: f32[m, n], w: f32[n], b: f32[m]) -> y: f32[m, n], d: f32[m] {
            let s[i] = sum[j] x[i, j] * w[j] + b[i];
            d[i] = s[i] * 2.0 + f32(i);
            y[i, j] = x[i, j] * w[j] + d[i] + f32(j);
        }""",
        lambda x, w, b: (
            x * w
            + (2 * ((x * w).sum(1) + b) + np.arange(len(b)))[:, None]
            + np.arange(len(w)),
            2 * ((x * w).sum(1) + b) + np.arange(len(b)),
        ),
        2,
        lambda m, n: [(m, n), (n,), (m,)],
    ),
    "signed integers, and all reductions": Case(
        """kernel f(x: i32[m, n]) -> a: i32[m], b: i32[m], c: i32[m], d: i32[m, n] {
            a[i] = max[j] x[i, j];
            b[i] = min[j] x[i, j];
            c[i] = prod[j] (x[i, j] + a[i] - 3);
            d[i, j] = x[i, j] + b[i];
        }""",
        lambda x, _, __: (
            x.max(1, initial=-(2**31)),
            x.min(1, initial=2**31 - 1),
            (x + (x.max(1, initial=-(2**31)) - 3)[:, None]).prod(1, dtype=np.int32),
            x + x.min(1, initial=2**31 - 1)[:, None],
        ),
        4,
        matrix,
    ),
    "a single reduction": Case(
        "kernel f(x: f32[m, n]) -> s: f32[m] { s[i] = sum[j] x[i, j]; }",
        lambda x, _, __: (x.sum(1),),
        1,
        matrix,
    ),
    "a vector is one row": Case(
        """kernel f(x: f32[n]) -> y: f32[n] {
            let s = sum[i] x[i];
            y[i] = x[i] - s;
        }""",
        lambda x, _, __: (x - x.sum(),),
        2,
        lambda _, n: [(n,)],
    ),
    "two trailing axes": Case(
        """kernel f(x: f32[m, n, 6], w: f32[n]) -> y: f32[m, n, 6] {
            let s[i] = sum[j, k] x[i, j, k] * w[j];
            y[i, j, k] = x[i, j, k] - s[i] * f32(k);
        }""",
        lambda x, w, _: (
            x
            - np.einsum("ijk,j->i", x, w)[:, None, None]
            * np.arange(6, dtype=np.float32),
        ),
        2,
        lambda m, n: [(m, n, 6), (n,)],
    ),
    "two trailing axes, aligned": Case(
        """kernel f(x: f32[m, n, 4]) -> y: f32[m, n, 4] {
            let s[i] = sum[j, k] x[i, j, k];
            y[i, j, k] = x[i, j, k] - s[i];
        }""",
        lambda x, _, __: (x - x.sum((1, 2))[:, None, None],),
        2,
        lambda m, n: [(m, n, 4)],
    ),
    "rows of two axes": Case(
        """kernel f(x: f32[2, m, n], b: f32[m]) -> y: f32[2, m, n] {
            let s[p, i] = sum[j] x[p, i, j] * b[i];
            y[p, i, j] = x[p, i, j] - s[p, i];
        }""",
        lambda x, b, _: (x - (x * b[None, :, None]).sum(2)[:, :, None],),
        2,
        lambda m, n: [(2, m, n), (m,)],
    ),
    "halves, rounded before they are read again": Case(
        """kernel f(x: f16[m, n], w: f32[n]) -> y: f16[m, n], z: f32[m, n], s: f16[m] {
            y[i, j] = 2.0 * x[i, j] + 2048.25;
            let t[i] = sum[j] (y[i, j] - 2048.0 - w[j]);
            s[i] = 0.0 * t[i] + 2048.25;
            z[i, j] = y[i, j] - t[i] + s[i] - 4096.0;
        }""",
        lambda x, w, _: (
            (2 * x + 2048).astype(np.float16),
            2 * x.astype(np.float32) - row_sum(2 * x.astype(np.float32) - w),
            np.full(len(x), 2048, np.float16),
        ),
        3,
        lambda m, n: [(m, n), (n,)],
    ),
    "what is kept whole beside a half of it": Case(
        """kernel f(mut x: f16[m, n]) -> z: f32[m, n], y: f16[m, n] {
            let old[i, j] = 2.0 * x[i, j] + 2048.25;
            x[i, j] = old[i, j];
            y[i, j] = old[i, j];
            let s[i] = sum[j] (x[i, j] - 2048.0);
            z[i, j] = old[i, j] - s[i];
        }""",
        lambda x, _, __: (
            (2 * x.astype(np.float32) + 2048).astype(np.float16),
            2 * x.astype(np.float32) + 2048.25 - 2 * row_sum(x.astype(np.float32)),
            (2 * x.astype(np.float32) + 2048).astype(np.float16),
        ),
        3,
        matrix,
    ),
    "inner reductions and gathers": Case(
        """kernel f(x: f32[m, n], t: f32[5], ids: i32[n]) -> y: f32[m, n] {
            let s[i] = sum[q] x[i, q] * t[ids[q]];
            let r[i] = sum[j] x[i, j] * (sum[q] t[q] * f32(q + j));
            y[i, j] = t[ids[j]] * x[i, j] - s[i] + r[i];
        }""",
        lambda x, t, ids: (
            t[np.clip(ids, 0, 4)] * x
            - row_sum(x * t[np.clip(ids, 0, 4)])
            + row_sum(x * positions(x, t)),
        ),
        3,
        lambda m, n: [(m, n), (5,), (n,)],
    ),
}


def positions(x: Array, t: Array) -> Array:
    """For every column, the sum over t of each element times its distance."""
    return np.array([(t * (np.arange(5) + j)).sum() for j in range(x.shape[1])])


def arguments(case: Case, kernel: Kernel, m: int, n: int) -> list[Array]:
    rng = np.random.default_rng(n)
    inputs = (spec for spec in kernel.tensors if spec.access != "write")
    return [
        rng.integers(-3, 4, shape).astype(spec.element.DTYPE)
        for spec, shape in zip(inputs, case.shapes(m, n), strict=True)
    ]


def run(ctx: gpu.Context, kernel: Kernel, arrays: list[Array]) -> list[Array]:
    """What the device gives: the tensors that change, then the outputs."""
    tensors = tuple(map(ctx.tensor, arrays))
    outputs = kernel.launch(ctx, tensors, (), kernel.no_out)
    specs = zip(tensors, kernel.inputs, strict=True)
    changed = [tensor for tensor, spec in specs if spec.access == "update"]
    return [tensor.numpy() for tensor in (*changed, *outputs)]


def check(ctx: gpu.Context, case: Case, kernel: Kernel, m: int, n: int) -> None:
    arrays = arguments(case, kernel, m, n)
    first, second, third = (*arrays, arrays[0], arrays[0])[:3]
    wanted = case.meaning(first, second, third)
    for got, exact in zip(run(ctx, kernel, arrays), wanted, strict=True):
        np.testing.assert_array_equal(got, exact, err_msg=f"m = {m}, n = {n}")
