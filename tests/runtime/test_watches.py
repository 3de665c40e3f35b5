"""Watches: what is found on the device gets to its user at the next read."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise


class Alarm:
    """A watch that raises once, if it is told to."""

    def __init__(self) -> None:
        self.looks = 0
        self.armed = False

    def check(self) -> None:
        self.looks += 1
        if self.armed:
            self.armed = False
            raise ArithmeticError("found")


def test_every_read_looks_and_may_be_repeated(ctx: gpu.Context) -> None:
    alarm = Alarm()
    ctx.watch(alarm)
    x = ctx.vector([1.0, 2.0], f32)
    x.numpy()
    asyncio.run(x.read_async())
    assert alarm.looks == 2
    alarm.armed = True
    with pytest.raises(ArithmeticError):
        x.numpy()
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


def test_submitting_does_not_look(ctx: gpu.Context) -> None:
    alarm = Alarm()
    ctx.watch(alarm)
    elementwise.neg(ctx.zeros(4, f32))
    ctx.submit()
    assert alarm.looks == 0


def test_a_watch_goes_with_its_owner(ctx: gpu.Context) -> None:
    alarm = Alarm()
    alarm.armed = True
    ctx.watch(alarm)
    del alarm
    gc.collect()
    ctx.zeros(1, f32).numpy()


def test_what_an_error_undid_is_counted(ctx: gpu.Context) -> None:
    buffer = ctx.vector([1.0], f32).buffer
    doomed = ctx.wrap(buffer, 1, f32)
    y = elementwise.neg(doomed)
    before = (y.losses, doomed.losses)
    buffer.destroy()
    with pytest.raises(gpu.Error):
        ctx.submit()
    assert (y.losses, doomed.losses) == (before[0] + 1, before[1])
    elementwise.neg(ctx.vector([1.0], f32), out=y)
    ctx.submit()
    assert y.losses == before[0] + 1


@pytest.mark.parametrize("adapter", ["software", "reference"])
def test_every_write_is_counted(adapter: Literal["software", "reference"]) -> None:
    with gpu.open(adapter=adapter) as own:
        x, y = own.vector([1.0, 2.0], f32), own.zeros(2, f32)
        counts = [y.writes]
        for write in (
            lambda: elementwise.neg(x, out=y),
            lambda: elementwise.axpy(x, y, alpha=1.0),
            lambda: y.copy_from(x),
            lambda: y.copy_from([3.0, 4.0]),
            y.clear,
            y[1:].clear,
        ):
            write()
            counts.append(y.writes)
        elementwise.neg(y)
        y.numpy()
        assert y.writes == counts[-1]
        assert [b - a for a, b in pairwise(counts)] == [1] * 6
        assert x.writes == 1


def test_ranges_are_cleared(ctx: gpu.Context) -> None:
    x = ctx.matrix(np.ones((4, 3)), f32)
    x[1:3].clear()
    np.testing.assert_array_equal(x.numpy()[:, 0], [1, 0, 0, 1])
    half = ctx.vector(np.ones(7), gpu.f16)
    half[1:4].clear()
    np.testing.assert_array_equal(half.numpy(), [1, 0, 0, 0, 1, 1, 1])


def test_the_largest_tensor_can_be_asked_for() -> None:
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 1 << 16}
    with gpu.open(adapter="software", limits=limits) as small:
        assert small.max_tensor_bytes == 1 << 16
        fits = small.zeros((1 << 16) // 4, f32)
        elementwise.neg(fits)
        with pytest.raises(gpu.LimitError):
            elementwise.neg(small.zeros((1 << 16) // 4 + 1, f32))
