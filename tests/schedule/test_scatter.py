"""Strategy `scatter`: what it fits, which way it goes, and what comes out, by NumPy.

Inputs are small whole numbers unless a test is about rounding, so that float32 sums are
exact in any order, and what NumPy gives is compared bit for bit.
"""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.calls.kernel import Kernel
from kerngen.source.diagnostic import CompileError
from tests.budget import examples, sampled, several
from tests.compile import built

COUNTS = """kernel f(x: u32[n], bins: u32) -> y: u32[bins] {
    y[k] = sum[i when x[i] == u32(k)] 1;
}
"""
SUMS = """kernel f(x: u32[n], v: f32[n], bins: u32) -> y: f32[bins] {
    y[k] = sum[i when x[i] == u32(k)] v[i];
}
"""
ROWS = """kernel f(x: u32[n], v: f32[n, d], bins: u32) -> y: f32[bins, d] {
    y[k, j] = sum[i when x[i] == u32(k)] v[i, j];
}
"""
NONE, ONE = (pytest.param(number, marks=pytest.mark.nightly) for number in (0, 1))
SIZES = (0, 1, 33, 4096, 40_003)
BINS = (0, 1, 7, 256, 1025, 10_007)
Array = NDArray[Any]


def call(ctx: gpu.Context, kernel: Kernel, *tensors: Array, **scalars: int) -> Array:
    """Return the output of a kernel that has one."""
    given = tuple(ctx.tensor(each) for each in tensors)
    values = tuple(scalars[spec.name] for spec in kernel.scalars)
    (output,) = kernel.launch(ctx, given, values, (None,))
    result: Array = output.numpy()
    return result


def keys(seed: int, n: int, bins: int) -> Array:
    """Draw keys, of which some are beyond the bins."""
    drawn = np.random.default_rng(seed).integers(0, bins + 3, n).astype(np.uint32)
    drawn[: min(n, 4)] = (2**31, 2**32 - 1, bins, bins + 1)[:n]
    return drawn


def added(x: Array, v: Array, bins: int) -> Array:
    """Return the sums in float64; keys beyond the bins count nowhere."""
    total = np.zeros((bins, *v.shape[1:]))
    np.add.at(total, x[x < bins], v[x < bins])
    return total


def whole(seed: int, *shape: int) -> Array:
    drawn = np.random.default_rng(seed).integers(-9, 10, shape)
    return drawn.astype(np.float32)


@pytest.mark.parametrize("options", ["", "private(0)", "lists(1)"])
def test_counts(ctx: gpu.Context, options: str) -> None:
    with built(f"{COUNTS}schedule f {{ scatter {options} }}") as (kernel,):
        for n in SIZES:
            for bins in several((*BINS, 20_001), by_day=3):
                x = keys(n, n, bins)
                y = call(ctx, kernel, x, bins=bins)
                wanted = np.bincount(x[x < bins], minlength=bins)
                np.testing.assert_array_equal(y, wanted[:bins], f"{n} keys, {bins}")


def test_sums_of_floats(ctx: gpu.Context) -> None:
    with built(f"{SUMS}schedule f {{ scatter }}") as (kernel,):
        for n in SIZES:
            for bins in several((*BINS, 70_001), by_day=3):
                x, v = keys(n, n, bins), whole(n, n)
                y = call(ctx, kernel, x, v, bins=bins)
                np.testing.assert_array_equal(y, added(x, v, bins), f"{n}, {bins}")


@pytest.mark.parametrize("columns", [NONE, ONE, 3, 8])
def test_sums_of_rows(ctx: gpu.Context, columns: int) -> None:
    with built(f"{ROWS}schedule f {{ scatter }}") as (kernel,):
        for n in (0, 33, 4097, 9001):
            for bins in (1, 7, 300):
                x, v = keys(n, n, bins), whole(n, n, columns)
                y = call(ctx, kernel, x, v, bins=bins)
                np.testing.assert_array_equal(y, added(x, v, bins), f"{n}, {bins}")


