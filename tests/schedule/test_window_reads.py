"""Factors that are read in windows: places as sums, and strides by phases.

Results are compared with sums over windows by NumPy, in float64.
"""

from __future__ import annotations

from collections.abc import Generator
from types import ModuleType

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.compile import DSL, built_module
from tests.numeric.oracles_images import conv2d, conv2d_input_gradient

GEMM = "gemm tile(16, 32, 16) micro(4, 4)"


def program() -> str:
    """Return `conv2d` and its gradient in tiles, and a kernel that leaves out row 0."""
    text = (DSL / "conv.kern").read_text("utf-8")
    begin, end = (text.index(x) for x in ("kernel conv2d(", "/// As `conv2d`, plus"))
    conv = text[begin:end]
    inner = conv.replace("kernel conv2d", "kernel inner").replace(
        "on_axis(i * step + u * skip - edge, h)",
        "i * step + u * skip - edge > 0 and i * step + u * skip - edge < i32(h)",
    )
    assert inner.count("> 0") == 1
    gradient = "kernel input_gradient = gradient of conv2d by x;\n"
    schedules = f"schedule conv2d, inner, input_gradient {{ {GEMM} }}\n"
    function = text[text.index("fn on_axis") : text.index("/// y[n, f, i] =")]
    return function + conv + inner + gradient + schedules


@pytest.fixture(scope="module")
def made() -> Generator[ModuleType]:
    with built_module(program()) as module:
        yield module


@pytest.mark.parametrize(
    ("rows", "columns", "stride", "pad"),
    [(1, 1, 1, 0), (1, 1, 2, 0), (1, 1, 1, 1), (1, 2, 1, 0), (3, 3, 1, 1)],
)
def test_small_windows_are_those_of_numpy(
    ctx: gpu.Context, made: ModuleType, rows: int, columns: int, stride: int, pad: int
) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 7, 9), dtype=np.float32)
    k = rng.standard_normal((6, 5, rows, columns), dtype=np.float32)
    how = {"stride": stride, "pad": pad, "dilation": 1}
    image, weights = x.astype(np.float64), k.astype(np.float64)
    want = conv2d(image, weights, **how)
    y = made.conv2d(ctx.tensor(x), ctx.tensor(k), **how)
    np.testing.assert_allclose(y.numpy(), want, atol=2e-5)
    image[:, :, 0] = 0.0
    without = made.inner(ctx.tensor(x), ctx.tensor(k), **how)
    left = conv2d(image, weights, **how)
    np.testing.assert_allclose(without.numpy(), left, atol=2e-5)
    dy = rng.standard_normal(want.shape, dtype=np.float32)
    dx = made.input_gradient(ctx.tensor(k), ctx.tensor(dy), h_len=7, w_len=9, **how)
    wanted = conv2d_input_gradient(
        weights, dy.astype(np.float64), h_len=7, w_len=9, **how
    )
    np.testing.assert_allclose(dx.numpy(), wanted, atol=2e-5)


def codes() -> list[str]:
    """Return the shaders with tiles: of `conv2d`, of `inner`, and two of the gradient."""
    programs = compile_text(program(), "conv.kern").programs
    codes = (shader.code for each in programs for shader in each.shaders)
    return [code for code in codes if "a_tile" in code]


def test_the_place_of_a_term_is_added_to_that_of_a_result() -> None:
    text, *_ = codes()
    assert "let b_0_h_0 = b_0_i_0 * u32(u.step) - u32(u.edge);" in text
    assert "let b_0_h = b_0_u * u32(u.skip);" in text
    assert "let is_inside = h < u.h && w < u.w;" in text


def test_another_condition_is_kept_whole() -> None:
    _, inner, *_ = codes()
    assert "let is_inside" not in inner


def test_no_place_is_divided() -> None:
    *_, undivided, phased = codes()
    assert "/ u.step" not in undivided
    assert "first_divided" in phased
    assert "remainder" not in phased


STRIDED = """
kernel halved(x: f32[b, c, h], k: f32[o, c, r]) -> y: f32[b, o, h / 2] {
    y[n, f, i] = sum[q, u] k[f, q, u] * if
        i * 2 + i32(u) - 1 >= 0 and i * 2 + i32(u) - 1 < i32(h)
    {
        x[n, q, i * 2 + u - 1]
    } else {
        0.0
    };
}
kernel gradient_of_halved = gradient of halved by x;
kernel moved(x: f32[b, c, h], k: f32[o, c, r], lambda: u32)
    -> y: f32[b, o, (h + lambda - 1) / lambda] {
    require lambda > 0;
    host by = i32(lambda);
    y[n, f, i] = sum[q, u] k[f, q, u] * if
        i * by - u >= 0 and i * by - u < i32(h)
    {
        x[n, q, i * by - u]
    } else {
        0.0
    };
}
kernel gradient_of_moved = gradient of moved by x;
schedule gradient_of_halved, gradient_of_moved { GEMM }
"""


@pytest.mark.parametrize("length", [8, 13, 40])
def test_strides_of_the_program_and_of_the_call(ctx: gpu.Context, length: int) -> None:
    rng = np.random.default_rng(length)
    k = rng.standard_normal((4, 3, 3), dtype=np.float32)
    with built_module(STRIDED.replace("GEMM", GEMM)) as module:
        for name, step, first, sign in (("halved", 2, -1, 1), ("moved", 3, 0, -1)):
            places = length // 2 if name == "halved" else -(-length // 3)
            dy = rng.standard_normal((2, 4, places), dtype=np.float32)
            want = np.zeros((2, 3, length))
            for i in range(places):
                for u in range(3):
                    place = i * step + first + sign * u
                    if 0 <= place < length:
                        want[:, :, place] += np.einsum(
                            "nf,fq->nq", dy[:, :, i], k[:, :, u]
                        )
            given = {} if name == "halved" else {"lambda_": 3}
            function = getattr(module, f"gradient_of_{name}")
            found = function(ctx.tensor(k), ctx.tensor(dy), h_len=length, **given)
            np.testing.assert_allclose(found.numpy(), want, atol=1e-5)


SQUARE = """
kernel square(x: f16[b, c, h, h], k: f32[o, c, 3, 3]) -> y: f32[b, o, h, h] {
    y[n, f, i, j] = sum[q, u, v] k[f, q, u, v] * if
        i + u - 1 >= 0 and i + u - 1 < i32(h) and j + v - 1 >= 0 and j + v - 1 < i32(h)
    {
        x[n, q, i + u - 1, j + v - 1]
    } else {
        0.0
    };
}
schedule square { GEMM }
"""


def test_axes_of_the_same_length_and_halves(ctx: gpu.Context) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 11, 11)).astype(np.float16)
    k = rng.standard_normal((5, 3, 3, 3), dtype=np.float32)
    with built_module(SQUARE.replace("GEMM", GEMM)) as module:
        found = module.square(ctx.tensor(x), ctx.tensor(k)).numpy()
    want = conv2d(
        x.astype(np.float64), k.astype(np.float64), stride=1, pad=1, dilation=1
    )
    np.testing.assert_allclose(found, want, atol=2e-5)
