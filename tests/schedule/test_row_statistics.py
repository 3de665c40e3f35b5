"""A product with a statistic of its rows, as of a norm, runs in one dispatch of `gemv`.

Both are what float64 gives, whatever the options; and stages that only look like such a pair
run one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError
from tests.compile import built_module
from tests.language.cases import Array

NORM = """
kernel f(x: f32[s, d], gain: f32[d], bias: f32[s], w: f32[f, d]) -> y: f32[s, f] {
    let half = 0.5;
    let scale[i] = bias[i] / sqrt((sum[q] x[i, q] * x[i, q]) * half + half);
    y[i, j] = scale[i] * (sum[p] (x[i, p] * gain[p]) * w[j, p]) + scale[i];
}
"""
OPTIONS = (
    "gemv",
    "gemv columns(3) unroll(1)",
    "gemv columns(2) lanes(16, 4) unroll(3)",
    "gemv rows(3) columns(2) lanes(64, 4)",
    "gemv rows(4) columns(4) lanes(64, 4)",
    "gemv rows(8) columns(8) lanes(32, 4)",
    "gemv rows(2) lanes(1, 64)",
    "gemv lanes(1024, 1) columns(5)",
)
"""Sums of a lane that are joined in one round, and in several; groups of lanes, and one alone."""
SIZES = ((1, 1040, 7), (5, 132, 9), (4, 30, 3), (9, 1, 1), (3, 0, 5), (0, 8, 8))


@pytest.fixture(scope="module")
def least(ctx: gpu.Context) -> Iterator[gpu.Context]:
    """A context with WebGPU's default limits on the adapter of the tests."""
    del ctx
    with gpu.open(adapter="software", limits=gpu.WEBGPU_LIMITS) as opened:
        yield opened


def normed(x: Array, gain: Array, bias: Array, w: Array) -> Array:
    """What `NORM` computes, in float64."""
    x, gain, bias, w = (each.astype(np.float64) for each in (x, gain, bias, w))
    scale = bias / np.sqrt((x * x).sum(-1) / 2 + 0.5)
    found: Array = scale[:, None] * ((x * gain) @ w.T) + scale[:, None]
    return found


@pytest.mark.parametrize("options", OPTIONS)
def test_statistics_and_products_are_those_of_float64(
    ctx: gpu.Context, options: str
) -> None:
    rng = np.random.default_rng(1)
    with built_module(f"{NORM}schedule f.scale {{ {options} }}") as module:
        for s, d, f in SIZES:
            shapes = (s, d), (d,), (s,), (f, d)
            given = [rng.standard_normal(n, dtype=np.float32) for n in shapes]
            before = ctx.counters.snapshot()
            y = module.f(*map(ctx.tensor, given))
            dispatches = (ctx.counters - before).dispatches
            assert dispatches == (1 if s * f else 0)
            np.testing.assert_allclose(y.numpy(), normed(*given), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("sizes", "dispatches"),
    [
        ((1, 1024, 600), 1),  # a token
        ((1, 64, 8000), 1),
        ((1, 60, 600), 2),
        ((1, 500, 8200), 2),
        ((1, 1024, 500), 2),
        ((8, 1024, 600), 1),  # a few rows of a small matrix
        ((9, 1024, 600), 2),
        ((4, 2048, 2100), 2),  # a few rows of a large matrix
    ],
)
def test_few_rows_are_chosen(
    least: gpu.Context, sizes: tuple[int, int, int], dispatches: int
) -> None:
    """By default, within the limits that WebGPU promises; a matrix of many rows has tiles."""
    s, d, f = sizes
    rng = np.random.default_rng(2)
    shapes = (s, d), (d,), (s,), (f, d)
    given = [rng.standard_normal(n, dtype=np.float32) for n in shapes]
    with built_module(NORM) as module:
        before = least.counters.snapshot()
        y = module.f(*map(least.tensor, given))
        assert (least.counters - before).dispatches == dispatches
        np.testing.assert_allclose(y.numpy(), normed(*given), rtol=1e-4, atol=1e-4)