def test_the_rest_of_the_stage_by_four_columns(ctx: gpu.Context) -> None:
    """Results across the columns are written one by one, along them by four."""
    for left, shape in (("k, j", "9, d"), ("j, k", "d, 9")):
        text = f"""kernel f(x: u32[n], v: f32[n, d], b: f32[d], s: f32[9]) -> y: f16[{shape}] {{
            y[{left}] = b[j] + s[k] * sum[i when x[i] == u32(k)] v[i, j];
        }}
        schedule f {{ scatter }}"""
        x, v, b, s = keys(1, 999, 9), whole(1, 999, 8), whole(2, 8), whole(3, 9)
        with built(text) as (kernel,):
            y = call(ctx, kernel, x, v, b, s)
        wanted = b + s[:, None] * added(x, v, 9)
        np.testing.assert_array_equal(y if left == "k, j" else y.T, wanted)


def test_one_bin_of_nearly_all_terms(ctx: gpu.Context) -> None:
    """What a run carries is carried twice: runs of 16 terms, 64 of those, the rest."""
    sizes, before = (40_003, 70_001), (0, 1, 15, 16, 1023, 1024, 1025, 3073)
    with built(f"{ROWS}schedule f {{ scatter }}") as (kernel,):
        for n, first in several([*product(sizes, before)], by_day=5):
            x = np.full(n, 5, np.uint32)
            x[:first] = 2
            v = whole(first, n, 2)
            y = call(ctx, kernel, x, v, bins=9)
            np.testing.assert_array_equal(y, added(x, v, 9), f"{first} before")


@pytest.mark.parametrize(
    ("kind", "element", "options"),
    sampled(
        product(
            ("max", "min", "prod"),
            ("f32", "i32", "u32"),
            ("", "private(0)", "lists(1)"),
        ),
        5,
        "-".join,
    ),
)
def test_other_reductions(
    ctx: gpu.Context, kind: str, element: str, options: str
) -> None:
    text = f"""kernel f(x: i32[n], v: {element}[n], bins: u32) -> y: {element}[bins] {{
        y[k] = {kind}[i when x[i] == k] v[i];
    }}
    schedule f {{ scatter {options} }}"""
    random, bins = np.random.default_rng(7), 611
    dtype = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}[element]
    x = random.integers(-2, bins + 2, 2000).astype(np.int32)
    x[:2] = (-(2**31), 2**31 - 1)
    v = random.integers(-(2**31), 2**31, 2000).astype(np.int32)
    terms = (
        np.sign(v).astype(dtype) if kind == "prod" else v.view(np.uint32).astype(dtype)
    )
    nothing = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}[kind]
    with built(text) as (kernel,):
        y = call(ctx, kernel, x, terms, bins=bins)
    empty = call_of_nothing(kind, element)
    wanted = np.full(bins, empty, dtype)
    inside = (x >= 0) & (x < bins)
    with np.errstate(over="ignore"):
        nothing.at(wanted, x[inside], terms[inside])
    np.testing.assert_array_equal(y, wanted)


def call_of_nothing(kind: str, element: str) -> float:
    """Return what a reduction of nothing gives, by the language's page."""
    if kind == "prod":
        return 1
    lowest, highest = {
        "f32": (-np.inf, np.inf),
        "i32": (-(2**31), 2**31 - 1),
        "u32": (0, 2**32 - 1),
    }[element]
    return lowest if kind == "max" else highest


