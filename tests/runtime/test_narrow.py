"""Tensors of integers of 8 and 4 bits: their bytes in memory, views, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import (
    Context,
    DtypeError,
    ShapeError,
    f32,
    i4,
    i8,
    i32,
    u4,
    u8,
    u32,
)
from tests.budget import examples
from tests.compile import built_module

ENDS: dict[Any, tuple[int, int]] = {
    u8: (0, 255),
    i8: (-128, 127),
    u4: (0, 15),
    i4: (-8, 7),
}


@pytest.fixture(params=["software", "reference"])
def any_ctx(ctx: Context, request: pytest.FixtureRequest) -> Iterator[Context]:
    """The software adapter's context, and one of NumPy's."""
    if request.param == "software":
        yield ctx
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


def drawn(element: Any, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    low, high = ENDS[element]
    rng = np.random.default_rng(seed)
    return rng.integers(low, high + 1, shape).astype(element.dtype)


@given(st.lists(st.integers(-8, 7), max_size=40))
@settings(max_examples=examples(40))
def test_element_e_is_bits_of_4_e(values: list[int]) -> None:
    """The whole is one number, little-endian: element e is its bits 4 e to 4 e + 3."""
    whole = sum((value & 0xF) << (4 * e) for e, value in enumerate(values))
    packed = gpu.pack4(np.array(values, np.int8))
    assert packed.tobytes() == whole.to_bytes((len(values) + 1) // 2, "little")
    for element in (u4, i4):
        found = gpu.unpack4(packed, (len(values),), element)
        wanted = [v & 0xF for v in values] if element is u4 else values
        assert found.tolist() == wanted
        assert found.dtype == element.dtype


@pytest.mark.parametrize("element", ENDS)
def test_what_is_uploaded_is_read(any_ctx: Context, element: Any) -> None:
    for shape in ((0,), (1,), (7,), (3, 5), (2, 8)):
        array = drawn(element, shape)
        x: Any = any_ctx.tensor(array, element)
        per_byte = 2 if element in {u4, i4} else 1
        assert x.nbytes == -(-array.size // per_byte)
        found = x.numpy()
        assert found.dtype == x.dtype == element.dtype
        np.testing.assert_array_equal(found, array)
        x.copy_from(array[::-1].copy())
        np.testing.assert_array_equal(x.numpy(), array[::-1])
        assert not any_ctx.zeros(shape, element).numpy().any()


def test_views_of_nibbles(any_ctx: Context) -> None:
    array, other = drawn(u4, (6, 3)), drawn(u4, (2, 3), 1)
    x: Any = any_ctx.matrix(array, u4)
    text = "kernel widen(w: u4[m, n]) -> y: f32[m, n] { y[i, j] = f32(w[i, j]); }"
    with built_module(text) as module:
        for start, stop in ((0, 6), (2, 6), (2, 4), (4, 4), (0, 2)):
            part = x[start:stop]
            np.testing.assert_array_equal(part.numpy(), array[start:stop])
            np.testing.assert_array_equal(module.widen(part).numpy(), array[start:stop])
    x[2:4].copy_from(any_ctx.matrix(other, u4))
    array[2:4] = other
    np.testing.assert_array_equal(x.numpy(), array)
    for start, stop in ((1, 3), (0, 3)):
        with pytest.raises(ShapeError, match="two elements of u4 share one"):
            x[start:stop]
    np.testing.assert_array_equal(x[4:6].reshape(6).numpy(), array[4:6].reshape(6))


def test_bytes_are_taken_as_they_are(any_ctx: Context) -> None:
    for element in (u8, i8):
        array = drawn(element, (4, 3))
        x: Any = any_ctx.tensor(array)
        assert x.element is element
        for start in range(4):
            np.testing.assert_array_equal(x[start:].numpy(), array[start:])


def test_what_a_type_does_not_hold_is_refused(any_ctx: Context) -> None:
    for element, (low, high) in ENDS.items():
        for value in (low - 1, high + 1):
            with pytest.raises(
                DtypeError, match=f"{value}, which no {element.__name__}"
            ):
                any_ctx.vector(np.array([0, value], np.int32), element)
    with pytest.raises(DtypeError, match="16, which no u4"):
        any_ctx.vector(np.array([16], np.uint8), u4)
    with pytest.raises(DtypeError, match="float32 does not convert to u4"):
        any_ctx.vector(np.ones(3, np.float32), u4)


def test_a_reference_refuses_what_no_tensor_holds() -> None:
    with built_module("kernel f(w: i4[n]) -> y: i32[n] { y[i] = w[i]; }") as module:
        with pytest.raises(DtypeError, match="'w' holds 8, which no i4 can"):
            module.f_reference(np.array([1, 8]))
        np.testing.assert_array_equal(module.f_reference(np.array([1, -8])), [1, -8])


def test_a_tensor_of_another_type_is_refused(any_ctx: Context) -> None:
    with built_module("kernel f(w: u4[n]) -> y: u32[n] { y[i] = w[i]; }") as module:
        with pytest.raises(DtypeError, match="has u8 elements; expected u4"):
            module.f(any_ctx.tensor(np.ones(3, np.uint8)))
        with pytest.raises(DtypeError, match="has f32 elements; expected u4"):
            module.f(any_ctx.zeros(3, f32))


def test_packing_refuses_what_does_not_fit() -> None:
    with pytest.raises(DtypeError, match="4 bits"):
        gpu.pack4(np.array([16]))
    with pytest.raises(DtypeError, match="integers"):
        gpu.pack4(np.ones(2))
    with pytest.raises(ShapeError, match="are 2 bytes of uint8, got 1"):
        gpu.unpack4(np.zeros(1, np.uint8), (3,), u4)


@pytest.mark.parametrize("element", ENDS)
def test_results_in_views_leave_the_words_beside_them(
    any_ctx: Context, element: Any
) -> None:
    """A row of six elements ends in the middle of a word, which the next row shares."""
    name = element.__name__
    text = f"kernel f(x: {name[0]}32[n]) -> y: {name}[n] {{ y[i] = x[i]; }}"
    array = drawn(element, (6, 6))
    x = drawn(element, (6,), 1)
    wide = u32 if name[0] == "u" else i32
    with built_module(text) as module:
        for row in range(6):
            y: Any = any_ctx.matrix(array, element)
            module.f(any_ctx.vector(x, wide), out=y[row : row + 1].reshape(6))
            wanted = array.copy()
            wanted[row] = x
            np.testing.assert_array_equal(y.numpy(), wanted)
