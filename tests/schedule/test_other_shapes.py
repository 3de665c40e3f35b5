"""Shapes beside the usual ones: several indices along columns, transposes, small products.

What is computed is what NumPy's einsum gives; what is chosen is what was fastest on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, f32
from kerngen.runtime.calls.choices import kernel_of
from kerngen_kernels import matmul
from tests.compile import built, built_module
from tests.language.cases import Inputs

ALONG_COLUMNS = {
    "mpn->n": "y[j] = sum[i, k] x[i, k, j];",
    "mpn,mp->n": "y[j] = sum[i, k] x[i, k, j] * w[i, k];",
    "mpn,pm->n": "y[j] = sum[k, i] x[i, k, j] * w[k, i];",
    "mpqn,pq->mn": "y[i, j] = sum[k, l] x[i, k, l, j] * w[k, l];",
    "mpq,pqn->mn": "y[i, j] = sum[k, l] x[i, k, l] * w[k, l, j];",
}
"""Sums over two indices, by their einsum; neighbours along the last index share a workgroup."""

SCHEDULES = ("reduce", "gemv", "gemv split(1)", "gemv split(3)", "gemv rows(3)")
NAMES = {"m": "i", "p": "k", "q": "l", "n": "j"}
LENGTHS = (
    {"m": 3, "p": 8, "q": 4, "n": 12},
    {"m": 5, "p": 7, "q": 3, "n": 64},
    {"m": 9, "p": 4, "q": 6, "n": 5},
    {"m": 70, "p": 33, "q": 8, "n": 3},
    {"m": 2, "p": 300, "q": 5, "n": 130},
    {"m": 1, "p": 1, "q": 1, "n": 1},
    {"m": 4, "p": 0, "q": 4, "n": 8},
)


def source(einsum: str, equation: str, schedule: str) -> str:
    """A kernel whose tensors have the axes of an einsum."""
    inputs, output = einsum.split("->")
    tensors = ", ".join(
        f"{name}: f32[{', '.join(axes)}]"
        for name, axes in zip("xw", inputs.split(","), strict=False)
    )
    axes = ", ".join(output)
    return (
        f"kernel f({tensors}) -> y: f32[{axes}] {{ {equation} }} "
        f"schedule f {{ {schedule} }}"
    )


def fits(einsum: str, schedule: str) -> bool:
    """Whether a sum is a product, and one of rows if the schedule has several at once."""
    if schedule == "reduce":
        return True
    return "," in einsum and (schedule != "gemv rows(3)" or einsum == "mpq,pqn->mn")


@pytest.mark.parametrize(
    ("einsum", "schedule"),
    [(e, s) for e in ALONG_COLUMNS for s in SCHEDULES if fits(e, s)],
)
def test_sums_over_several_indices_along_columns(
    ctx: Context, einsum: str, schedule: str
) -> None:
    inputs = einsum.partition("->")[0].split(",")
    with built(source(einsum, ALONG_COLUMNS[einsum], schedule)) as (kernel,):
        for lengths in LENGTHS:
            draw = Inputs(5)
            arrays = [draw.f32(*(lengths[axis] for axis in axes)) for axes in inputs]
            tensors = tuple(ctx.tensor(array, f32) for array in arrays)
            (y,) = kernel.launch(ctx, tensors, (), (None,))
            # Small integers: sums are exact in any order.
            np.testing.assert_array_equal(y.numpy(), np.einsum(einsum, *arrays))


@pytest.mark.parametrize(
    "lengths", [(33, 2, 70), (16, 3, 64), (257, 1, 31), (7, 5, 90), (60, 1, 90)]
)
@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
def test_transposes(ctx: Context, element: str, lengths: tuple[int, ...]) -> None:
    """In tiles or not: each element is at its place, once."""
    text = (
        f"kernel f(x: {element}[a, b, c], z: f32[c, b, a]) -> y: f32[c, b, a] "
        "{ y[k, j, i] = f32(x[i, j, k]) + z[k, j, i]; }"
    )
    x = (np.arange(np.prod(lengths)) % 101).reshape(lengths)
    z = np.arange(x.size, dtype=np.float32).reshape(lengths[::-1])
    kind = {"f32": gpu.f32, "f16": gpu.f16, "i8": gpu.i8}[element]
    with built_module(text) as module:
        y = module.f(ctx.tensor(x.astype(kind.DTYPE), kind), ctx.tensor(z, f32))
        np.testing.assert_array_equal(y.numpy(), x.T.astype(np.float32) + z)
        dims = dict(zip("abc", lengths, strict=True))
        (choice,) = ctx.choices(module.f, **dims)
    in_tiles = min(lengths[0] // 32, lengths[2] // 8, lengths[0] * lengths[2] // 4096)
    assert ("tiled" in str(choice.shaders)) == bool(in_tiles)


PRODUCT = """
kernel nn(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum[p] a[i, p] * b[p, j]; }
kernel nt(a: f32[m, k], b: f32[n, k]) -> c: f32[m, n] { c[i, j] = sum[p] a[i, p] * b[j, p]; }
kernel tn(a: f32[k, m], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum[p] a[p, i] * b[p, j]; }
kernel upper(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p when p <= i] a[i, p] * b[p, j];
}
kernel mv(a: f32[m, k], b: f32[k]) -> c: f32[m] { c[i] = sum[p] a[i, p] * b[p]; }
kernel vm(a: f32[k, n], b: f32[k]) -> c: f32[n] { c[j] = sum[p] a[p, j] * b[p]; }
kernel tt(a: f32[k, m], b: f32[n, k]) -> c: f32[m, n] { c[i, j] = sum[p] a[p, i] * b[j, p]; }
kernel squared(a: f32[k], b: f32[k, n]) -> c: f32[n] { c[j] = sum[p] a[p] * a[p] * b[p, j]; }
kernel bytes(a: f32[k], b: i8[n, k]) -> c: f32[n] { c[j] = sum[p] a[p] * f32(b[j, p]); }
kernel each(a: f32[s, m, k], b: f32[s, k, n]) -> c: f32[s, m, n] {
    c[t, i, j] = sum[p] a[t, i, p] * b[t, p, j];
}
kernel lower(a: f32[s, m, m], b: f32[s, m, n]) -> c: f32[s, m, n] {
    c[t, i, j] = sum[p when p <= i] a[t, i, p] * b[t, p, j];
}
"""
CHOSEN = {
    ("mv", (262_144, 64, 0)): "rows",
    ("mv", (128, 65_536, 0)): "rows_lanes1024_subgroups1",
    ("mv", (4096, 4096, 0)): "gemv",
    ("vm", (0, 699_050, 12)): "reduce",
    ("vm", (0, 493_447, 17)): "reduce",
    ("vm", (0, 500_000, 20)): "gemv",
    ("nt", (1, 64, 100_000)): "rows",
    ("nt", (100_000, 64, 1)): "rows",
    ("nt", (1, 4096, 4096)): "gemv",
    ("nt", (24, 2048, 24)): "rows",
    ("nt", (128, 1024, 128)): "gemv_rows4_columns4_lanes64x4",
    ("nt", (8, 4096, 4096)): "gemv_rows4_columns4_lanes64x4",
    ("nt", (9, 4096, 4096)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (24, 2048, 24)): "gemv",
    ("nn", (16, 5552, 208)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (100, 512, 100)): "gemv_rows4",
    ("nn", (100, 768, 100)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (192, 512, 192)): "gemv_rows4",
    ("nn", (192, 768, 192)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (128, 64, 128)): "gemv_rows4",
    ("nn", (77, 768, 768)): "gemv_rows4",
    ("nn", (256, 256, 256)): "gemv_rows4",
    ("nn", (256, 256, 257)): "gemm_tile32x32x64_micro4x4_stream528_slices2",
    ("nn", (400, 400, 400)): "gemv_rows8",
    ("nn", (800, 800, 68)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (2000, 256, 32)): "gemv_rows8",
    ("nn", (5000, 300, 32)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (410, 400, 404)): "gemm_tile32x32x64_micro4x4_stream528_slices2",
    ("nn", (32, 2052, 2048)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (128, 62, 128)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (200, 1000, 70)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (56, 2152, 69)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (60, 456, 41)): "gemv",
    ("nn", (168, 592, 34)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (77, 768, 768)): "gemv_rows8_columns8_lanes32x4",
    ("nt", (320, 320, 320)): "gemv_rows8_columns8_lanes32x4",
    ("nt", (320, 72, 320)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (129, 3076, 128)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (68, 1500, 1024)): "gemm_tile64x64x16_micro8x8_stream528",
    ("nt", (128, 4096, 128)): "gemm_tile32x32x32_micro4x4_stream528",
    ("tn", (77, 768, 768)): "gemv_rows4",
    ("tn", (320, 320, 320)): "gemv_rows8",
    ("tn", (256, 1100, 64)): "gemm_tile32x32x32_micro4x4_stream528",
    ("tn", (24, 2048, 24)): "gemm_tile32x32x32_micro4x4_stream528",
    ("tt", (77, 768, 768)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (86, 3993, 24)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (86, 1993, 24)): "gemv_rows4_columns4_lanes64x4",
    ("nt", (32, 100_000, 32)): "gemm_tile32x32x32_micro4x4_stream528",
    ("tt", (20, 300, 20)): "gemm_tile32x32x64_micro4x4_stream528_slices2",
    ("squared", (0, 8, 200_000)): "generic",
    ("squared", (0, 20_000, 63)): "gemv",
    ("bytes", (0, 32_768, 512)): "gemv",
    ("nn", (32_768, 40, 32)): "gemm_tile128x32x16_micro8x4",
    ("nn", (32_767, 40, 32)): "gemm_tile64x64x16_micro8x8_stream528",
    ("nt", (32_768, 15, 16)): "gemm_tile128x16x8_micro4x4",
    ("nt", (32_768, 15, 17)): "gemm_tile128x32x16_micro8x4",
    ("tt", (8192, 8, 40)): "gemm_tile128x16x8_micro4x4",
    ("nn", (16, 12, 40_000)): "gemm_tile16x128x8_micro8x4",
    ("nn", (2000, 3, 501)): "gemm_tile8x128x4_micro8x4",
    ("nn", (5, 8, 200_000)): "gemm_tile8x128x4_micro8x4",
    ("nn", (300, 24, 65)): "gemm_tile16x128x8_micro8x4",
    ("nn", (300, 25, 65)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (4096, 4, 4096)): "gemm_tile8x128x4_micro8x4",
    ("nt", (17, 15, 7001)): "gemm_tile16x128x8_micro8x4",
    ("nt", (17, 16, 7001)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (10_000, 3, 64)): "generic_neighbours4",
    ("each", (70, 6, 100)): "gemm_tile8x128x4_micro8x4",
    ("nt", (20, 64, 40_000)): "gemm_tile32x128x16_micro4x8",
    ("each", (8, 8, 8)): "generic_neighbours4",
    ("each", (24, 24, 24)): "gemm_tile32x32x8_micro4x4",
    ("each", (24, 65, 24)): "gemm_tile32x32x32_micro4x4_stream528",
    ("each", (300, 64, 10)): "gemm_tile128x32x16_micro8x4",
    ("each", (200, 64, 10)): "gemm_tile32x32x32_micro4x4_stream528",
    ("upper", (4096, 3, 4096)): "generic_neighbours4",
    ("upper", (4096, 8, 4096)): "gemm_tile64x128x16_micro8x8",
    ("lower", (300, 0, 10)): "gemm_tile32x32x32_micro4x4_stream528",
    ("each", (3, 300, 3)): "gemm_tile32x32x64_micro4x4_stream528_slices2",
}
"""The strategies that were fastest for m, k and n, of 10,000 products if there are several."""


@pytest.fixture(scope="module")
def products() -> Iterator[ModuleType]:
    with built_module(PRODUCT) as module:
        yield module


@pytest.mark.parametrize(("name", "sizes"), CHOSEN)
def test_what_is_chosen(
    ctx: Context, products: ModuleType, name: str, sizes: tuple[int, int, int]
) -> None:
    function = getattr(products, name)
    lengths = {**dict(zip("mkn", sizes, strict=True)), "s": 10_000}
    dims = {dim: lengths[dim] for dim in kernel_of(function).dims}
    (choice,) = ctx.choices(function, **dims)
    assert choice.strategy == CHOSEN[name, sizes]


FEW_ROWS = {
    ("nn", (2, 9, 100_000)): "gemv_rows2",
    ("nn", (2, 8, 100_000)): "gemm_tile8x128x4_micro8x4",
    ("nn", (2, 8, 2048)): "gemv_rows2",
    ("nn", (8, 25, 100_000)): "gemv_rows8",
    ("nn", (8, 24, 100_000)): "gemm_tile16x128x8_micro8x4",
    ("nn", (8, 24, 1536)): "gemv_rows8",
    ("nt", (5, 256, 200_000)): "gemv_rows6_columns8",
    ("nt", (5, 255, 200_000)): "gemm_tile32x128x16_micro4x8",
    ("nt", (5, 6, 200_000)): "gemm_tile8x128x4_micro8x4",
    ("nt", (12, 14, 70_001)): "gemm_tile16x128x8_micro8x4",
    ("nt", (5, 100, 1280)): "gemv_rows6_columns8",
    ("nt", (5, 20, 1280)): "gemm_tile32x32x32_micro4x4_stream528",
}
"""The strategies of the standard products where rows are few, by the numbers of their terms."""


@pytest.mark.parametrize(("name", "sizes"), FEW_ROWS)
def test_few_rows_of_few_terms(
    ctx: Context, name: str, sizes: tuple[int, int, int]
) -> None:
    function = getattr(matmul, f"matmul_{name}")
    (choice,) = ctx.choices(function, **dict(zip("mkn", sizes, strict=True)))
    assert choice.strategy == FEW_ROWS[name, sizes]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("nn", (33_001, 9, 15)),
        ("nt", (33_000, 20, 31)),
        ("tt", (4500, 8, 60)),
        ("nn", (15, 13, 33_001)),
        ("nn", (33, 5, 257)),
        ("nt", (12, 8, 131)),
        ("tt", (9, 3, 260)),
        ("nt", (31, 20, 33_000)),
        ("each", (30, 41, 31)),
        ("each", (300, 7, 4)),
    ],
)
def test_products_with_a_narrow_side(
    ctx: Context, products: ModuleType, name: str, sizes: tuple[int, int, int]
) -> None:
    lengths = {**dict(zip("mkn", sizes, strict=True)), "s": 300}
    draw, function = Inputs(6), getattr(products, name)
    kernel = kernel_of(function)
    a, b = (
        draw.f32(*(lengths[axis] for axis in spec.axes if isinstance(axis, str)))
        for spec in kernel.inputs
    )
    c = function(ctx.tensor(a, f32), ctx.tensor(b, f32))
    left = a.swapaxes(-1, -2) if name == "tt" else a
    right = b.swapaxes(-1, -2) if name in {"nt", "tt"} else b
    np.testing.assert_array_equal(c.numpy(), left @ right)


SHORT = """
kernel sums(x: f32[b, m, n], v: f32[n]) -> y: f32[b, n] {
    y[t, j] = x[t, 0, j] + v[j] * (sum[i] x[t, i, j]);
}
kernel places(x: f32[b, m, n], v: f32[n]) -> y: i32[b, n] {
    y[t, j] = i32(v[j]) + (argmax[i] x[t, i, j]);
}
kernel products(x: f32[b, m, n], v: f32[n], w: f32[m]) -> y: f32[b, n] {
    y[t, j] = x[t, 0, j] + v[j] * (sum[i] x[t, i, j] * w[i]);
}
schedule sums, places { reduce }
schedule products { gemv }
"""


@pytest.mark.parametrize("name", ["sums", "places", "products"])
def test_columns_of_one_part_take_one_dispatch(ctx: Context, name: str) -> None:
    """256 terms of 64 columns make a part, or 512 of a product; the steps read what they did."""
    most = {"sums": 256, "places": 256, "products": 512}[name]
    with built_module(SHORT) as module:
        function = getattr(module, name)
        for m, n in ((3, 8), (most, 64), (most, 66), (most + 1, 68), (17, 5), (1, 130)):
            draw = Inputs(7)
            x, v, w = draw.f32(2, m, n), draw.f32(n), draw.f32(m)
            given = (x, v, w) if name == "products" else (x, v)
            y = function(*(ctx.tensor(each, f32) for each in given)).numpy()
            if name == "places":
                expected = v.astype(np.int32) + x.argmax(1)
            else:
                weights = w if name == "products" else np.ones(m, np.float32)
                expected = x[:, 0] + v * np.einsum("bmn,m->bn", x, weights)
            np.testing.assert_array_equal(y, expected)
            (choice,) = ctx.choices(function, b=2, m=m, n=n)
            assert len(choice.shaders) == (1 if m <= most else 2)


CHANGED = """
kernel at(mut y: f32[b, n], x: f32[m, n], r: i32) {
    y[r, j] = sum[i] x[i, j] * y[r, j];
}
kernel own(mut y: f32[n], x: f32[m, n]) { y[j] = sum[i] x[i, j] * y[j]; }
kernel half(mut y: f16[n], x: f32[m, n]) { y[j] = y[j] + (sum[i] x[i, j] * y[j]); }
schedule at, own, half { reduce }
"""


@pytest.mark.parametrize("sizes", [(3, 8), (3, 7), (200, 128), (300, 64)])
def test_columns_that_change_what_they_read(
    ctx: Context, sizes: tuple[int, int]
) -> None:
    """Each lane writes its own element, also where four were read as a vector."""
    m, n = sizes
    draw = Inputs(8)
    x, y, three = draw.f32(m, n) / 8, draw.f32(n), draw.f32(3, n)
    with built_module(CHANGED) as module:
        at = ctx.tensor(three, f32)
        module.at(at, ctx.tensor(x, f32), r=1)
        expected = three.copy()
        expected[1] *= x.sum(0)
        np.testing.assert_array_equal(at.numpy(), expected)
        own = ctx.tensor(y, f32)
        module.own(own, ctx.tensor(x, f32))
        np.testing.assert_array_equal(own.numpy(), y * x.sum(0))
        half = ctx.tensor(y.astype(np.float16), gpu.f16)
        module.half(half, ctx.tensor(x, f32))
        found = half.numpy().astype(np.float32)
        np.testing.assert_allclose(found, y + y * x.sum(0), rtol=2e-3)
