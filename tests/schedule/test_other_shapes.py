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
kernel mv(a: f32[m, k], b: f32[k]) -> c: f32[m] { c[i] = sum[p] a[i, p] * b[p]; }
kernel vm(a: f32[k, n], b: f32[k]) -> c: f32[n] { c[j] = sum[p] a[p, j] * b[p]; }
kernel tt(a: f32[k, m], b: f32[n, k]) -> c: f32[m, n] { c[i, j] = sum[p] a[p, i] * b[j, p]; }
kernel squared(a: f32[k], b: f32[k, n]) -> c: f32[n] { c[j] = sum[p] a[p] * a[p] * b[p, j]; }
kernel bytes(a: f32[k], b: i8[n, k]) -> c: f32[n] { c[j] = sum[p] a[p] * f32(b[j, p]); }
kernel each(a: f32[s, m, k], b: f32[s, k, n]) -> c: f32[s, m, n] {
    c[t, i, j] = sum[p] a[t, i, p] * b[t, p, j];
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
    ("nn", (100, 768, 100)): "gemv_rows4",
    ("nn", (128, 64, 128)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nt", (32, 100_000, 32)): "gemm_tile32x32x32_micro4x4_stream528",
    ("nn", (64, 60_000, 64)): "gemm_tile64x64x16_micro8x8_stream528",
    ("tt", (20, 300, 20)): "gemm_tile32x32x32_micro4x4_stream528",
    ("squared", (0, 8, 200_000)): "generic",
    ("squared", (0, 20_000, 63)): "gemv",
    ("bytes", (0, 32_768, 512)): "gemv",
    ("each", (8, 8, 8)): "generic_neighbours4",
    ("each", (3, 300, 3)): "gemm_tile32x32x32_micro4x4_stream528",
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
