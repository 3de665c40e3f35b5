"""Products that read the matrix once for several rows give what NumPy gives.

Whatever the number of rows, at once and in all, and wherever vectors and slices end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.plan.tree import choices_in
from kerngen.runtime.calls.kernel import Kernel
from kerngen.source.diagnostic import CompileError
from tests.budget import sampled
from tests.compile import built
from tests.language.cases import Array, Inputs

KERNEL = """
kernel f(a: f32[{a}], b: f32[{b}], bias: f32[n]) -> c: f32[m, n] {{
    let z[i, j] = 2.0 * sum[p] a[{a_at}] * b[{b_at}] + bias[j];
    c[i, j] = z[i, j] * z[i, j] + f32(i - j);
}}
schedule f {{ gemv rows({count}) }}
"""
OPTIONS = {
    "rowwise": (
        "columns(2)",
        "columns(4) lanes(32, 4) unroll(2)",
        "rows(3) columns(2) lanes(64, 4)",
        "rows(8) columns(8) lanes(16, 16)",
        "rows(5) columns(3) lanes(8, 4) unroll(3)",
        "rows(2) lanes(1, 64)",
        "lanes(256, 1) unroll(8)",
        "rows(2) columns(8) lanes(2, 2)",
    ),
    "columnwise": (
        "split(1)",
        "rows(3) split(3)",
        "rows(8) lanes(32, 8) split(1)",
        "rows(4) lanes(64, 1)",
        "lanes(1, 64)",
        "rows(16) lanes(2, 8) split(9)",
        "rows(5) lanes(128, 2)",
    ),
    "transposed": ("rows(8) lanes(32, 8) split(1)", "rows(16) lanes(2, 8) split(9)"),
}
"""Every option, and lanes that are few and many along and across."""
REFUSED = {
    ("rowwise", "lanes(48, 2)"): "powers of two",
    ("rowwise", "lanes(512, 4)"): "no adapter runs more than 1024",
    ("rowwise", "rows(16) columns(8)"): "at most 64 sums",
    ("rowwise", "split(2)"): "'split' is for matrices that are not contiguous along p",
    (
        "columnwise",
        "unroll(2)",
    ): "'unroll' is for matrices that are not contiguous along j",
    (
        "columnwise",
        "columns(2)",
    ): "'columns' is for matrices that are not contiguous along j",
}
BATCHES = """
kernel f(a: f32[{a}], b: f32[{b}]) -> c: f32[s, h, m, n] {{
    c[t, g, i, j] = sum[p] a[{a_at}] * b[{b_at}];
}}
schedule f {{ gemv rows({count}) }}
"""
LYING = {
    "rowwise": {"a": "m, k", "a_at": "i, p", "b": "n, k", "b_at": "j, p"},
    "columnwise": {"a": "m, k", "a_at": "i, p", "b": "k, n", "b_at": "p, j"},
    "transposed": {"a": "k, m", "a_at": "p, i", "b": "k, n", "b_at": "p, j"},
}
BATCHES_LYING = {
    "rowwise": {
        "a": "s, m, h, k",
        "a_at": "t, i, g, p",
        "b": "s, h, n, k",
        "b_at": "t, g, j, p",
    },
    "columnwise": {
        "a": "s, m, h, k",
        "a_at": "t, i, g, p",
        "b": "s, h, k, n",
        "b_at": "t, g, p, j",
    },
    "transposed": {
        "a": "s, k, h, m",
        "a_at": "t, p, g, i",
        "b": "s, h, k, n",
        "b_at": "t, g, p, j",
    },
}
AT_ONCE = (2, 3, 4, 8, 16)
ROWS = range(10)
LENGTHS = ((1, 1), (5, 0), (5, 3), (1, 30), (68, 132), (65, 514), (4, 1040))
"""Columns and terms: off vectors, lanes, slices and parts, and multiples of vectors."""


@pytest.fixture(scope="module")
def least(ctx: gpu.Context) -> Iterator[gpu.Context]:
    """A context with WebGPU's default limits on the adapter of the tests."""
    del ctx
    with gpu.open(adapter="software", limits=gpu.WEBGPU_LIMITS) as opened:
        yield opened


def run(ctx: gpu.Context, kernel: Kernel, *arrays: Array) -> Array:
    """What the device gives."""
    tensors = tuple(ctx.tensor(np.ascontiguousarray(array)) for array in arrays)
    (c,) = kernel.launch(ctx, tensors, (), (None,))
    return c.numpy()


