"""Steps of optimizers whose gradients are not finite: noted, and not taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

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


@final
@dataclass(frozen=True)
class Case:
    """The kernel of an optimizer whose steps can fail, and what to give it."""

    name: str
    plain: Callable[..., object]
    """The kernel whose step is the same where none fails."""
    moments: str
    scalars: Mapping[str, float]

    def __str__(self) -> str:
        """The name of the optimizer."""
        return self.name

    @property
    def unless(self) -> Callable[..., object]:
        """The kernel."""
        kernel: Callable[..., object] = getattr(optim, f"{self.name}_unless")
        return kernel

    @property
    def reference(self) -> Callable[..., object]:
        """Its reference."""
        kernel: Callable[..., object] = getattr(optim, f"{self.name}_unless_reference")
        return kernel

    def state(self, length: int) -> Arrays:
        """In the middle of a training, -0 and a subnormal among the parameters."""
        rng = np.random.default_rng(length)
        param, m = rng.normal(size=(2, length)).astype(np.float32)
        param[:2] = m[:2] = -0.0, 1e-45
        v = np.square(rng.normal(size=length)).astype(np.float32)
        return {"param": param, **{of: {"m": m, "v": v}[of] for of in self.moments}}


CASES = (
    Case("adamw", optim.adamw, "mv", {"lr": 0.1, "step": 3}),
    Case("adam", optim.adamw, "mv", {"lr": 0.1, "step": 3}),
    Case("sgd", optim.sgd_momentum, "v", {"lr": 0.1, "momentum": 0.8}),
    Case("lion", optim.lion, "m", {"lr": 0.1}),
)
EACH = pytest.mark.parametrize("case", CASES, ids=str)


def bits_after(
    ctx: Context,
    arrays: Arrays,
    grad: NDArray[np.float32],
    failed: int | None,
    case: Case,
) -> list[bytes]:
    """What a step leaves; without `failed`, one of the kernel that can't fail."""
    param, *moments = (ctx.vector(array, f32) for array in arrays.values())
    if failed is None:
        case.plain(param, ctx.vector(grad, f32), *moments, **case.scalars)
    else:
        note = ctx.scalar(failed, u32)
        case.unless(param, ctx.vector(grad, f32), *moments, note, **case.scalars)
    return [tensor.numpy().tobytes() for tensor in (param, *moments)]


@EACH
@LENGTHS
def test_a_failed_step_changes_nothing(ctx: Context, case: Case, length: int) -> None:
    arrays = case.state(length)
    grad = np.resize(np.array([1.0, *NOT_FINITE], np.float32), length)
    bits = [array.tobytes() for array in arrays.values()]
    assert bits_after(ctx, arrays, grad, 3, case) == bits


@EACH
def test_nor_does_it_in_the_reference(case: Case) -> None:
    """NumPy's NaN times 0 is NaN; some adapters make it 0."""
    arrays = case.state(5)
    bits = [array.tobytes() for array in arrays.values()]
    param, *moments = arrays.values()
    grad = np.array([1.0, *NOT_FINITE], np.float32)
    failed = np.array(3, np.uint32)
    case.reference(param, grad, *moments, failed, **case.scalars)
    assert [array.tobytes() for array in arrays.values()] == bits


@LENGTHS
@pytest.mark.parametrize("case", [c for c in CASES if c.name != "adam"], ids=str)
def test_a_step_that_did_not_fail_is_the_optimizers(
    ctx: Context, case: Case, length: int
) -> None:
    arrays = case.state(length)
    grad = np.random.default_rng(0).normal(size=length).astype(np.float32)
    bits = bits_after(ctx, arrays, grad, 0, case)
    assert bits == bits_after(ctx, arrays, grad, None, case)
    assert bits != [array.tobytes() for array in arrays.values()]


@EACH
@LENGTHS
def test_it_is_one_dispatch(ctx: Context, case: Case, length: int) -> None:
    before = ctx.counters.snapshot()
    bits_after(ctx, case.state(length), np.zeros(length, np.float32), 0, case)
    assert (ctx.counters - before).dispatches == 1
