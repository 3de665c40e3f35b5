"""Strategy `rows`: what it runs together, and that rows of any length come out right.

All inputs are small whole numbers, so float32 sums are exact in any order, and what
NumPy gives is compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.budget import sampled
from tests.compile import built
from tests.schedule.rows import CASES, EDGE, WIDE, check, row_sum, run

LENGTHS = (0, 1, 3, 4, 7, 8, 13, 33, 127, 128, 257, 1023, 1024, 1025, 2049, 4097)
MORE_LENGTHS = (
    5,
    15,
    16,
    17,
    31,
    32,
    64,
    129,
    255,
    256,
    1000,
    2048,
    4095,
    4096,
    5000,
    8193,
)
ROWS = (0, 1, 300)
MORE_ROWS = (2, 7)


@pytest.mark.parametrize("name", sampled(CASES, 4))
@pytest.mark.parametrize(
    ("lengths", "rows"),
    [
        pytest.param(LENGTHS, ROWS, id="some"),
        pytest.param(MORE_LENGTHS, MORE_ROWS, marks=pytest.mark.nightly, id="more"),
    ],
)
def test_rows_of_any_length(
    ctx: gpu.Context, name: str, lengths: Sequence[int], rows: Sequence[int]
) -> None:
    case = CASES[name]
    with built(f"{case.text}\nschedule f {{ rows }}") as (kernel,):
        for n in lengths:
            check(ctx, case, kernel, 2 if n > 1000 else 7, n)
        for m in rows:
            check(ctx, case, kernel, m, 36)
            check(ctx, case, kernel, m, 37)


def choices(text: str) -> dict[str, list[tuple[str, int]]]:
    """Return the labels of schedules, with how many stages they run, by the first one."""
    (program,) = compile_text(text, "f.kern").programs
    return {
        stage.name: [(s.label, len(s.stages)) for s in stage.schedules]
        for stage in program.stages
        if stage.schedules
    }


@pytest.mark.parametrize("name", CASES)
def test_what_runs_together(name: str) -> None:
    case = CASES[name]
    found = choices(f"{case.text}\nschedule f {{ rows }}")
    assert max(schedules[0][1] for schedules in found.values()) == case.together


SOFTMAX = """kernel f(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    let total[i] = sum[j] exp(x[i, j] - top[i]);
    y[i, j] = exp(x[i, j] - top[i]) / total[i];
}
"""
TOGETHER = {
    "top": [("reduce", 1), (WIDE, 3), (EDGE, 3), ("rows", 3)],
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
        "z": [
            ("gemv", 1),
            ("gemv_rows4", 1),
            ("gemv_rows8", 1),
            ("gemm_tile8x128x4_micro8x4", 1),
            ("generic_neighbours4", 1),
            ("gemm_tile16x128x8_micro8x4", 1),
            ("gemm_tile128x16x8_micro4x4", 1),
            ("gemm_tile128x32x16_micro8x4", 1),
            ("gemm_tile32x128x16_micro4x8", 1),
            ("gemm_tile32x32x32_micro4x4_stream528", 1),
            ("gemm_tile32x32x64_micro4x4_stream528_slices2", 1),
            ("gemm_tile64x64x16_micro8x8_stream528", 1),
            ("gemm_tile64x64x32_micro8x8_stream528_slices2", 1),
            ("gemm_tile128x64x16_micro8x8_stream396", 1),
            ("gemm_stream264", 1),
        ],
        "top": [("reduce", 1), (WIDE, 2), (EDGE, 2), ("rows", 2)],
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
    most = {stage: max(count for _, count in found[stage]) for stage in found}
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
        "signed integers, and all reductions",
    ],
)
def test_few_and_long_rows_go_in_parts(ctx: gpu.Context, name: str) -> None:
    case = CASES[name]
    with built(case.text) as (kernel,):
        for n in (65_540, 65_541):
            before = ctx.counters.snapshot()
            check(ctx, case, kernel, 3, n)
            assert (ctx.counters - before).dispatches > case.together


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


def test_a_condition_may_differ_between_the_elements_of_a_vector(
    ctx: gpu.Context,
) -> None:
    """That of the inner reduction reads what an invocation has of four rows' elements."""
    text = """kernel f(g: f32[n, r], v: f32[n], w: f32[l, n]) -> m: f32[r] {
        m[i] = max[q] (g[q, i] + prod[a when is_finite(v[q])] w[a, q]);
    } schedule f { rows }"""
    random = np.random.default_rng(0)
    with built(text) as (kernel,):
        for n in (4, 5, 1024, 4100):
            g, v, w = (
                random.standard_normal(shape, dtype=np.float32)
                for shape in ((n, 3), (n,), (2, n))
            )
            v[::3] = np.inf
            given = tuple(map(ctx.tensor, (g, v, w)))
            (found,) = kernel.launch(ctx, given, (), (None,))
            products = np.where(np.isfinite(v), w.prod(0), 1)
            wanted = (g + products[:, None]).max(0)
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