@pytest.mark.parametrize(
    ("kind", "options"),
    sampled(product(("max", "min"), ("", "private(0)")), 3, "-".join),
)
def test_order_of_floats(ctx: gpu.Context, kind: str, options: str) -> None:
    """NaN wins, as in NumPy; infinities, subnormals and zeros have their order."""
    text = f"""kernel f(x: u32[n], v: f32[n]) -> y: f32[7] {{
        y[k] = {kind}[i when x[i] == u32(k)] v[i];
    }}
    schedule f {{ scatter {options} }}"""
    bits = np.array(
        [0x7FC00000, 0xFFC00001, 0x7F800000, 0xFF800000, 1, 0x80000001], np.uint32
    )
    v = np.concatenate(
        [bits.view(np.float32), np.array([0, -1, 1, 2, -np.inf, 3], np.float32)]
    )
    x = np.array([0, 1, 2, 3, 4, 5, 4, 0, 1, 2, 3, 5], np.uint32)
    with built(text) as (kernel,):
        y = call(ctx, kernel, x, v)
    wanted = np.full(7, -np.inf if kind == "max" else np.inf, np.float32)
    with np.errstate(invalid="ignore"):
        {"max": np.maximum, "min": np.minimum}[kind].at(wanted, x, v)
    np.testing.assert_array_equal(y, wanted)


def test_joint_keys_guards_and_the_rest_of_the_stage(ctx: gpu.Context) -> None:
    text = """kernel f(a: i32[m, n], b: u32[n], keep: u32[n], v: f32[m, n], w: f32[n],
        mut total: f32[q, m, p]) {
        total[l, r, k] +=
            2.0 * sum[i when a[r, i] == k and keep[i] != 0 and b[i] == u32(l)]
            v[r, i] * w[i];
    }
    schedule f { scatter }"""
    m, n, p, q = 3, 2500, 5, 7
    random = np.random.default_rng(3)
    a = random.integers(-1, p + 1, (m, n)).astype(np.int32)
    b, keep = (random.integers(0, top, n).astype(np.uint32) for top in (q + 2, 2))
    v, w, total = whole(1, m, n), whole(2, n), whole(3, q, m, p)
    wanted = total.astype(np.float64)
    for r in range(m):
        inside = (a[r] >= 0) & (a[r] < p) & (b < q) & (keep != 0)
        at: Any = (b[inside], r, a[r][inside])
        np.add.at(wanted, at, 2 * (v[r] * w)[inside])
    with built(text) as (kernel,):
        given = [ctx.tensor(each) for each in (a, b, keep, v, w, total)]
        kernel.launch(ctx, tuple(given), (), ())
        np.testing.assert_array_equal(given[-1].numpy(), wanted)


def test_a_guard_of_one_column_leaves_out_no_other(ctx: gpu.Context) -> None:
    text = """kernel f(x: u32[n], v: f32[n, d]) -> y: f32[9, d] {
        y[k, j] = sum[i when x[i] == u32(k) and v[i, j] > 0.0] v[i, j];
    }
    schedule f { scatter }"""
    x, v = keys(1, 3001, 9), whole(4, 3001, 4)
    with built(text) as (kernel,):
        y = call(ctx, kernel, x, v)
    np.testing.assert_array_equal(y, added(x, np.maximum(v, 0), 9))


