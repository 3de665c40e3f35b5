"""Convolutions by kernels of one element: products of matrices, where nothing is padded.

Results are compared with sums over windows by NumPy, in float64; which shader runs is
what the context answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from kerngen.runtime import Context
from tests.compile import DSL, built_module
from tests.numeric.oracles_images import conv2d, conv2d_input_gradient


def program(stride: str) -> str:
    """Return the convolutions in tiles, with another name of the stride."""
    text = (DSL / "conv.kern").read_text("utf-8").replace("stride", stride)
    tiles = "gemm tile(16, 32, 16) micro(4, 4)"
    names = "conv2d, conv2d_bias, conv2d_input_gradient"
    return f"{text}\nschedule {names} {{ {tiles} }}\n"


@pytest.fixture(scope="module")
def made() -> Iterator[ModuleType]:
    # A name that Python reserves: conditions on it are by another name in plans.
    with built_module(program("lambda")) as module:
        yield module


POINTWISE, WINDOWS = "pointwise", "edge"
CASES = [
    # channels, kernel, image, stride, pad: the entry point
    ((32, (1, 1), (6, 10), 1, 0), POINTWISE),
    ((20, (1, 1), (6, 10), 1, 0), POINTWISE),
    ((16, (1, 1), (4, 1), 1, 0), POINTWISE),
    ((12, (1, 1), (6, 10), 1, 0), WINDOWS),  # fewer terms than a tile has
    ((18, (1, 1), (6, 10), 1, 0), WINDOWS),
    ((32, (1, 1), (5, 9), 1, 0), WINDOWS),
    ((32, (1, 1), (6, 10), 2, 0), WINDOWS),
    ((32, (1, 1), (6, 10), 1, 1), WINDOWS),
    ((32, (1, 2), (6, 11), 1, 0), WINDOWS),
    ((32, (2, 1), (7, 10), 1, 0), WINDOWS),
    ((32, (3, 3), (6, 10), 1, 1), WINDOWS),
]


@pytest.mark.parametrize(("case", "entry"), CASES)
@pytest.mark.parametrize("outputs", [32, pytest.param(1, marks=pytest.mark.nightly)])
def test_results_are_those_of_numpy(
    ctx: Context,
    made: ModuleType,
    case: tuple[int, tuple[int, int], tuple[int, int], int, int],
    entry: str,
    outputs: int,
) -> None:
    channels, kernel, image, stride, pad = case
    rng = np.random.default_rng(channels)
    x = rng.standard_normal((3, channels, *image), dtype=np.float32)
    k = rng.standard_normal((outputs, channels, *kernel), dtype=np.float32)
    bias = rng.standard_normal(outputs, dtype=np.float32)
    own = {"lambda_": stride, "pad": pad}
    how = {"stride": stride, "pad": pad, "dilation": 1}
    image64, weights = x.astype(np.float64), k.astype(np.float64)
    want = conv2d(image64, weights, **how)
    y = made.conv2d(ctx.tensor(x), ctx.tensor(k), **own)
    np.testing.assert_allclose(y.numpy(), want, atol=1e-4)
    y = made.conv2d_bias(ctx.tensor(x), ctx.tensor(k), ctx.tensor(bias), **own)
    shifted = want + bias[:, None, None]
    np.testing.assert_allclose(y.numpy(), shifted, atol=1e-4)
    dy = rng.standard_normal(want.shape, dtype=np.float32)
    lengths = {"h_len": image[0], "w_len": image[1]}
    dx = made.conv2d_input_gradient(ctx.tensor(k), ctx.tensor(dy), **lengths, **own)
    wanted = conv2d_input_gradient(weights, dy.astype(np.float64), **lengths, **how)
    np.testing.assert_allclose(dx.numpy(), wanted, atol=1e-4)
    dims = {"b": 3, "c": channels, "o": outputs, "h": image[0], "w": image[1]}
    dims |= {"r": kernel[0], "s": kernel[1], "dilation": 1}
    (choice,) = ctx.choices(made.conv2d, **dims, **own)
    assert choice.shaders[0].endswith(f":{entry}")


PARTS = """
kernel of_channels(k: f32[o, c2, s], x: f32[b, c, w]) -> y: f32[b, o, w - s + 1] {
    require c2 <= c;
    y[n, f, i] = sum[q, u] k[f, q, u] * x[n, q, i + u];
}
kernel of_kernel(k: f32[o, c, s], x: f32[b, c, w]) -> y: f32[b, o, w] {
    require s >= 1;
    y[n, f, i] = sum[q, u < 1] k[f, q, u] * x[n, q, i + u];
}
schedule of_channels, of_kernel { gemm tile(16, 32, 16) micro(4, 4) }
"""


def test_an_index_over_a_part_of_its_axis(ctx: Context) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 48, 32), dtype=np.float32)
    few = rng.standard_normal((32, 32, 1), dtype=np.float32)
    wide = rng.standard_normal((32, 48, 2), dtype=np.float32)
    with built_module(PARTS) as module:
        y = module.of_channels(ctx.tensor(few), ctx.tensor(x)).numpy()
        np.testing.assert_allclose(
            y, np.einsum("fq,nqi->nfi", few[:, :, 0], x[:, :32]), atol=1e-4
        )
        y = module.of_kernel(ctx.tensor(wide), ctx.tensor(x)).numpy()
        np.testing.assert_allclose(
            y, np.einsum("fq,nqi->nfi", wide[:, :, 0], x), atol=1e-4
        )
