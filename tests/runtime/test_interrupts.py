"""Ctrl-C at any moment: the context goes on, no lock is kept, no later value is wrong.

What a kernel that was interrupted writes is anybody's guess; all else is as it was.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, TypeAlias, final

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, f32
from kerngen.runtime.device import mapping
from kerngen.runtime.device.mapping import library
from kerngen_kernels import elementwise
from tests.runtime.kernels import ACCUMULATE, CENTRE, launch

pytestmark = pytest.mark.skipif("os.name == 'nt'", reason="Windows has no such timer")

Vector: TypeAlias = gpu.Vector[f32]
LENGTH = 8
ONES, RANGE = np.ones(LENGTH), np.arange(LENGTH)
RESULTS = (RANGE, RANGE + 2, RANGE + 1, ONES, np.zeros(LENGTH))
"""What an operation may leave in its target, done or not."""


def in_a_batch(ctx: Context, target: Vector, x: Vector) -> None:
    with ctx.batch():
        launch(ACCUMULATE, target, x, factor=2.0)


def timed(ctx: Context, target: Vector, x: Vector) -> None:
    with ctx.timed():
        launch(ACCUMULATE, target, x, factor=2.0)


def captured(ctx: Context, target: Vector, x: Vector) -> None:
    with ctx.capture() as step:
        launch(ACCUMULATE, target, x, factor=1.0)
    step.replay(2)


OPERATIONS: dict[str, Callable[[Context, Vector, Vector], object]] = {
    "call": lambda _ctx, target, x: launch(ACCUMULATE, target, x, factor=2.0),
    "stages": lambda ctx, _target, _x: launch(CENTRE, ctx.vector([1, 3] * 8, f32)),
    "upload": lambda _ctx, target, _x: target.copy_from(RANGE + 1),
    "copy": lambda _ctx, target, x: target.copy_from(x),
    "clear": lambda _ctx, target, _x: target.clear(),
    "read": lambda ctx, target, x: ctx.read(x, target),
    "submit": lambda ctx, _target, _x: ctx.submit(),
    "batch": in_a_batch,
    "timed": timed,
    "captured": captured,
}


@pytest.fixture(autouse=True)
def _alarms() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    # An interrupt at the end of a `with np.errstate(...)` leaves its state: it is put back.
    with np.errstate():
        yield
    signal.signal(signal.SIGALRM, before)


def interrupted_after(seconds: float, work: Callable[[], object]) -> bool:
    """Run what a signal interrupts; return whether it came before the end."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
        take_signals()
    except KeyboardInterrupt:
        return True
    return False


def take_signals() -> None:
    """Give Python a call, at whose start it runs the handlers of signals that have come.

    One that comes right before the timer ends would be raised outside of the `try`.
    """


def check(ctx: Context, target: Vector, others: list[Vector]) -> None:
    """Compare all that was not written; then use all of the context."""
    for vector in others:
        np.testing.assert_array_equal(vector.numpy(), ONES)
    left = target.numpy()
    assert any(np.array_equal(left, result) for result in RESULTS), left
    in_a_batch(ctx, target, others[0])
    np.testing.assert_array_equal(target.numpy(), left + 2)
    with ctx.timed() as span:
        relu = elementwise.relu(target)
    assert span.seconds >= 0
    target.copy_from(others[0])
    np.testing.assert_array_equal(relu.numpy(), left + 2)
    np.testing.assert_array_equal(target.numpy(), ONES)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_interrupt_at_any_moment(name: str, ctx: Context) -> None:
    operation = OPERATIONS[name]
    device: Any = ctx.device
    took, interrupts = 0.001, 0
    rng = random.Random(0)
    for _ in range(300):
        with gpu.open(device) as here:
            target, x, other = (here.vector(a, f32) for a in (RANGE, ONES, ONES))

            def work(
                here: Context = here, target: Vector = target, x: Vector = x
            ) -> None:
                operation(here, target, x)

            start = time.perf_counter()
            if interrupted_after(rng.uniform(0.01, 1) * took, work):
                interrupts += 1
            else:
                took = max(0.9 * took, time.perf_counter() - start)
            with ThreadPoolExecutor(1) as thread:  # one that waits for no lock of ours
                thread.submit(check, here, target, [x, other]).result(60)
    assert interrupts > 50


@final
class InterruptAt:
    """Traces this thread, and raises KeyboardInterrupt before one instruction of a callback."""

    def __init__(self, instruction: int) -> None:
        self.left = instruction

    def __call__(self, frame: FrameType, event: str, _: object) -> InterruptAt | None:
        if event == "call":
            inside = frame.f_code.co_filename == mapping.__file__
            names = {"_note", "_failure", "_finish", "finish", "_as_int"}
            if not inside or frame.f_code.co_name not in names:
                return None
            frame.f_trace_opcodes = True
        elif event == "opcode":
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def test_an_interrupt_while_the_library_calls_back(
    ctx: Context, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before any instruction of the callback: the reader gets it, and never waits for ever."""
    x = ctx.vector(RANGE, f32)

    def give_up(*_: object) -> None:
        pytest.fail("the reader waits for a mapping that nobody finishes")

    signal.signal(signal.SIGALRM, give_up)
    loaded: Any = library()
    for instruction in range(1000):
        tracer, before = InterruptAt(instruction), sys.gettrace()
        signal.setitimer(signal.ITIMER_REAL, 20)
        sys.settrace(tracer)
        try:
            x.numpy()
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(before)
            signal.setitimer(signal.ITIMER_REAL, 0)
        np.testing.assert_array_equal(x.numpy(), RANGE)
        assert not loaded._pending
        if tracer.left >= 0:  # the callback has no more instructions
            assert not interrupted
            break
        assert interrupted, f"the interrupt before instruction {instruction} is lost"
    else:
        pytest.fail("the callback has no end")
    assert instruction > 20
    assert capfd.readouterr().err == ""
