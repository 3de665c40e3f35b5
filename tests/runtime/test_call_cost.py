"""What a call costs once it was made before: Python calls, counted as a profiler does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import numpy as np

from kerngen.runtime import Context
from kerngen_kernels import softmax

MOST = 22
"""A call of softmax that leases its output, in a recording that has begun."""

MOST_OF_OUT = 13
"""The same with `out=`."""


def python_calls(call: Callable[[], object]) -> int:
    """Return how many functions of Python's run in a call, itself and the end included."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        del frame, argument
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return count - 1


def test_a_repeated_call_takes_few_python_calls(ctx: Context) -> None:
    x = ctx.tensor(np.zeros((64, 64), np.float32))
    y = softmax.softmax(x)
    with ctx.batch():
        leased = [python_calls(lambda: softmax.softmax(x)) for _ in range(6)]
        given = [python_calls(lambda: softmax.softmax(x, out=y)) for _ in range(6)]
    assert min(leased) <= MOST
    assert min(given) <= MOST_OF_OUT
