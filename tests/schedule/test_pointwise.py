"""Windows of one element are read as a matrix is, and only where that leaves nothing out.

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


@pytest.fixture(scope="module")
def made() -> Generator[ModuleType]:
    """`conv2d` and its gradient in tiles, and a kernel that leaves out row 0."""
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
    with built_module(function + conv + inner + gradient + schedules) as module:
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


def test_windows_of_one_element_have_a_form_of_their_own() -> None:
    text = (DSL / "conv.kern").read_text("utf-8")
    begin = text.index("kernel conv2d(")
    own = text[text.index("fn on_axis") : text.index("/// y[n, f, i] =")]
    own += text[begin : text.index("/// As `conv2d`, plus", begin)]
    own += f"schedule conv2d {{ {GEMM} }}\n"
    (program,) = compile_text(own, "conv.kern").programs
    (shader,) = program.shaders
    assert "return x[((n * u.c + q) * u.h + i) * u.w + j];" in shader.code