def test_halves_batches_and_a_vector(ctx: gpu.Context) -> None:
    """Factors in f16, whose statistic has two indices; and that of a vector."""
    text = """
    kernel f(x: f16[b, s, d], w: f16[f, d]) -> y: f32[b, s, f] {
        let size[t, i] = sum[p] abs(x[t, i, p]);
        y[t, i, j] = (sum[p] x[t, i, p] * w[j, p]) / (size[t, i] + 1.0);
    }
    schedule f.size { gemv rows(2) columns(2) lanes(32, 2) }
    kernel g(x: f32[d], w: f32[f, d]) -> y: f32[f] {
        let size = sum[p] abs(x[p]);
        y[j] = size * sum[p] w[j, p] * x[p];
    }
    schedule g.size { gemv columns(3) }
    """
    rng = np.random.default_rng(3)
    with built_module(text) as module:
        for d in (64, 37):
            x, w = rng.standard_normal((2, 3, d)), rng.standard_normal((5, d))
            halves = [each.astype(np.float16) for each in (x, w)]
            x, w = (each.astype(np.float64) for each in halves)
            wanted = (x @ w.T) / (np.abs(x).sum(-1, keepdims=True) + 1)
            found = module.f(*map(ctx.tensor, halves)).numpy()
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
            row, matrix = x[0, 0].astype(np.float32), w.astype(np.float32)
            found = module.g(ctx.tensor(row), ctx.tensor(matrix)).numpy()
            wanted = np.abs(x[0, 0]).sum() * (w @ x[0, 0])
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-4)


NARROW = """
kernel f(x: f32[s, d], gain: f32[d], w: TYPE[f, d], scale: f32[f, (d + 31) / 32]) -> y: f32[s, f] {
    let size[i] = 1.0 / sqrt(sum[p] x[i, p] * x[i, p] + 1.0);
    y[i, j] = size[i] * sum[p] (x[i, p] * gain[p]) * (scale[j, p / 32] * f32(w[j, p]));
}
schedule f.size { OPTIONS }
"""
OF_WORDS = (
    "gemv",
    "gemv columns(4) lanes(32, 4)",
    "gemv columns(4) lanes(16, 8)",
    "gemv lanes(64, 4)",
    "gemv rows(2) columns(4)",
    "gemv rows(4) columns(4) lanes(64, 4)",
)


