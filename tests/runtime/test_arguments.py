"""What a call refuses, before anything is recorded, and in which words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import (
    Context,
    ContextError,
    DtypeError,
    Error,
    FeatureError,
    LimitError,
    ShapeError,
    UniformRangeError,
    f16,
    f32,
    i32,
    u32,
)
from kerngen.runtime.kernel import (
    AdapterInfo,
    Binding,
    Dims,
    Dispatch,
    Kernel,
    Schedule,
    Stage,
    Variant,
)
from kerngen.runtime.plan import Capabilities, Planner
from tests.runtime.kernels import (
    ACCUMULATE,
    AXPY,
    BROKEN,
    COUNT,
    DOUBLED,
    LOOKUP,
    MATMUL,
    STAMP,
    internals,
    launch,
    one,
    tensor,
)


@pytest.fixture(params=["device", "reference"])
def either(request: pytest.FixtureRequest, ctx: Context) -> Iterator[Context]:
    """Return a context of each kind: both check alike."""
    if request.param == "device":
        yield ctx
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


def refuse(
    ctx: Context,
    error: type[Error],
    message: str,
    kernel: Kernel,
    /,
    *tensors: Any,
    **rest: Any,
) -> None:
    """Launch, expect the error with this text, and that nothing was recorded."""
    ctx.submit()
    before = ctx.counters.snapshot()
    with pytest.raises(error) as caught:
        launch(kernel, *tensors, **rest)
    assert message in str(caught.value)
    ctx.submit()
    after = ctx.counters - before
    assert (after.calls, after.dispatches, after.encoders) == (0, 0, 0)


# ---- tensors


def test_dims_that_disagree(either: Context) -> None:
    a, b = either.zeros((2, 4), f32), either.zeros((3, 5), f32)
    refuse(
        either,
        ShapeError,
        "matmul: argument 'b' has shape (3, 5); expected (k=4, n): k is 4 from 'a' axis 1.",
        MATMUL,
        a,
        b,
    )


def test_wrong_rank(either: Context) -> None:
    a, b = either.zeros((2, 4), f32), either.zeros(4, f32)
    refuse(
        either,
        ShapeError,
        "matmul: argument 'b' has shape (4,) (rank 1); expected (k=4, n) (rank 2).",
        MATMUL,
        a,
        b,
    )


def test_a_literal_axis(either: Context) -> None:
    x, table = either.zeros(2, u32), either.zeros(2, f32)
    refuse(
        either,
        ShapeError,
        "lookup: argument 'rows' has shape (4, 2); expected (3, k=2): axis 0 is always 3.",
        LOOKUP,
        x,
        table,
        either.zeros((4, 2), f32),
    )


def test_wrong_element(either: Context) -> None:
    x = either.zeros(4, f32)
    refuse(
        either,
        DtypeError,
        "axpy: argument 'y' has i32 elements; expected f32.",
        AXPY,
        x,
        either.zeros(4, i32),
        alpha=1.0,
    )


def test_an_array_where_a_tensor_is_wanted(either: Context) -> None:
    a = either.zeros((2, 2), f32)
    refuse(
        either,
        DtypeError,
        "matmul: argument 'b' is a ndarray; expected a tensor. Make one by "
        "ctx.matrix(b, f32).",
        MATMUL,
        a,
        np.zeros((2, 2)),
    )
    refuse(
        either,
        DtypeError,
        "out 'c' is a list; expected a tensor",
        MATMUL,
        a,
        a,
        out=([],),
    )


def test_wrong_out(either: Context) -> None:
    a = either.zeros((2, 4), f32)
    b = either.zeros((4, 3), f32)
    refuse(
        either,
        ShapeError,
        "matmul: out 'c' has shape (3, 2); expected (m=2, n=3).",
        MATMUL,
        a,
        b,
        out=(either.zeros((3, 2), f32),),
    )
    refuse(
        either,
        DtypeError,
        "matmul: out 'c' has i32 elements; expected f32.",
        MATMUL,
        a,
        b,
        out=(either.zeros((2, 3), i32),),
    )


def test_wrong_out_of_a_call_like_an_earlier_one(either: Context) -> None:
    a, b = either.zeros((2, 4), f32), either.zeros((4, 3), f32)
    launch(MATMUL, a, b, out=(either.zeros((2, 3), f32),))
    refuse(
        either,
        ShapeError,
        "out 'c' has shape (3, 2)",
        MATMUL,
        a,
        b,
        out=(either.zeros((3, 2), f32),),
    )


def test_tensors_of_two_contexts(either: Context) -> None:
    with gpu.open(adapter="reference") as other:
        x, y = either.zeros(4, f32), other.zeros(4, f32)
        refuse(
            either,
            ContextError,
            "axpy: argument 'y' belongs to Context(reference",
            AXPY,
            x,
            y,
            alpha=1.0,
        )
        refuse(either, ContextError, "out 'z' belongs", AXPY, x, x, alpha=1.0, out=(y,))


def test_no_context() -> None:
    with pytest.raises(ContextError, match="stamp: no tensor says where to run"):
        launch(STAMP, step=2, offset=0, scale=(1, 2, 3))


def test_ranges_must_lie_inside_axes(either: Context) -> None:
    x = either.zeros(3, u32)
    refuse(
        either,
        ShapeError,
        "lookup: index 'i' ranges over n=3, but axis 0 of 'table' has length 2.",
        LOOKUP,
        x,
        either.zeros(2, f32),
        either.zeros((3, 2), f32),
    )
    refuse(
        either,
        ShapeError,
        "lookup: index 'j' ranges over 2, but axis 1 of 'rows' has length 1.",
        LOOKUP,
        either.zeros(1, u32),
        either.zeros(1, f32),
        either.zeros((3, 1), f32),
    )


def test_an_empty_range_checks_nothing(either: Context) -> None:
    x, table, rows = (
        either.zeros(0, u32),
        either.zeros(0, f32),
        either.zeros((3, 0), f32),
    )
    kernel = replace(LOOKUP, checks=LOOKUP.checks[:1])
    launch(kernel, x, table, rows)


# ---- scalars


@pytest.mark.parametrize(
    ("scalars", "error", "message"),
    [
        ({"step": 2.0}, DtypeError, "'step' is 2.0 (float); expected an integer (u32)"),
        ({"step": True}, DtypeError, "'step' is True (bool); expected an integer"),
        ({"step": None}, DtypeError, "'step' is None (NoneType); expected an integer"),
        ({"step": -1}, UniformRangeError, "'step' is -1; u32 holds 0 to 4294967295"),
        ({"step": 2**32}, UniformRangeError, "'step' is 4294967296"),
        ({"offset": 2**31}, UniformRangeError, "'offset' is 2147483648; i32 holds -2"),
        (
            {"scale": (1.0, 2.0)},
            DtypeError,
            "'scale' is (1.0, 2.0); expected 3 numbers",
        ),
        ({"scale": 1.0}, DtypeError, "'scale' is 1.0; expected 3 numbers"),
        ({"scale": (1, 2, "3")}, DtypeError, "'scale' is '3' (str); expected a number"),
        ({"scale": (1e39, 0, 0)}, UniformRangeError, "stamp: "),
        ({"step": 1}, UniformRangeError, "can't be computed from step=1, offset=0"),
    ],
)
def test_wrong_scalars(
    either: Context, scalars: dict[str, Any], error: type[Error], message: str
) -> None:
    given = {"step": 3, "offset": 0, "scale": (1.0, 2.0, 3.0)} | scalars
    refuse(either, error, message, STAMP, ctx=either, **given)


def test_a_float_out_of_range_names_kernel_and_field(either: Context) -> None:
    x = either.zeros(4, f32)
    refuse(either, UniformRangeError, "alpha", AXPY, x, x, alpha=1e39)


def test_scalars_of_numpy_and_infinities_are_taken(either: Context) -> None:
    (y,) = launch(
        STAMP,
        ctx=either,
        step=np.uint32(3),
        offset=np.int64(-7),
        scale=np.array([0.5, 1.0, 2.0], np.float32),
    )
    np.testing.assert_array_equal(y.numpy(), [3.0, -7.0, 3.5, 0.5])
    x = either.vector([1.0, -1.0], f32)
    (z,) = launch(AXPY, x, x, alpha=float("inf"))
    np.testing.assert_array_equal(z.numpy(), [np.inf, -np.inf])


def test_scalars_are_checked_in_an_empty_domain_too(either: Context) -> None:
    x = either.zeros(0, f32)
    refuse(either, UniformRangeError, "alpha", AXPY, x, x, alpha=1e39)


# ---- adapters


def with_schedules(kernel: Kernel, *schedules: Schedule) -> Kernel:
    return replace(kernel, stages=(replace(kernel.stages[0], schedules=schedules),))


def test_schedules_are_passed_over_for_their_limits(ctx: Context) -> None:
    def seven(dims: Dims, _info: AdapterInfo) -> bool:
        return dims["n"] == 7

    usual = COUNT.stages[0].schedules[0]
    broken = BROKEN.stages[0].schedules[0]
    kernel = with_schedules(
        COUNT,
        replace(broken, workgroup_bytes=1 << 30),
        replace(broken, invocations=1 << 20),
        replace(broken, when=seven),
        usual,
    )
    x = ctx.zeros(5, u32)
    launch(kernel, x)
    np.testing.assert_array_equal(x.numpy(), np.arange(5))
    with pytest.raises(gpu.ValidationError):
        launch(kernel, ctx.zeros(7, u32))


def test_no_schedule_fits(ctx: Context) -> None:
    usual = COUNT.stages[0].schedules[0]
    kernel = with_schedules(COUNT, replace(usual, workgroup_bytes=1 << 30))
    x = ctx.zeros(5, u32)
    refuse(ctx, LimitError, "count: no schedule of stage 'x' fits", kernel, x)


def test_guards_see_dims_scalars_and_the_adapter(ctx: Context) -> None:
    seen: list[tuple[Dims, AdapterInfo]] = []

    def guard(dims: Dims, info: AdapterInfo) -> bool:
        seen.append((dict(dims), info))
        return True

    usual = STAMP.stages[0].schedules[0]
    kernel = replace(
        with_schedules(STAMP, replace(usual, when=guard)), guard_scalars=("step",)
    )
    for step in (3, 4, 3):
        launch(kernel, ctx=ctx, step=step, offset=0, scale=(0, 0, 0))
    assert [dims for dims, _ in seen] == [{"step": 3}, {"step": 4}]
    assert seen[0][1].workgroup_bytes >= 16384


def test_variants_are_chosen_by_dims(ctx: Context) -> None:
    def in_fours(dims: Dims) -> bool:
        return dims["n"] % 4 == 0

    usual = COUNT.stages[0].schedules[0]
    broken = BROKEN.stages[0].schedules[0].variants[0]
    schedule = replace(
        usual,
        variants=(replace(broken, when=in_fours), *usual.variants),
    )
    x = ctx.zeros(5, u32)
    launch(with_schedules(COUNT, schedule), x)
    np.testing.assert_array_equal(x.numpy(), np.arange(5))


def test_too_many_workgroups(ctx: Context) -> None:
    kernel = replace(
        COUNT,
        stages=(
            Stage(
                "x", one("count", Binding("x", writes=True), groups=lambda _: 1 << 33)
            ),
        ),
    )
    x = ctx.zeros(5, u32)
    refuse(
        ctx,
        LimitError,
        "count: 'count' needs 8589934592 workgroups; the adapter runs at most 65535 x",
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
        stages=(
            Stage(
                "t0",
                one("crowd", *(Binding(name) for name in names), groups=lambda _: 1),
            ),
        ),
    )
    x = ctx.zeros(1, f32)
    refuse(ctx, LimitError, "crowd: 'crowd' binds 2000 tensors", kernel, *[x] * 2000)


def test_webgpu_limits() -> None:
    with gpu.open(adapter="software", limits=gpu.WEBGPU_LIMITS) as ctx:
        a, b = ctx.zeros((1 << 13, 1), f32), ctx.zeros((1, (1 << 12) + 1), f32)
        refuse(
            ctx,
            LimitError,
            "matmul: 'c' of shape (8192, 4097) takes 134250496 bytes; the adapter binds "
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
    y = ctx.zeros(5, f16)
    refuse(ctx, FeatureError, "doubled: 'x' has f16 elements", DOUBLED, y)


# ---- shaders


def test_a_failing_shader_leaves_the_context_usable(ctx: Context) -> None:
    x = ctx.zeros(4, u32)
    launch(COUNT, x)
    with pytest.raises(gpu.ValidationError, match=r"the shader of 'broken' \(broken\)"):
        launch(BROKEN, x)
    launch(COUNT, x)
    np.testing.assert_array_equal(x.numpy(), 2 * np.arange(4))


def test_a_missing_shader(ctx: Context) -> None:
    dispatch = Dispatch("nowhere", (Binding("x", writes=True),), lambda _: 1)
    kernel = replace(
        COUNT, stages=(Stage("x", (Schedule("map", (Variant("", (dispatch,)),)),)),)
    )
    x = ctx.zeros(4, u32)
    refuse(ctx, Error, "count: can't read the shader", kernel, x)


def test_a_recording_that_fails_names_its_kernels(ctx: Context) -> None:
    """A mismatch of shader and description shows up as late as at submission."""
    lying = replace(
        COUNT,
        name="lying",
        stages=(
            Stage(
                "x",
                one(
                    "crowd",
                    Binding("x", writes=True),
                    groups=lambda _: 1,
                    uses_uniform=False,
                ),
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