def laid(lying: str, a: Array, b: Array) -> tuple[Array, Array]:
    """The factors as they lie in memory."""
    return (
        a.T if lying == "transposed" else a,
        b.T if lying == "rowwise" else b,
    )


@pytest.mark.parametrize(
    ("count", "lying"),
    sampled(product(AT_ONCE, LYING), 3, lambda case: f"{case[0]}-{case[1]}"),
)
def test_rows_agree(least: gpu.Context, lying: str, count: int) -> None:
    with built(KERNEL.format(count=count, **LYING[lying])) as (kernel,):
        named = [case.name for case in next(choices_in(kernel.body)).cases]
        assert named == [f"gemv_rows{count}"]
        for rows in ROWS:
            check(least, kernel, lying, rows)


def check(ctx: gpu.Context, kernel: Kernel, lying: str, rows: int) -> None:
    """Compare a kernel with NumPy, for some rows and all lengths; sums are exact."""
    for n, k in LENGTHS:
        draw = Inputs(rows + n + k)
        a, b, bias = draw.f32(rows, k), draw.f32(k, n), draw.f32(n)
        z = 2 * (a @ b) + bias
        wanted = z * z + np.subtract.outer(np.arange(rows), np.arange(n))
        got = run(ctx, kernel, *laid(lying, a, b), bias)
        np.testing.assert_array_equal(got, wanted, f"{rows} x {n} x {k}")


@pytest.mark.parametrize(
    ("lying", "options"),
    sampled([(lying, o) for lying in OPTIONS for o in OPTIONS[lying]], 4, "-".join),
)
def test_options_agree(least: gpu.Context, lying: str, options: str) -> None:
    asked = KERNEL.format(count=1, **LYING[lying]).replace("rows(1)", options)
    with built(asked) as (kernel,):
        for rows in (1, 4, 9):
            check(least, kernel, lying, rows)


@pytest.mark.parametrize(("lying", "options"), REFUSED)
def test_options_are_refused(lying: str, options: str) -> None:
    asked = KERNEL.format(count=1, **LYING[lying]).replace("rows(1)", options)
    with pytest.raises(CompileError) as raised:
        compile_text(asked, "f.kern")
    (fault,) = raised.value.diagnostics
    assert REFUSED[lying, options] in fault.label


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("lying", BATCHES_LYING)
def test_batches_of_blocks_agree(least: gpu.Context, lying: str, count: int) -> None:
    text = BATCHES.format(count=count, **BATCHES_LYING[lying])
    with built(text) as (kernel,):
        for m, n, k in ((1, 5, 3), (3, 70, 8), (8, 8, 260)):
            draw = Inputs(m)
            a, b = draw.f32(2, m, 3, k), draw.f32(2, 3, k, n)
            wanted = np.einsum("tigp,tgpj->tgij", a, b)
            if lying == "transposed":
                a = a.swapaxes(1, 3)
            if lying == "rowwise":
                b = b.swapaxes(2, 3)
            np.testing.assert_array_equal(run(least, kernel, a, b), wanted)


WEIGHTED = """
kernel f(a: f32[k, m], w: f32[k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[p, i] * w[p] * b[p, j];
}
schedule f { gemv rows(4) }
"""


def test_rows_are_vectors_beside_numbers_of_the_terms(least: gpu.Context) -> None:
    """The matrix decides how a factor lies, not the vector in it."""
    (program,) = compile_text(WEIGHTED, "f.kern").programs
    assert "a: array<vec4f>" in next(iter(program.shaders)).code
    with built(WEIGHTED) as (kernel,):
        for m, n, k in ((4, 8, 3), (12, 68, 130), (7, 8, 5)):
            draw = Inputs(m)
            a, w, b = draw.f32(k, m), draw.f32(k), draw.f32(k, n)
            got = run(least, kernel, a, w, b)
            np.testing.assert_array_equal(got, (a * w[:, None]).T @ b)


