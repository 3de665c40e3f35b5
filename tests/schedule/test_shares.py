"""Products have the tiles that take least time, shared by workgroups where that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.schedule.program import Variant
from kerngen_kernels.matmul import matmul_nn, matmul_nt
from tests.compile import built


@pytest.mark.parametrize(
    ("kernel", "m", "k", "n", "shared"),
    [
        # Of few terms: on an H200 29 us so, 53 in shares.
        (matmul_nt, 1544, 72, 3060, False),
        (matmul_nt, 1024, 100, 1852, False),  # 18 and 36
        (matmul_nt, 1276, 132, 4044, False),  # 50 and 67
        (matmul_nt, 286, 728, 3546, True),  # 100 and 80
        (matmul_nt, 100, 4096, 4096, True),  # 350 and 124
        # Tiles that fill the device nearly once.
        (matmul_nn, 2048, 2048, 2048, False),
    ],
)
def test_tiles_are_shared_where_that_pays(
    ctx: gpu.Context,
    kernel: Callable[..., object],
    m: int,
    k: int,
    n: int,
    *,
    shared: bool,
) -> None:
    (choice,) = ctx.choices(kernel, m=m, k=k, n=n)
    assert "stream" in choice.strategy
    assert len(choice.shaders) == 1 + shared


SMALL = "gemm_tile32x32x32_micro4x4_stream528"
SMALL_SLICED = "gemm_tile32x32x64_micro4x4_stream528_slices2"
MEDIUM = "gemm_tile64x64x16_micro8x8_stream528"
MEDIUM_SLICED = "gemm_tile64x64x32_micro8x8_stream528_slices2"
LARGE = "gemm_tile128x64x16_micro8x8_stream396"
LARGEST = "gemm_stream264"


@pytest.mark.parametrize(
    ("m", "k", "n", "tiles"),
    [
        # In us on an H200, in tiles of 32 x 32, 64 x 64, 128 x 64 and 128 x 128.
        (410, 400, 404, SMALL_SLICED),  # 13, in slices 12, 18, in slices 33, -, -
        (5000, 300, 32, SMALL),  # 9.5, 20, 18, 25
        (512, 512, 512, SMALL_SLICED),  # 16, in slices 13, 17, in slices 18, -, -
        (640, 640, 640, MEDIUM),  # 27, 23, 25, 25
        (300, 1200, 2800, MEDIUM),  # 95, 65, 70, 73
        (1111, 333, 2222, LARGE),  # 76, 93, 60, 76
        (1024, 1024, 1024, MEDIUM_SLICED),  # 90, 63, in slices 54, 61, 60
        (2048, 512, 2048, LARGEST),  # 152, 112, 123, 97
        (2048, 2048, 2048, LARGEST),  # 595, 426, 402, 370
        (3000, 3000, 3000, LARGEST),  # -, -, 1223, 1236
        # Single elements, of which the largest tiles are not shared.
        (513, 1919, 523, LARGE),  # 53, 50, 48, 146
        (1111, 2222, 1333, LARGE),  # -, 223, 187, 237
        (3001, 2999, 3003, LARGE),  # -, -, 1370, 1485
        (4095, 4097, 4093, LARGEST),  # -, -, 3325, 3233
    ],
)
def test_tiles_are_those_that_take_least_time(
    ctx: gpu.Context, m: int, k: int, n: int, tiles: str
) -> None:
    (choice,) = ctx.choices(matmul_nn, m=m, k=k, n=n)
    assert choice.strategy == tiles


SINGLY = ("singly", "singly_padded")
SHARED = {"aligned": 2, "padded": 2, "edge": 2}
"""The dispatches of each variant where tiles are shared."""


@pytest.mark.parametrize(
    ("factors", "options", "dispatches"),
    [
        ("b[p, j]", "", SHARED | {"edge": 1}),
        ("b[j, p]", "", dict.fromkeys(("aligned", "padded", *SINGLY, "edge"), 1)),
        ("b[j, p]", "tile(64, 64, 16) micro(8, 8)", SHARED | dict.fromkeys(SINGLY, 2)),
        ("b[p, j]", "tile(64, 64, 16) micro(8, 8)", SHARED),
    ],
)
def test_the_largest_tiles_are_not_shared_where_addresses_are_many(
    factors: str, options: str, dispatches: Mapping[str, int]
) -> None:
    axes = factors[2:-1].replace("p", "k").replace("j", "n")
    text = f"""kernel f(a: f32[m, k], b: f32[{axes}]) -> c: f32[m, n] {{
        c[i, j] = sum[p] a[i, p] * {factors};
    }}
    schedule f {{ gemm {options} stream(264) }}"""
    assert {x.name: len(x.shaders) for x in variants_of(text)} == dispatches


def variants_of(text: str) -> Iterator[Variant]:
    (program,) = compile_text(text, "f.kern").programs
    ((schedule,),) = (stage.schedules for stage in program.stages)
    yield from schedule.variants


FORMS: Mapping[str, tuple[str, str, str, Callable[[Any, Any], Any]]] = {
    "nt": ("m, k", "n, k", "sum[p] a[i, p] * b[j, p]", lambda a, b: a @ b.T),
    "of a maximum": (
        "m, k",
        "n, k",
        "max[p] (a[i, p] + b[j, p])",
        lambda a, b: (a[:, None] + b).max(-1, initial=-np.inf),
    ),
    "of a triangle": (
        "m, k",
        "n, k",
        "sum[p when p <= i] a[i, p] * b[j, p]",
        lambda a, b: np.tril(a) @ b.T,
    ),
    "of a batch": (
        "h, m, k",
        "h, n, k",
        "sum[p] a[x, i, p] * b[x, j, p]",
        lambda a, b: a @ b.swapaxes(1, 2),
    ),
    "that reads a factor again": (
        "m, k",
        "n, k",
        "a[i, min(j, k - 1)] + sum[p] a[i, p] * b[j, p]",
        lambda a, b: a[:, np.minimum(np.arange(len(b)), a.shape[1] - 1)] + a @ b.T,
    ),
    "nn": ("m, k", "k, n", "sum[p] a[i, p] * b[p, j]", lambda a, b: a @ b),
}
"""Products: the axes of both factors, the value of an element, and of all by NumPy."""

VECTORS = [form for form in FORMS if form not in ("nn", "that reads a factor again")]
"""Those whose factors can be loaded as vectors, whatever the number of columns."""


@pytest.mark.parametrize("options", ["stream(3)", "stream(0) buffers(2)"])
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_loaded_by_vectors_whatever_the_columns(
    ctx: gpu.Context, form: str, options: str
) -> None:
    """Unless a factor lies along the columns, or is read again, element by element."""
    left, right, value, numpy = FORMS[form]
    outer, at = ("h, ", "x, ") if form == "of a batch" else ("", "")
    text = (
        f"kernel f(a: f32[{left}], b: f32[{right}]) -> c: f32[{outer}m, n] {{"
        f" c[{at}i, j] = {value}; }}"
        f"schedule f {{ gemm tile(32, 32, 16) micro(4, 4) {options} }}"
    )
    random, entries = np.random.default_rng(0), dict[int, str]()
    with built(text) as (kernel,):
        for k in (48, 52, 12, 50):
            sizes = {"m": 37, "n": k // 2 + 1, "k": k, "h": 2}
            a, b = (
                random.integers(-3, 4, [sizes[x] for x in axes.split(", ")]).astype(
                    "f4"
                )
                for axes in (left, right)
            )
            (c,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
            np.testing.assert_array_equal(c.numpy(), numpy(a, b))
            dims = {dim: sizes[dim] for dim in kernel.dims}
            (choice,) = ctx.backend.choices(kernel, dims)
            entries[k] = choice.shaders[0].partition(":")[2]
    padded = "singly" if form in VECTORS and form != "of a maximum" else "edge"
    whole = "singly" if form in VECTORS else "edge"
    assert entries == {48: whole, 52: padded, 12: "edge", 50: "edge"}


PRODUCT = """
kernel f(a: f32[m, k], b: f32[n, k]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[j, p];
}
schedule f { gemm tile(16, 32, 8) micro(4, 4) stream(3) }
"""


@pytest.mark.parametrize(
    ("groups", "dispatches"), [(264, 1), (263, 1), (256, 1), (200, 2)]
)
def test_any_number_of_workgroups_runs_at_once(
    ctx: gpu.Context, groups: int, dispatches: int
) -> None:
    # 256 tiles of 100 turns: a wave of 256 workgroups or more, of 200 not.
    text = PRODUCT.replace("16, 32, 8", "32, 32, 32").replace("(3)", f"({groups})")
    with built(text) as (kernel,):
        (choice,) = ctx.backend.choices(kernel, {"m": 512, "k": 3200, "n": 512})
    assert len(choice.shaders) == dispatches


def test_device_and_host_agree_on_what_pays(ctx: gpu.Context) -> None:
    # 4 tiles for 3 workgroups: it pays from some number of terms on.  Whole numbers have
    # exact sums, so that a term too few or too many shows.
    random, found = np.random.default_rng(0), set[int]()
    with built(PRODUCT) as (kernel,):
        for k in (40, 300, 1000, 1500, 2000, 2500, 3001, 6000):
            a, b = (random.integers(-3, 4, (n, k)).astype("f4") for n in (20, 40))
            (c,) = kernel.launch(ctx, (ctx.tensor(a), ctx.tensor(b)), (), (None,))
            np.testing.assert_array_equal(c.numpy(), a @ b.T)
            (choice,) = ctx.backend.choices(kernel, {"m": 20, "n": 40, "k": k})
            found.add(len(choice.shaders))
    assert found == {1, 2}
