"""Schedules, limits, features and shaders: what depends on the adapter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.plan.size import ONE, Literal, Symbol, all_of, compare, divides
from kerngen.plan.tree import Binding, Case, Choice, Dispatch, Needs, cases_in
from kerngen.runtime import (
    Context,
    Error,
    FeatureError,
    LimitError,
    f16,
    f32,
    u32,
)
from kerngen.runtime.calls.call_plan import Capabilities
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.calls.planner import Planner
from tests.runtime.kernels import (
    ACCUMULATE,
    BROKEN,
    COUNT,
    DOUBLED,
    MATMUL,
    STAMP,
    internals,
    launch,
    one,
    refuse,
    tensor,
)

# ---- adapters


def with_cases(kernel: Kernel, *cases: Case) -> Kernel:
    return replace(kernel, read_body=lambda: (Choice(cases, ("x",)),))


def only_case(kernel: Kernel) -> Case:
    (case,) = cases_in(kernel.body)
    return case


def test_schedules_are_passed_over_for_their_limits(ctx: Context) -> None:
    usual, broken = only_case(COUNT), only_case(BROKEN)
    kernel = with_cases(
        COUNT,
        replace(broken, needs=Needs(workgroup_bytes=1 << 30)),
        replace(broken, needs=Needs(invocations=1 << 20)),
        replace(broken, when=compare("==", Symbol("n"), 7)),
        usual,
    )
    x = ctx.zeros(5, u32)
    launch(kernel, x)
    np.testing.assert_array_equal(x.numpy(), np.arange(5))
    with pytest.raises(gpu.ValidationError):
        launch(kernel, ctx.zeros(7, u32))


def test_no_schedule_fits(ctx: Context) -> None:
    greedy = replace(only_case(COUNT), needs=Needs(workgroup_bytes=1 << 30))
    kernel = with_cases(COUNT, greedy)
    x = ctx.zeros(5, u32)
    refuse(
        ctx, LimitError, "count (hand.kern:5): no schedule of stage 'x' fits", kernel, x
    )


def test_guards_see_dims_scalars_and_the_adapter(ctx: Context) -> None:
    usual = only_case(STAMP)
    failing = replace(
        usual,
        body=(Dispatch("broken", (Binding("y", writes=True),), ONE),),
        when=all_of(
            compare("==", Symbol("step"), 4),
            compare(">=", Symbol("adapter.workgroup_bytes"), 16384),
        ),
    )
    kernel = replace(with_cases(STAMP, failing, usual), guard_scalars=("step",))
    for step in (3, 5, 3):
        launch(kernel, ctx=ctx, step=step, offset=0, scale=(0, 0, 0))
    with pytest.raises(gpu.ValidationError):
        launch(kernel, ctx=ctx, step=4, offset=0, scale=(0, 0, 0))


def test_variants_are_chosen_by_dims(ctx: Context) -> None:
    usual, broken = only_case(COUNT), only_case(BROKEN)
    variants = Choice((replace(broken, when=divides(4, Symbol("n"))), usual))
    x = ctx.zeros(5, u32)
    launch(with_cases(COUNT, replace(usual, body=(variants,))), x)
    np.testing.assert_array_equal(x.numpy(), np.arange(5))


def test_too_many_workgroups(ctx: Context) -> None:
    kernel = replace(
        COUNT,
        read_body=lambda: (
            one("x", "count", Binding("x", writes=True), groups=Literal(1 << 33)),
        ),
    )
    x = ctx.zeros(5, u32)
    refuse(
        ctx,
        LimitError,
        "count (hand.kern:5): 'count' needs 8589934592 workgroups; the adapter runs at most 65535 x",
        kernel,
        x,
    )


def test_too_many_bindings(ctx: Context) -> None:
    names = [f"t{number}" for number in range(2000)]
    kernel = replace(
        COUNT,
        name="crowd",
        dims=(),
        tensors=tuple(tensor(name, 1) for name in names),
        hosts=lambda: (0,),
        read_body=lambda: (
            one("t0", "crowd", *(Binding(name) for name in names), groups=ONE),
        ),
    )
    x = ctx.zeros(1, f32)
    refuse(
        ctx,
        LimitError,
        "crowd (hand.kern:5): 'crowd' binds 2000 tensors",
        kernel,
        *[x] * 2000,
    )


def test_webgpu_limits() -> None:
    with gpu.open(adapter="software", limits=gpu.WEBGPU_LIMITS) as ctx:
        a, b = ctx.zeros((1 << 13, 1), f32), ctx.zeros((1, (1 << 12) + 1), f32)
        refuse(
            ctx,
            LimitError,
            "matmul (hand.kern:6): 'c' of shape (8192, 4097) takes 134250496 bytes; the adapter binds "
            "at most 134217728.",
            MATMUL,
            a,
            b,
        )
        with pytest.raises(LimitError, match="larger than any buffer of the adapter"):
            ctx.empty(1 << 27, f32)
        x = ctx.vector(np.arange(100), f32)
        launch(ACCUMULATE, x[3:40], x[50:87], factor=1.0)
        expected = np.arange(100)
        expected[3:40] += np.arange(50, 87)
        np.testing.assert_array_equal(x.numpy(), expected)


def test_f16_needs_a_feature(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ctx.zeros(4, f16)
    launch(DOUBLED, x)
    planner: Any = internals(ctx)._launcher._planner
    rich: Capabilities = planner._capabilities
    poor = replace(rich, info=replace(rich.info, f16=False))
    monkeypatch.setattr(
        internals(ctx)._launcher,
        "_planner",
        Planner(poor, planner._shaders),
    )
    y = ctx.zeros(977, f16)  # no other test has planned a call of this length
    refuse(ctx, FeatureError, "doubled (hand.kern:7): 'x' has f16 elements", DOUBLED, y)


# ---- shaders


def test_a_failing_shader_leaves_the_context_usable(ctx: Context) -> None:
    x = ctx.zeros(4, u32)
    launch(COUNT, x)
    with pytest.raises(gpu.ValidationError, match=r"the shader of 'broken' \(broken\)"):
        launch(BROKEN, x)
    launch(COUNT, x)
    np.testing.assert_array_equal(x.numpy(), 2 * np.arange(4))


def test_a_missing_shader(ctx: Context) -> None:
    dispatch = Dispatch("nowhere", (Binding("x", writes=True),), ONE)
    kernel = with_cases(COUNT, Case("map", (dispatch,)))
    x = ctx.zeros(4, u32)
    refuse(ctx, Error, "count (hand.kern:5): can't read the shader", kernel, x)


def test_a_recording_that_fails_names_its_kernels(ctx: Context) -> None:
    """A mismatch of shader and description shows up as late as at submission."""
    lying = replace(
        COUNT,
        name="lying",
        read_body=lambda: (
            one(
                "x",
                "crowd",
                Binding("x", writes=True),
                groups=ONE,
                uses_uniform=False,
            ),
        ),
    )
    x, y = ctx.zeros(4, u32), ctx.zeros(4, u32)
    launch(lying, x)
    ctx.submit()
    launch(COUNT, y)
    compute: Any = internals(ctx)._recorder.compute
    compute.dispatch_workgroups(1 << 20, 1)
    with pytest.raises(gpu.ValidationError, match="the recorded kernel 'count'"):
        ctx.submit()
    launch(COUNT, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(4))