SCALED = """
kernel f(a: {kind}[k, h, m], s: f32[m], b: f32[k, h, n]) -> c: f32[m, n] {{
    c[i, j] = sum[p, q] f32(a[p, q, i]) * s[i] * b[p, q, j];
}}
schedule f {{ gemv rows({count}) }}
"""


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("kind", ["f32", "f16", "i8", "i32"])
def test_four_rows_are_a_vector_of_the_left_factor(
    least: gpu.Context, kind: str, count: int
) -> None:
    """Of any elements, times numbers of the rows, and with several indices to sum over."""
    text = SCALED.format(kind=kind, count=count)
    (program,) = compile_text(text, "f.kern").programs
    first = next(iter(program.shaders)).code.replace("left_0_3", "left_3")
    assert "let left_3 = " in first
    dtype = {"f32": "f4", "f16": "f2", "i8": "i1", "i32": "i4"}[kind]
    with built(text) as (kernel,):
        for m, n, k, h in ((4, 8, 3, 2), (12, 68, 70, 4), (20, 5, 9, 3), (7, 8, 5, 5)):
            draw = Inputs(m)
            a, s, b = draw.f32(k, h, m), draw.f32(m), draw.f32(k, h, n)
            wanted = np.einsum("pqi,i,pqj->ij", a, s, b)
            got = run(least, kernel, a.astype(dtype), s, b)
            np.testing.assert_array_equal(got, wanted, f"{m} x {n} x {k} x {h}")


@pytest.mark.parametrize("count", [4, 8])
def test_rows_of_a_wider_factor_are_vectors_if_all_are(
    least: gpu.Context, count: int
) -> None:
    """A factor may have whole vectors of columns where the result has no whole rows of them."""
    text = f"""
        kernel f(a: f32[k, w], b: f32[k, n]) -> c: f32[w - 2, n] {{
            c[i, j] = sum[p] a[p, i] * b[p, j];
        }}
        schedule f {{ gemv rows({count}) }}
    """
    with built(text) as (kernel,):
        for m in (1, 2, 4, 6, 10, 12, 14):
            draw = Inputs(m)
            a, b = draw.f32(5, m + 2), draw.f32(5, 8)
            got = run(least, kernel, a, b)
            np.testing.assert_array_equal(got, a[:, :m].T @ b, f"{m} rows")


@pytest.mark.parametrize("lying", LYING)
def test_the_last_row_stays_out_of_the_others(ctx: gpu.Context, lying: str) -> None:
    """It is read in place of those beyond, here by three of a block of four."""
    a, bias = np.ones((5, 6), np.float32), np.zeros(7, np.float32)
    a[-1] = np.inf
    b = np.ones((7, 6) if lying == "rowwise" else (6, 7), np.float32)
    a = a.T if lying == "transposed" else a
    with built(KERNEL.format(count=4, **LYING[lying])) as (kernel,):
        finite = np.isfinite(run(ctx, kernel, a, b, bias))
        assert finite[:-1].all()
        assert not finite[-1].any()


@pytest.mark.parametrize("lying", LYING)
def test_the_matrix_is_read_once(lying: str) -> None:
    """In the loops of every shader that reads it, however many rows there are.

    Along columns a turn takes four terms, and what is left over one; of one part, too.  Only
    vectors of terms are whole.
    """
    text = KERNEL.format(count=8, **LYING[lying])
    (program,) = compile_text(text, "f.kern").programs
    codes = dict.fromkeys(shader.code for shader in program.shaders)
    shaders = [code for code in codes if "> b:" in code]
    reads = [shader.count("= b[") for shader in shaders]
    assert (
        sorted(reads)
        == {
            "rowwise": [1, 1],
            "columnwise": [4, 4, 5, 5, 5, 5],
            "transposed": [5, 5, 5, 5, 5, 5],
        }[lying]
    )
    for shader, read in zip(shaders, reads, strict=True):
        assert shader.count("c_sum_7 +=") + shader.count("z_sum_7 +=") == read


@pytest.mark.parametrize("lying", LYING)
def test_one_row_at_once_is_the_default(lying: str) -> None:
    asked = KERNEL.format(count=1, **LYING[lying])
    plain = asked.replace(" rows(1)", "")
    (one,), (other,) = (
        compile_text(text, "f.kern").programs for text in (asked, plain)
    )
    texts = [
        [shader.code for v in s.variants for shader in v.shaders]
        for program in (one, other)
        for s in program.stages[0].schedules
    ]
    assert texts[0] == texts[1]


def test_each_number_of_rows_has_its_own_shaders() -> None:
    four = "schedule f when m > 2 { gemv rows(4) }"
    text = KERNEL.format(count=2, **LYING["rowwise"])
    compiled = compile_text(text.replace("schedule", f"{four} schedule"), "f.kern")
    ((stage,),) = (program.stages for program in compiled.programs)
    first, second = stage.schedules
    assert (first.label, second.label) == ("gemv_rows4", "gemv_rows2")
    assert first.variants[0].shaders[0].code.count("+= dot(a[") == 4
    assert second.variants[0].shaders[0].code.count("+= dot(a[") == 6