@pytest.mark.parametrize("options", OF_WORDS)
@pytest.mark.parametrize("type_", ["i4", "i8"])
def test_matrices_of_narrow_integers(
    ctx: gpu.Context, type_: str, options: str
) -> None:
    """All lanes copy the rows together, and each adds what it copies."""
    element, most = {"i4": (gpu.i4, 8), "i8": (gpu.i8, 128)}[type_]
    text = NARROW.replace("TYPE", type_).replace("OPTIONS", options)
    rng = np.random.default_rng(4)
    with built_module(text) as module:
        for s, d, f in ((1, 2080, 9), (3, 256, 33), (5, 40, 6), (2, 37, 5), (9, 32, 1)):
            shapes = (s, d), (d,), (f, -(-d // 32))
            x, gain, scale = (rng.standard_normal(n, dtype=np.float32) for n in shapes)
            w = rng.integers(-most, most, (f, d), np.int8)
            given = [
                *map(ctx.tensor, (x, gain)),
                ctx.tensor(w, element),
                ctx.tensor(scale),
            ]
            before = ctx.counters.snapshot()
            found = module.f(*given)
            assert (ctx.counters - before).dispatches == 1
            whole = np.repeat(scale, 32, 1)[:, :d].astype(np.float64) * w
            x = x.astype(np.float64)
            wanted = (x * gain) @ whole.T / np.sqrt((x * x).sum(-1, keepdims=True) + 1)
            np.testing.assert_allclose(
                found.numpy(), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max()
            )


PAIR = """
kernel f(x: f32[s, d], w: f32[f, d], z: f32[s, d], v: f16[s]) -> y: f32[s, f], t: f32[s] {
    let n[i] = %s;
    y[i, j] = %s;
    t[i] = %s;
}
schedule f.n { gemv }
"""
SUM, PRODUCT, NOTHING = "sum[p] x[i, p]", "sum[p] x[i, p] * w[j, p]", "z[i, 0]"
SCALED = f"n[i] * {PRODUCT}"
APART = {
    "read elsewhere": (SUM, SCALED, "n[i]", "others than 'y' read it"),
    "read before": (
        SUM,
        "sum[p] (x[i, p] - n[i]) * w[j, p]",
        NOTHING,
        "needs it before its own sum",
    ),
    "of another row": (
        SUM,
        f"n[s - 1 - i] * {PRODUCT}",
        NOTHING,
        "not read at the row",
    ),
    "of two rows": (SUM, f"n[i] * n[0] * {PRODUCT}", NOTHING, "at several places"),
    "of another tensor": ("sum[p] z[i, p]", SCALED, NOTHING, "other tensors"),
    "of no tensor": ("sum[p < d] f32(i + p)", SCALED, NOTHING, "other tensors"),
    "a maximum": ("max[p] x[i, p]", SCALED, NOTHING, "no plain sum"),
    "of some terms": (
        "sum[p when x[i, p] > 0.0] x[i, p]",
        SCALED,
        NOTHING,
        "no plain sum",
    ),
    "of no product": (SUM, "n[i] * w[j, 0]", NOTHING, "j$|one depends on i"),
}
"""Statistics that must be known before the product, or are not sums of its own terms."""


def test_a_statistic_and_its_product_are_a_pair() -> None:
    (program,) = compile_text(PAIR % (SUM, SCALED, NOTHING), "f").programs
    assert "n" not in {binding.name for x in program.shaders for binding in x.bindings}


@pytest.mark.parametrize("case", APART)
def test_what_only_looks_like_a_pair_is_refused(case: str) -> None:
    *text, reason = APART[case]
    with pytest.raises(CompileError, match=reason):
        compile_text(PAIR % (*text,), "f.kern")


WRITTEN = """
kernel f(x: f32[s, d], w: f32[f, d], mut z: f32[s, f]) {
    let n[i] = z[i, 0] * sum[p] x[i, p];
    z[i, j] = n[i] * sum[p] x[i, p] * w[j, p];
}
"""
OF_CODES = """
kernel f(x: f32[s, d], w: i8[f, d], c: f32[f, (d + 31) / 32]) -> y: f32[s, f] {
    let n = sum[p] f32(w[0, p]);
    y[i, j] = (n + 1.0) * sum[p] x[i, p] * (c[j, p / 32] * f32(w[j, p]));
}
"""
RESULT = """
kernel f(x: f32[s, d], w: f32[f, d]) -> n: f32[s], y: f32[s, f] {
    n[i] = sum[p] x[i, p];
    y[i, j] = n[i] * sum[p] x[i, p] * w[j, p];
}
"""
MANY = """
kernel f(
    x: f32[s, d], w: f32[f, d], a: f32[s], b: f32[s], c: f32[s], e: f32[f], g: f32[f], h: f32[f]
) -> y: f32[s, f] {
    let n[i] = (sum[p] x[i, p] * x[i, p]) + a[i] + b[i] + c[i];
    y[i, j] = n[i] * (sum[p] x[i, p] * w[j, p]) + e[j] + g[j] + h[j];
}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WRITTEN, "'z' writes what it reads"),  # another workgroup's rows, maybe
        (OF_CODES, "narrow integers"),  # the matrix, which is bound as words
        (RESULT, "a result of the kernel"),
        (MANY, "more than 8 tensors"),
    ],
)
def test_stages_that_must_not_share_a_dispatch(text: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compile_text(f"{text}schedule f.n {{ gemv }}", "f.kern")


def test_by_default_those_run_apart(least: gpu.Context) -> None:
    rng = np.random.default_rng(5)

    def drawn(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    x, scale = drawn(1, 256), drawn(9, 8)
    w = rng.integers(-128, 128, (9, 256), np.int8)
    with built_module(OF_CODES) as module:
        found = module.f(least.tensor(x), least.tensor(w, gpu.i8), least.tensor(scale))
        whole = np.repeat(scale, 32, 1).astype(np.float64) * w
        wanted = (w[0].sum(dtype=np.float64) + 1) * (x.astype(np.float64) @ whole.T)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4)
    x, w = drawn(1, 128), drawn(700, 128)
    rows, columns = [drawn(1) for _ in range(3)], [drawn(700) for _ in range(3)]
    with built_module(MANY) as module:
        found = module.f(*map(least.tensor, (x, w, *rows, *columns)))
        n = (x.astype(np.float64) ** 2).sum() + sum(rows)
        wanted = n * (x.astype(np.float64) @ w.T.astype(np.float64)) + sum(columns)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-3)
