"""Watches: what is found on the device gets to its user at the next read."""

from __future__ import annotations

import asyncio
import gc

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


def test_a_recording_that_an_error_ended_is_known(ctx: gpu.Context) -> None:
    x = ctx.vector([1.0], f32)
    buffer = x.buffer
    elementwise.neg(x)
    buffer.destroy()
    doomed = ctx.backend.recording
    assert not ctx.backend.is_lost(doomed)
    with pytest.raises(gpu.Error):
        ctx.submit()
    assert ctx.backend.is_lost(doomed)
    elementwise.neg(ctx.vector([1.0], f32))
    ctx.submit()
    assert not ctx.backend.is_lost(ctx.backend.recording - 1)


def test_the_largest_tensor_can_be_asked_for() -> None:
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 1 << 16}
    with gpu.open(adapter="software", limits=limits) as small:
        assert small.max_tensor_bytes == 1 << 16
        fits = small.zeros((1 << 16) // 4, f32)
        elementwise.neg(fits)
        with pytest.raises(gpu.LimitError):
            elementwise.neg(small.zeros((1 << 16) // 4 + 1, f32))
