"""Strategy `rows`: what it runs together, and that rows of any length come out right.

All inputs are small whole numbers, so float32 sums are exact in any order, and what
NumPy gives is compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.kernel import Kernel
from tests.numeric.generated import built

Array: TypeAlias = NDArray[Any]

LENGTHS = (
    *(0, 1, 3, 4, 5, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257),
    *(1000, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 5000),
)
ROWS = (0, 1, 2, 7, 300)
LOWEST = -np.inf


@final
@dataclass(frozen=True)
class Case:
    """A kernel of rows: its equations, its arguments, and what NumPy makes of those.

    `meaning` takes three arrays, the last ones being none of the kernel's if it has fewer.
    """

    text: str
    meaning: Callable[[Array, Array, Array], tuple[Array, ...]]
    covers: int
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


@pytest.mark.parametrize("name", CASES)
def test_rows_of_any_length(ctx: gpu.Context, name: str) -> None:
    case = CASES[name]
    with built(f"{case.text}\nschedule f {{ rows }}") as (kernel,):
        for n in LENGTHS:
            check(ctx, case, kernel, 2 if n > 1000 else 7, n)
        for m in ROWS:
            check(ctx, case, kernel, m, 36)
            check(ctx, case, kernel, m, 37)


def choices(text: str) -> dict[str, list[tuple[str, int]]]:
    """Return the labels of schedules, with how many stages they run, by the first one."""
    (program,) = compile_text(text, "f.kern").programs
    return {
        stage.name: [(s.label, s.covers) for s in stage.schedules]
        for stage in program.stages
        if stage.schedules
    }


@pytest.mark.parametrize("name", CASES)
def test_what_runs_together(name: str) -> None:
    case = CASES[name]
    found = choices(f"{case.text}\nschedule f {{ rows }}")
    assert max(schedules[0][1] for schedules in found.values()) == case.covers


SOFTMAX = """kernel f(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    let total[i] = sum[j] exp(x[i, j] - top[i]);
    y[i, j] = exp(x[i, j] - top[i]) / total[i];
}
"""
WIDE = "rows_lanes1024_subgroups1"
TOGETHER = {
    "top": [("reduce", 1), (WIDE, 3), ("rows", 3)],
    "total": [("reduce", 1)],
    "y": [("map", 1)],
}
VECTOR = """kernel f(x: f32[n]) -> y: f32[n] {
    let top = max[j] x[j];
    let total = sum[j] exp(x[j] - top);
    y[i] = exp(x[i] - top) / total;
}
"""


def test_stages_that_share_rows_run_together_unless_those_are_few_and_long() -> None:
    assert choices(SOFTMAX) == choices(VECTOR) == TOGETHER
    assert choices(SOFTMAX + "schedule f { rows }") == {"top": [("rows", 3)]}


def test_a_product_of_matrices_stays_one() -> None:
    text = """kernel f(a: f32[m, k], b: f32[k, n], t: f32[n]) -> p: f32[m, n] {
        let z[i, j] = sum[q] a[i, q] * b[q, j];
        let top[i] = max[j] z[i, j];
        p[i, j] = z[i, j] - top[i] + t[j];
    }"""
    assert choices(text) == {
        "z": [("gemv", 1), ("gemm_tile32x64x16_micro8x4", 1), ("gemm", 1)],
        "top": [("reduce", 1), (WIDE, 2), ("rows", 2)],
        "p": [("map", 1)],
    }


@pytest.mark.parametrize(
    ("schedules", "together"),
    [
        ("schedule f.y { map }", {"top": 2, "total": 1, "y": 1}),
        ("schedule f.total { generic }", {"top": 1, "total": 1, "y": 1}),
        ("schedule f.total { rows }", {"top": 1, "total": 2}),
        ("schedule f { map }", {"top": 2, "total": 1, "y": 1}),
        ("schedule f.y { map } schedule f { rows }", {"top": 2, "y": 1}),
        ("schedule f { rows } schedule f.y { map }", {"top": 3}),
        ("schedule f when n < 8 { generic }", {"top": 3, "total": 1, "y": 1}),
        ("schedule f.top { generic }", {"top": 1, "total": 2, "y": 1}),
    ],
)
def test_a_stage_with_a_schedule_of_its_own_stays_alone(
    schedules: str, together: dict[str, int]
) -> None:
    found = choices(f"{SOFTMAX}{schedules}")
    most = {stage: max(covers for _, covers in found[stage]) for stage in found}
    assert most == together


def leases(ctx: gpu.Context) -> int:
    """How many buffers were asked for: outputs and temporaries."""
    pool = ctx.caches["storage"]
    return pool.hits + pool.misses


@pytest.mark.parametrize("n", [65_536, 65_537])
def test_only_what_is_bound_is_allocated(ctx: gpu.Context, n: int) -> None:
    """A long vector goes stage by stage, through temporaries; a short one needs none."""
    with built(VECTOR) as (kernel,):
        x = ctx.tensor(np.full(n, 0.5, np.float32))
        before, taken = ctx.counters.snapshot(), leases(ctx)
        (y,) = kernel.launch(ctx, (x,), (), (None,))
        after = ctx.counters - before
        assert after.dispatches == (5 if n > 65_536 else 1)
        assert leases(ctx) - taken == (5 if n > 65_536 else 1)
        np.testing.assert_allclose(y.numpy(), 1 / n, rtol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "elements that later passes need",
        "what is read and written in place",
        "signed integers, and all reductions",
        "a single reduction",
        "rows of two axes",
    ],
)
def test_few_and_long_rows_go_in_parts(ctx: gpu.Context, name: str) -> None:
    case = CASES[name]
    with built(case.text) as (kernel,):
        for n in (65_540, 65_541):
            before = ctx.counters.snapshot()
            check(ctx, case, kernel, 3, n)
            assert (ctx.counters - before).dispatches > case.covers


def test_rows_of_a_run_that_something_else_needs(ctx: gpu.Context) -> None:
    """A number beside each row that a later stage reads elsewhere is stored."""
    text = """kernel f(x: f32[m, n]) -> y: f32[m, n], z: f32[m] {
        let s[i] = sum[j] x[i, j];
        y[i, j] = x[i, j] - s[i];
        let all = sum[i] s[i];
        z[i] = s[i] - all;
    }"""
    with built(f"{text}\nschedule f {{ rows }}") as (kernel,):
        x = np.arange(21, dtype=np.float32).reshape(3, 7)
        y, z = run(ctx, kernel, [x])
        np.testing.assert_array_equal(y, x - row_sum(x))
        np.testing.assert_array_equal(z, x.sum(1) - x.sum())


def test_a_stage_that_reads_other_rows_stays_apart() -> None:
    text = """kernel f(x: f32[m, n], ids: i32[m]) -> y: f32[m, n] {
        let s[i] = sum[j] x[i, j];
        y[i, j] = x[i, j] - s[ids[i]];
    }"""
    found = choices(text)
    assert [schedules[0][1] for schedules in found.values()] == [1, 1]


def test_a_workgroup_binds_eight_buffers_at_most(ctx: gpu.Context) -> None:
    inputs = ", ".join(f"x{k}: f32[m, n]" for k in range(6))
    sums = " + ".join(f"x{k}[i, j]" for k in range(6))
    text = f"""kernel f({inputs}) -> s: f32[m], y: f32[m, n], z: f32[m] {{
        s[i] = sum[j] ({sums});
        y[i, j] = x0[i, j] - s[i];
        z[i] = sum[j] y[i, j];
    }}"""
    assert choices(text)["s"][-1] == ("rows", 2)
    with built(text) as (kernel,):
        x = np.arange(21, dtype=np.float32).reshape(3, 7)
        s, y, z = run(ctx, kernel, [x] * 6)
        np.testing.assert_array_equal(s, 6 * x.sum(1))
        np.testing.assert_array_equal(y, x - 6 * row_sum(x))
        np.testing.assert_array_equal(z, y.sum(1))


def test_a_sum_of_more_buffers_is_reduced() -> None:
    inputs = ", ".join(f"x{k}: f32[m, n]" for k in range(8))
    sums = " + ".join(f"x{k}[i, j]" for k in range(8))
    text = f"kernel f({inputs}) -> s: f32[m] {{ s[i] = sum[j] ({sums}); }}"
    assert choices(text)["s"][-1] == ("reduce", 1)


def test_padding_never_counts(ctx: gpu.Context) -> None:
    """Storage is handed out again with what it held; here that is not a number."""
    text = CASES["a vector is one row"].text
    with built(f"{text}\nschedule f {{ rows }}") as (kernel,):
        for n in (1, 2, 3, 5, 7, 1021):
            filled = ctx.tensor(np.full(-(-n // 4) * 4, np.nan, np.float32))
            filled.numpy()
            del filled
            x = np.arange(n, dtype=np.float32)
            (y,) = run(ctx, kernel, [x])
            np.testing.assert_array_equal(y, x - x.sum())


def test_the_same_input_gives_the_same_bits(ctx: gpu.Context) -> None:
    with built(f"{SOFTMAX}schedule f {{ rows }}") as (kernel,):
        for n in (30, 100, 1000, 3000, 9000):
            x = np.random.default_rng(n).normal(size=(5, n)).astype(np.float32)
            (once,), (again,) = run(ctx, kernel, [x]), run(ctx, kernel, [x])
            assert once.tobytes() == again.tobytes()
