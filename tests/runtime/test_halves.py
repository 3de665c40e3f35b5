"""Tensors of f16: two to a word, at any length and from any place on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import Context, DtypeError, f16, f32
from kerngen.runtime.calls.kernel import Kernel
from kerngen_kernels import half
from tests.compile import built
from tests.runtime.usages import COPY, STORAGE

LENGTHS = (*range(10), 15, 16, 17, 255, 256, 257, 1023)
PLACES = (0, 1, 2, 3, 7, 64, 65)
LEAST_NORMAL = 2.0**-14

CHANGE = """
kernel change(mut x: f16[n], g: f16[n]) -> y: f16[n] { x[i] += g[i]; y[i] = -x[i]; }
"""


@pytest.fixture(scope="module")
def change() -> Iterator[Kernel]:
    """A kernel that changes one tensor, reads one and makes one."""
    with built(CHANGE) as (kernel,):
        yield kernel


@pytest.fixture(params=["software", "reference"])
def any_ctx(ctx: Context, request: pytest.FixtureRequest) -> Iterator[Context]:
    """The software adapter's context, and one of NumPy's."""
    if request.param == "software":
        yield ctx
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


def halves(count: int) -> NDArray[np.float16]:
    """Distinct small numbers."""
    return (np.arange(count) % 1000 + 1).astype(np.float16)


@pytest.mark.parametrize("length", LENGTHS)
def test_any_length(any_ctx: Context, change: Kernel, length: int) -> None:
    array, other = halves(length), halves(length)[::-1]
    x, g = any_ctx.vector(array, f16), any_ctx.vector(other, f16)
    (y,) = change.launch(any_ctx, (x, g), (), (None,))
    assert y.numpy().dtype == x.numpy().dtype == np.float16
    np.testing.assert_array_equal(x.numpy(), array + other)
    np.testing.assert_array_equal(y.numpy(), -(array + other))
    np.testing.assert_array_equal(half.scale(g, alpha=2.0).numpy(), 2 * other)
    assert half.widen(g).numpy().dtype == np.float32


@pytest.mark.parametrize("place", PLACES)
def test_views_from_any_place(any_ctx: Context, change: Kernel, place: int) -> None:
    for length, gap in product((0, 1, 2, 5, 8), (0, 1)):
        size = place + length + gap
        arrays = [halves(size) + n for n in range(3)]
        x, g, y = (any_ctx.vector(array, f16) for array in arrays)
        part = slice(place, place + length)
        change.launch(any_ctx, (x[part], g[part]), (), (y[part],))
        arrays[0][part] += arrays[1][part]
        arrays[2][part] = -arrays[0][part]
        for tensor, array in zip((x, g, y), arrays, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), array, f"{part} of {size}")


def test_parts_of_one_tensor_as_arguments(any_ctx: Context, change: Kernel) -> None:
    for places in ((0, 5, 10), (3, 14, 9), (11, 1, 6)):
        array = halves(19)
        x = any_ctx.vector(array, f16)
        parts = [slice(place, place + 5) for place in places]
        first, second, third = (x[part] for part in parts)
        change.launch(any_ctx, (first, second), (), (third,))
        array[parts[0]] += array[parts[1]]
        array[parts[2]] = -array[parts[0]]
        np.testing.assert_array_equal(x.numpy(), array)


@pytest.mark.parametrize("recorded", [False, True])
def test_copies_between_any_places(any_ctx: Context, *, recorded: bool) -> None:
    for start, goal, length in product(range(3), range(4), range(6)):
        array, other = halves(9), halves(11) + 100
        x, y = any_ctx.vector(array, f16), any_ctx.vector(other, f16)
        if recorded:
            x, y = half.scale(x, alpha=1.0), half.scale(y, alpha=1.0)
        y[goal : goal + length].copy_from(x[start : start + length])
        other[goal : goal + length] = array[start : start + length]
        y[goal : goal + length].copy_from(y[goal + 1 : goal + 1 + length])
        other[goal : goal + length] = other[goal + 1 : goal + 1 + length].copy()
        doubled = half.scale(y, alpha=2.0)
        y[goal : goal + 1].copy_from([7.0])
        np.testing.assert_array_equal(doubled.numpy(), 2 * other)
        other[goal] = 7
        np.testing.assert_array_equal(y.numpy(), other)
        np.testing.assert_array_equal(x.numpy(), array)


def test_rows_of_odd_length(any_ctx: Context) -> None:
    a, b = halves(35).reshape(7, 5) % 4, halves(15).reshape(3, 5) % 4
    x, w = any_ctx.matrix(a, f16), any_ctx.matrix(b, f16)
    for start, stop in ((0, 7), (1, 7), (2, 3), (3, 6), (4, 4)):
        product_ = half.matmul_nt(x[start:stop], w).numpy()
        np.testing.assert_array_equal(product_, a[start:stop] @ b.T)
        assert product_.dtype == np.float16


def test_the_callers_buffer(ctx: Context, change: Kernel) -> None:
    buffer = ctx.device.create_buffer(size=12, usage=STORAGE | COPY)
    x: Any = ctx.wrap(buffer, 5, f16)
    x.copy_from(halves(5))
    change.launch(ctx, (x, ctx.vector(halves(5), f16)), (), (None,))
    np.testing.assert_array_equal(x.numpy(), 2 * halves(5))
    last: Any = ctx.wrap(buffer, 1, f16, offset=10)
    np.testing.assert_array_equal(last.numpy(), [0])


def test_every_half_survives(any_ctx: Context) -> None:
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    x = any_ctx.vector(every, f16)
    wide = half.widen(x)
    exact = every.astype(np.float32)
    subnormal = np.abs(exact) < LEAST_NORMAL
    for result in (wide.numpy(), half.narrow(wide).numpy().astype(np.float32)):
        nan = np.isnan(exact)
        assert np.isnan(result[nan]).all()
        np.testing.assert_array_equal(
            result[~nan & ~subnormal], exact[~nan & ~subnormal]
        )
        flushed = (result == exact) | (result == 0)
        assert flushed[subnormal].all()


def test_a_store_rounds_once(any_ctx: Context) -> None:
    rng = np.random.default_rng(4)
    numbers = rng.uniform(-6e4, 6e4, 20_000) * 2.0 ** rng.integers(-29, 1, 20_000)
    x = numbers.astype(np.float32)
    result = half.narrow(any_ctx.vector(x, f32)).numpy()
    nearest = x.astype(np.float16)
    below, above = (np.nextafter(nearest, np.float16(end)) for end in (-65504, 65504))
    neighbour = np.where(x < nearest, below, above)
    normal = np.abs(x) >= LEAST_NORMAL
    either = (result == nearest) | (result == neighbour)
    assert either[normal].all()
    assert (either | (result == 0))[~normal].all()


def test_what_is_too_large_is_no_half(any_ctx: Context) -> None:
    x = any_ctx.vector([7e4, -1e30, 65504.0], f32)
    first, second, third = half.narrow(x).numpy().tolist()
    assert first >= 65504
    assert second <= -65504
    assert third == 65504
    with pytest.raises(DtypeError, match="beyond the range of f16"):
        any_ctx.vector([7e4], f16)


def test_a_constant_may_be_too_large_at_run_time(any_ctx: Context) -> None:
    text = "kernel f(x: f32[n]) -> y: f16[n], z: f32[n] {"
    text += " let big = -7e4; y[i] = big; z[i] = x[i] + y[i]; y[i] = 2.0 * big; }"
    with built(text) as (kernel,):
        y, z = kernel.launch(any_ctx, (any_ctx.zeros(3, f32),), (), (None, None))
        assert (y.numpy() <= -65504).all()
        assert (z.numpy() <= -65504).all()


def test_a_float_is_no_half(any_ctx: Context) -> None:
    x: Any = any_ctx.vector([1.0], f32)
    with pytest.raises(DtypeError, match="'x'"):
        half.widen(x)
    y: Any = any_ctx.empty(1, f32)
    with pytest.raises(DtypeError, match="'y'"):
        half.narrow(x, out=y)
