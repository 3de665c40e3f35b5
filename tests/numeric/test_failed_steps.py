"""Steps of optimizers whose gradients are not finite: noted, and not taken."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.runtime import Context, f32, u32
from kerngen_kernels import clip, optim

NOT_FINITE = (math.inf, -math.inf, math.nan, -math.nan)
FINITE = (0.0, 1e-45, float(np.finfo(np.float32).max))
LENGTHS = pytest.mark.parametrize("length", [64, 67], ids=["aligned", "edge"])

Arrays: TypeAlias = dict[str, NDArray[np.float32]]


@pytest.mark.parametrize(
    ("total", "before", "after"),
    [
        *((total, 0, 9) for total in NOT_FINITE),
        *((total, 4, 4) for total in NOT_FINITE),
        *((total, 0, 0) for total in FINITE),
        *((total, 4, 4) for total in FINITE),
    ],
)
def test_the_first_failed_step_is_noted(
    ctx: Context, total: float, before: int, after: int
) -> None:
    failed = ctx.scalar(before, u32)
    clip.note_nonfinite(failed, ctx.scalar(total, f32), step=9)
    assert failed.numpy() == after


def state(length: int) -> Arrays:
    """Parameters and moments in the middle of a training, -0 and a subnormal among them."""
    rng = np.random.default_rng(length)
    param, m = rng.normal(size=(2, length)).astype(np.float32)
    param[:2] = m[:2] = -0.0, 1e-45
    v = np.square(rng.normal(size=length)).astype(np.float32)
    return {"param": param, "m": m, "v": v}


def bits_after(
    ctx: Context,
    arrays: Arrays,
    grad: NDArray[np.float32],
    failed: int | None,
) -> list[bytes]:
    """What a step leaves; without `failed`, one of `adamw`."""
    param, m, v = (ctx.vector(array, f32) for array in arrays.values())
    g = ctx.vector(grad, f32)
    if failed is None:
        optim.adamw(param, g, m, v, lr=0.1, step=3)
    else:
        optim.adamw_unless(param, g, m, v, ctx.scalar(failed, u32), lr=0.1, step=3)
    return [tensor.numpy().tobytes() for tensor in (param, m, v)]


@LENGTHS
def test_a_failed_step_changes_nothing(ctx: Context, length: int) -> None:
    arrays = state(length)
    grad = np.resize(np.array([1.0, *NOT_FINITE], np.float32), length)
    bits = [array.tobytes() for array in arrays.values()]
    assert bits_after(ctx, arrays, grad, failed=3) == bits


def test_nor_does_it_in_the_reference() -> None:
    """NumPy's NaN times 0 is NaN; some adapters make it 0."""
    arrays = state(5)
    bits = [array.tobytes() for array in arrays.values()]
    param, m, v = arrays.values()
    grad = np.array([1.0, *NOT_FINITE], np.float32)
    failed = np.array(3, np.uint32)
    optim.adamw_unless_reference(param, grad, m, v, failed, lr=0.1, step=3)
    assert [array.tobytes() for array in arrays.values()] == bits


@LENGTHS
def test_a_step_that_did_not_fail_is_adamws(ctx: Context, length: int) -> None:
    arrays = state(length)
    grad = np.random.default_rng(0).normal(size=length).astype(np.float32)
    bits = bits_after(ctx, arrays, grad, failed=0)
    assert bits == bits_after(ctx, arrays, grad, failed=None)
    assert bits != [array.tobytes() for array in arrays.values()]


@LENGTHS
def test_it_is_one_dispatch(ctx: Context, length: int) -> None:
    before = ctx.counters.snapshot()
    bits_after(ctx, state(length), np.zeros(length, np.float32), failed=0)
    assert (ctx.counters - before).dispatches == 1
