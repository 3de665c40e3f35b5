"""Products that are no matrices, as convolutions: what their tiles and counters give.

The results are compared with sums of shifted images in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime.calls.choices import kernel_of
from tests.budget import sampled
from tests.compile import built_module

pytestmark = pytest.mark.usefixtures("always_shared")

Array: TypeAlias = NDArray[Any]

CONV = """
fn inside(place: i32, length: i32) -> bool {
    place >= 0 and place < length
}
kernel conv(x: f32[b, c, h, w], k: f32[o, c, r, s], stride: u32, pad: u32, dilation: u32)
    -> y: f32[
        b, o,
        (h + 2 * pad + stride - 1 - dilation * (r - 1)) / stride,
        (w + 2 * pad + stride - 1 - dilation * (s - 1)) / stride,
    ] {
    host step = i32(stride);
    host skip = i32(dilation);
    host edge = i32(pad);
    y[n, f, i, j] = sum[q, u, v] k[f, q, u, v] * if
        inside(i * step + u * skip - edge, h) and inside(j * step + v * skip - edge, w)
    {
        x[n, q, i * step + u * skip - edge, j * step + v * skip - edge]
    } else {
        0.0
    };
}
kernel by_image = gradient of conv by x;
kernel by_kernels = gradient of conv by k;
schedule conv, by_image, by_kernels { gemm TILES }
"""
WAYS = (
    "tile(32, 16, 8) micro(4, 4) stream(5)",
    "tile(16, 32, 16) micro(4, 4)",
    "tile(64, 32, 32) micro(8, 4) stream(2)",
    "tile(32, 32, 32) micro(4, 4) stream(3) slices(2)",
    "tile(32, 128, 8) micro(8, 4)",
)


@final
@dataclass(frozen=True)
class Sizes:
    """The sizes of a convolution; its kernels are `r` x `s`."""

    b: int
    c: int
    h: int
    w: int
    o: int
    r: int
    s: int
    stride: int = 1
    pad: int = 0
    dilation: int = 1

    def of_result(self) -> tuple[int, int]:
        """Return the height and width of the result."""
        spans = (self.h, self.r), (self.w, self.s)
        high, wide = (
            (size + 2 * self.pad - self.dilation * (kernel - 1) - 1) // self.stride + 1
            for size, kernel in spans
        )
        return high, wide

    def seen(self, padded: Array, u: int, v: int) -> Array:
        """Return the view of a padded image that an element of the kernels meets."""
        high, wide = self.of_result()
        rows, columns = u * self.dilation, v * self.dilation
        view: Array = padded[
            :,
            :,
            rows : rows + (high - 1) * self.stride + 1 : self.stride,
            columns : columns + (wide - 1) * self.stride + 1 : self.stride,
        ]
        return view


SIZES = (
    Sizes(2, 3, 9, 11, 5, 3, 3, pad=1),
    Sizes(1, 4, 13, 8, 7, 3, 2, stride=2, pad=1, dilation=2),
    Sizes(3, 1, 6, 6, 2, 1, 1),
    Sizes(2, 9, 17, 15, 33, 3, 3, pad=1),
    Sizes(1, 2, 1, 70, 3, 1, 5, stride=3),
    Sizes(1, 3, 17, 19, 9, 2, 2, stride=3),  # a phase without terms
    Sizes(2, 4, 23, 18, 8, 4, 3, stride=2, pad=3, dilation=3),
    Sizes(1, 5, 21, 22, 6, 3, 2, stride=4, dilation=2),  # phases that no term reaches
    Sizes(1, 2, 5, 4, 3, 3, 3, stride=70_000, pad=1),
)


@pytest.mark.parametrize("tiles", sampled(WAYS, 3))
def test_a_convolution_and_its_gradients(ctx: gpu.Context, tiles: str) -> None:
    with built_module(CONV.replace("TILES", tiles)) as module:
        for size in SIZES:
            _compare(ctx, module, size)


def _compare(ctx: gpu.Context, module: Any, size: Sizes) -> None:
    rng = np.random.default_rng(size.w)
    x, k, dy = (
        rng.standard_normal(shape, dtype=np.float32)
        for shape in (
            (size.b, size.c, size.h, size.w),
            (size.o, size.c, size.r, size.s),
            (size.b, size.o, *size.of_result()),
        )
    )
    p = size.pad
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (p, p), (p, p)))
    y, dx, dk = np.zeros(dy.shape), np.zeros(padded.shape), np.zeros(k.shape)
    for u in range(size.r):
        for v in range(size.s):
            seen = size.seen(padded, u, v)
            y += np.einsum("bchw,oc->bohw", seen, k[:, :, u, v])
            size.seen(dx, u, v)[...] += np.einsum("bohw,oc->bchw", dy, k[:, :, u, v])
            dk[:, :, u, v] = np.einsum("bohw,bchw->oc", dy, seen)
    dx = dx[:, :, p : p + size.h, p : p + size.w]
    given = {"stride": size.stride, "pad": p, "dilation": size.dilation}
    image, kernels, by_result = map(ctx.tensor, (x, k, dy))
    for found, wanted in (
        (module.conv(image, kernels, **given), y),
        (module.by_image(kernels, by_result, h_len=size.h, w_len=size.w, **given), dx),
        (
            module.by_kernels(image, by_result, r_len=size.r, s_len=size.s, **given),
            dk,
        ),
    ):
        np.testing.assert_allclose(
            found.numpy(), wanted, rtol=1e-4, atol=1e-4, err_msg=str(size)
        )


FLAT, SHARED = "gemm_tile32x128x8_micro8x4", "gemm_tile32x128x8_micro8x4_stream1056"
FLAT_CASES = [
    # the convolution: the strategies of its forward pass and of its gradient by the image
    (Sizes(2, 3, 130, 131, 18, 3, 3, pad=1), FLAT, None),
    (Sizes(1, 3, 400, 384, 33, 2, 2, stride=2), FLAT, None),
    (Sizes(1, 18, 200, 171, 5, 3, 2, stride=2, pad=1), None, SHARED),
    (Sizes(2, 3, 130, 131, 16, 3, 3, pad=1), None, None),
    (Sizes(1, 12, 184, 184, 96, 2, 2), FLAT, None),
    (Sizes(1, 13, 184, 184, 96, 2, 2), None, None),
    (Sizes(1, 12, 184, 184, 97, 2, 2), None, None),
    (Sizes(1, 8, 184, 184, 500, 2, 2), FLAT, None),
]


@pytest.fixture(scope="module")
def convolutions() -> Iterator[ModuleType]:
    with built_module(CONV.replace("schedule conv", "// schedule conv")) as module:
        yield module


@pytest.mark.parametrize(("size", "forward", "by_image"), FLAT_CASES)
def test_few_kernels_have_flat_tiles(
    ctx: gpu.Context,
    convolutions: ModuleType,
    size: Sizes,
    forward: str | None,
    by_image: str | None,
) -> None:
    if size.o < 40 and (forward or by_image):
        _compare(ctx, convolutions, size)
    high, wide = size.of_result()
    every = {**asdict(size), "p": high, "t": wide, "h_len": size.h, "w_len": size.w}
    for function, expected in (
        (convolutions.conv, forward),
        (convolutions.by_image, by_image),
    ):
        dims = {name: every[name] for name in kernel_of(function).size_names}
        (choice,) = ctx.choices(function, **dims)
        flat = choice.strategy if choice.strategy in {FLAT, SHARED} else None
        assert flat == expected


SUMS = """
kernel near(a: f32[m, d], b: f32[n, d]) -> y: f32[m, n] {
    y[i, j] = sum[p when p <= j] (a[i, p] - b[j, p]) * (a[i, p] - b[j, p]) + f32(j);
}
schedule near { generic neighbours(4) }
"""


def test_serial_sums_of_four_neighbours(ctx: gpu.Context) -> None:
    """Four neighbours are computed at once, where a row has whole vectors of them."""
    rng = np.random.default_rng(4)
    with built_module(SUMS) as module:
        for m, n, shader in (
            (11, 256, "near.generic_neighbours4:aligned"),
            (11, 255, "near.generic_neighbours4:edge"),
        ):
            a, b = (rng.standard_normal((size, 3), np.float32) for size in (m, n))
            squares = (a[:, None, :].astype(np.float64) - b[None]) ** 2
            kept = np.arange(3) <= np.arange(n)[:, None]
            found = module.near(ctx.tensor(a), ctx.tensor(b)).numpy()
            wanted = (squares * kept).sum(-1) + np.arange(n)
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            (chosen,) = ctx.choices(module.near, m=m, n=n, d=3)
            assert chosen.shaders == (shader,)