def test_sums_have_the_same_bits_each_time(ctx: gpu.Context) -> None:
    random = np.random.default_rng(5)
    v = (
        random.standard_normal(20_011) * 10.0 ** random.integers(-6, 7, 20_011)
    ).astype(np.float32)
    x = (random.integers(0, 50, 20_011) ** 2 // 9).astype(np.uint32)
    with built(f"{SUMS}schedule f {{ scatter }}") as (kernel,):
        hashes = {
            hashlib.sha256(call(ctx, kernel, x, v, bins=300).tobytes()).digest()
            for _ in range(examples(8))
        }
    assert len(hashes) == 1


@pytest.mark.nightly
def test_more_terms_than_a_row_of_workgroups(ctx: gpu.Context) -> None:
    n, bins = 3_000_017, 10_007
    x = keys(1, n, bins)
    v = whole(2, n)
    with built(f"{SUMS}schedule f {{ scatter }}") as (kernel,):
        y = call(ctx, kernel, x, v, bins=bins)
    np.testing.assert_array_equal(y, added(x, v, bins))


def chosen(text: str) -> list[str]:
    """Return the strategies that a kernel's one stage is left to, in order."""
    (program,) = compile_text(text, "f.kern").programs
    (stage,) = program.stages
    return [schedule.strategy for schedule in stage.schedules]


def test_it_is_chosen_for_many_terms_and_results() -> None:
    for text in (COUNTS, SUMS, ROWS):
        first, *others = chosen(text)
        assert first == "scatter"
        assert others


@pytest.mark.parametrize(
    "body",
    [
        "y[k] = sum[i when x[i] <= u32(k)] 1;",
        "y[k] = sum[i when x[i] + u32(k) == u32(k)] u32(k);",
        "y[k] = sum[i when x[i] == u32(k) + 1] 1;",
        "y[k] = sum[i] x[i] * x[k];",
        "y[k] = x[k];",
    ],
)
def test_what_has_no_key_does_not_fit(body: str) -> None:
    text = f"kernel f(x: u32[n]) -> y: u32[n] {{ {body} }}"
    (program,) = compile_text(text, "f.kern").programs
    ((_, others),) = [(stage.name, dict(stage.others)) for stage in program.stages]
    reason = others["scatter"]
    assert "compares a key" in reason or "no reduction" in reason


def wide(count: int) -> str:
    """A kernel whose terms are products of so many tensors, beside their keys."""
    names = [f"v{number}" for number in range(count)]
    given = ", ".join(f"{name}: f32[n]" for name in names)
    return f"""kernel f(x: u32[n], bins: u32, {given}) -> y: f32[bins] {{
        y[k] = sum[i when x[i] == u32(k)] {" * ".join(f"{name}[i]" for name in names)};
    }}
    """


def test_four_tensors_are_read_beside_the_lists(ctx: gpu.Context) -> None:
    x, values = keys(3, 3001, 20), [whole(seed, 3001) for seed in range(4)]
    with built(f"{wide(4)}schedule f {{ scatter }}") as (kernel,):
        y = call(ctx, kernel, x, *values, bins=20)
    np.testing.assert_array_equal(y, added(x, np.prod(values, 0), 20))
    assert "scatter" in chosen(wide(4))
    assert "scatter" not in chosen(wide(5))


def test_tensors_may_have_the_names_of_its_buffers(ctx: gpu.Context) -> None:
    text = """kernel f(keys: u32[n], items: f32[n], filled: f32[n], bins: u32)
        -> counts: f32[bins] {
        counts[k] = sum[i when keys[i] == u32(k)] items[i] * filled[i];
    }
    schedule f { scatter }"""
    x, v, w = keys(2, 2000, 30), whole(1, 2000), whole(2, 2000)
    with built(text) as (kernel,):
        y = call(ctx, kernel, x, v, w, bins=30)
    np.testing.assert_array_equal(y, added(x, v * w, 30))


def test_derived_gradients_of_reads_by_number(ctx: gpu.Context) -> None:
    """A number past the end reads the last row, so its gradient goes there."""
    text = """kernel f(table: f32[v, d], ids: u32[n], w: f32[n]) -> y: f32[n, d] {
        y[i, j] = w[i] * table[ids[i], j];
    }
    kernel g = gradient of f by table;
    schedule g { scatter }"""
    ids, w, dy = keys(2, 2000, 30), whole(1, 2000), whole(2, 2000, 8)
    with built(text) as (_, kernel):
        tensors = {"ids": ids, "w": w, "dy": dy}
        given = [tensors[spec.name] for spec in kernel.inputs]
        y = call(ctx, kernel, *given, v_len=30)
    read = np.minimum(ids, 29)
    np.testing.assert_array_equal(y, added(read, dy * w[:, None], 30))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("lists(0)", "no atomic operation does this 'sum': its terms are sorted"),
        ("private(1)", "sorted lists have no bins of workgroups"),
    ],
)
def test_options_that_a_sum_of_floats_would_ignore_are_refused(
    options: str, reason: str
) -> None:
    text = (
        "kernel f(x: u32[n], v: f32[n], bins: u32) -> y: f32[bins] {"
        " y[k] = sum[i when x[i] == u32(k)] v[i]; }"
    )
    with pytest.raises(CompileError) as caught:
        compile_text(f"{text} schedule f {{ scatter {options} }}", "scatter.kern")
    assert reason in str(caught.value)
