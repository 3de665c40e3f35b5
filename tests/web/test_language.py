"""Kernels of the whole language in Firefox, bit for bit what NumPy says that they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerngen.emit.targets import Target
from kerngen.runtime import LimitError
from kerngen.runtime.calls.kernel import Kernel
from tests.compile import built
from tests.language.cases import Array, Arrays, Case, Inputs
from tests.language.every import EVERY
from tests.web.browser import Browser, JobError
from tests.web.built import build
from tests.web.calls import begin, results

pytestmark = pytest.mark.web

SIZES = (1, 67)
SHARE = 8
"""One case in so many is run by default: what they test is the compiler, mostly."""


def _descended(cost: Array) -> Arrays:
    """The cheapest ways from the first row down, each step to a neighbour."""
    total = cost.copy()
    for t in range(1, len(cost)):
        wide = np.pad(total[t - 1], 1, constant_values=np.inf)
        total[t] += np.minimum(np.minimum(wide[:-2], wide[1:-1]), wide[2:])
    return (total,)


def _added(x: Array, w: Array) -> Arrays:
    """A vector by a matrix of ones and zeros, three times; then its sum."""
    for _ in range(3):
        x = w @ x
    return x, np.asarray(x.sum())


STEPS = (
    Case(
        "a_dispatch_for_each_row",
        "kernel f(cost: f32[m, n]) -> total: f32[m, n] {"
        " let d[t, j] = if t > 0 { cost[t, j]"
        " + min(min(d[t - 1, max(j - 1, 0)], d[t - 1, j]), d[t - 1, min(j + 1, n - 1)])"
        " } else { cost[t, j] }; total[t, j] = d[t, j]; }",
        lambda draw, n: (draw.f32(n, n + 3),),
        _descended,
    ),
    Case(
        "a_dispatch_for_each_product",
        "kernel f(x: f32[n], w: f32[n, n], steps: u32) -> y: f32[n], total: f32[] {"
        " let v[s < steps + 1, i < n] = if s > 0 { sum[j] w[i, j] * v[s - 1, j] }"
        " else { x[i] }; y[i] = v[i32(steps), i]; total = sum[i] v[i32(steps), i]; }",
        lambda draw, n: (draw.f32(n), draw.f32(n, n)),
        _added,
        {"steps": 3},
    ),
)


def cases() -> Iterator[Any]:
    """Each with a number of its own."""
    for number, case in enumerate((*STEPS, *EVERY)):
        kept = number < len(STEPS) or number % SHARE == 0
        marks = [] if kept else [pytest.mark.nightly]
        yield pytest.param(number, case, id=str(case), marks=marks)


def _module(number: int, case: Case, generated: Path, folder: Path) -> str:
    """Build a case where the browser finds it."""
    name = f"case_{number}"
    (folder / f"{name}.kern").write_text(case.text, "utf-8")
    build([folder / f"{name}.kern"], generated, Target.TYPESCRIPT)
    return name


@pytest.mark.parametrize(("number", "case"), list(cases()))
def test_numpy_says_the_same(
    firefox: Browser, generated: Path, tmp_path: Path, number: int, case: Case
) -> None:
    module = _module(number, case, generated, tmp_path)
    meaning: Callable[..., Arrays] = case.meaning
    with built(case.text) as (kernel,):
        for size in SIZES:
            arrays = case.arguments(Inputs(size), size)
            call = begin(firefox, module, kernel, arrays, case.scalars)
            got = results(firefox, kernel, call)
            for one, wanted in zip(got, meaning(*arrays), strict=True):
                np.testing.assert_array_equal(one, wanted, err_msg=f"n = {size}")


def test_more_steps_than_a_call_may_have(
    firefox: Browser, generated: Path, tmp_path: Path, ctx: Any
) -> None:
    """The same sentence as in Python."""
    case = STEPS[1]
    module = _module(len(STEPS) + len(EVERY), case, generated, tmp_path)
    arrays = case.arguments(Inputs(2), 2)
    with built(case.text) as (kernel,):
        call = begin(firefox, module, kernel, arrays, {"steps": 5000})
        with pytest.raises(
            JobError, match=r"LimitError: .* 50\d\d dispatches"
        ) as found:
            firefox.finish(call)
        message = _refusal(ctx, kernel, arrays)
    # The places differ: each is of a source of its own.
    assert found.value.message.partition(": ")[2] == message.partition(": ")[2]


def _refusal(ctx: Any, kernel: Kernel, arrays: Arrays) -> str:
    with pytest.raises(LimitError) as found:
        kernel.launch(ctx, tuple(map(ctx.tensor, arrays)), (5000,), kernel.no_out)
    return str(found.value)
