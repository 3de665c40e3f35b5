"""Calls that are found again by the memory of their arguments, and are not checked again."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import numpy as np
import pytest

from kerngen.runtime import (
    AliasError,
    Context,
    UniformRangeError,
    f32,
    u8,
)
from kerngen_kernels import elementwise
from tests.compile import built_module
from tests.runtime.kernels import AXPY, CENTRE, launch
from tests.runtime.usages import COPY, STORAGE

LENGTH = 1000


def test_other_memory_of_the_same_shape_is_another_call(ctx: Context) -> None:
    arrays = [np.full(LENGTH, float(number), np.float32) for number in range(4)]
    tensors = [ctx.vector(array, f32) for array in arrays]
    outs = [ctx.zeros(LENGTH, f32) for _ in arrays]
    for _ in range(3):
        for x, y, out in zip(tensors, tensors[1:], outs, strict=False):
            launch(AXPY, x, y, alpha=2.0, out=(out,))
    for number, out in enumerate(outs[:3]):
        np.testing.assert_array_equal(out.numpy(), np.full(LENGTH, 3.0 * number + 1))


def test_outputs_that_are_kept_have_memory_of_their_own(ctx: Context) -> None:
    x = ctx.vector(np.arange(LENGTH), f32)
    kept = [launch(CENTRE, x)[0] for _ in range(3)]
    for number, y in enumerate(kept):
        y.copy_from(np.full(LENGTH, number))
    kept.append(launch(CENTRE, x)[0])
    for number, y in enumerate(kept[:3]):
        np.testing.assert_array_equal(y.numpy(), np.full(LENGTH, number))
    expected = np.arange(LENGTH) - np.arange(LENGTH).mean()
    np.testing.assert_allclose(kept[3].numpy(), expected, rtol=1e-5)


def test_temporaries_are_free_again_once_a_call_is_recorded(ctx: Context) -> None:
    x, y = ctx.vector(np.arange(LENGTH), f32), ctx.zeros(LENGTH, f32)
    pool: Any = ctx.caches["storage"]
    pool.collect()
    before = pool.used_bytes
    with ctx.batch():
        for _ in range(3):
            launch(CENTRE, x, out=(y,))
            assert pool.used_bytes == before


def test_a_call_of_before_is_still_refused_on_other_memory(ctx: Context) -> None:
    x, y = ctx.zeros(8, f32), ctx.zeros(16, f32)
    for _ in range(2):
        launch(AXPY, x, y[:8], alpha=1.0, out=(y[8:],))
        with pytest.raises(AliasError):
            launch(AXPY, x, y[:8], alpha=1.0, out=(y[4:12],))
        with pytest.raises(AliasError):
            launch(AXPY, x, x, alpha=1.0, out=(x,))


def test_a_call_of_before_is_still_refused_with_other_numbers(ctx: Context) -> None:
    x, y = ctx.vector(np.ones(8), f32), ctx.zeros(8, f32)
    for _ in range(2):
        with pytest.raises(UniformRangeError):
            launch(AXPY, x, x, alpha=1e300, out=(y,))
        launch(AXPY, x, x, alpha=2.0, out=(y,))
    np.testing.assert_array_equal(y.numpy(), np.full(8, 3.0))


def test_a_view_of_bytes_is_not_the_tensor_that_had_its_memory(ctx: Context) -> None:
    """A kernel writes whole words: 13 bytes of a tensor of 13, not those of one of 14."""
    with built_module("kernel copied(x: u8[n]) -> y: u8[n] { y[i] = x[i]; }") as built:
        x = ctx.vector(np.arange(13), u8)
        whole = ctx.zeros(13, u8)
        built.copied(x, out=whole)
        number = whole.binding[0]
        del whole
        longer = ctx.vector(np.full(14, 99), u8)
        assert longer.binding[0] == number
        built.copied(x, out=longer[:13])
        np.testing.assert_array_equal(longer.numpy(), [*range(13), 99])


def test_freed_memory_is_kept_by_no_call(ctx: Context) -> None:
    buffer = ctx.device.create_buffer(size=256, usage=STORAGE | COPY)
    wrapped = ctx.wrap(buffer, (64,), f32)
    y = elementwise.relu(wrapped)
    z = elementwise.relu(y)
    ctx.submit()
    blocks = [ref(each.lease.block) for each in (wrapped, y, z)]
    del wrapped, y, z
    ctx.trim()
    gc.collect()
    assert [block() for block in blocks] == [None, None, None]


def test_calls_after_a_trim_are_bound_anew(ctx: Context) -> None:
    x = ctx.vector(np.arange(LENGTH), f32)
    for _ in range(3):
        y = launch(CENTRE, x)[0].numpy()
        ctx.trim()
        others = [ctx.vector(np.full(LENGTH, np.nan), f32) for _ in range(3)]
        expected = np.arange(LENGTH) - np.arange(LENGTH).mean()
        np.testing.assert_allclose(y, expected, rtol=1e-5)
        assert all(np.isnan(other.numpy()).all() for other in others)


def test_a_capture_keeps_an_argument_that_it_copies(ctx: Context) -> None:
    """A view that can't be bound at its offset is copied at each replay."""
    x = ctx.vector(np.arange(40), f32)
    with ctx.capture() as step:
        y = elementwise.relu(x[3:8])
    del x
    gc.collect()
    others = [ctx.vector(np.full(40, -1), f32) for _ in range(8)]
    step.replay()
    np.testing.assert_array_equal(y.numpy(), np.arange(3, 8))
    assert len(others) == 8
