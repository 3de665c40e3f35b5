"""Bound pipelines are called: results against NumPy, and what a wrong call raises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, bound, f32, i32, u32
from kerngen_kernels import elementwise

from .bound import module_of

SCALE = """
struct Params { n: u32, scale: f32 }
override SIZE: u32 = 64;
@id(7) override bias: f32;
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(1) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(SIZE)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < params.n { y[id.x] = params.scale * x[id.x] + bias; }
}
"""

TAIL = """
struct Item { at: vec3f, mass: f32 }
struct Items { total: atomic<u32>, items: array<Item> }
@group(0) @binding(0) var<storage, read_write> all: Items;
@group(2) @binding(0) var<uniform> by: array<vec4f, 2>;
@compute @workgroup_size(4, 2)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x + 8u * (id.y + 2u * id.z);
    if i < arrayLength(&all.items) {
        all.items[i].at += by[i % 2u].xyz;
        atomicAdd(&all.total, 1u);
    }
}
"""


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return module_of(SCALE, tmp_path_factory.mktemp("scale"))


@pytest.fixture(scope="module")
def tail(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return module_of(TAIL, tmp_path_factory.mktemp("tail"))


def test_a_call_agrees_with_numpy(scale: Any, ctx: Context) -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    x, y = ctx.vector(values, f32), ctx.zeros(1000, f32)
    params = scale.Params(n=999, scale=2.5)
    ready = scale.Main(SIZE=128, bias=0.5).bind(
        scale.Group0(params=params, x=x), scale.Group1(y=y)
    )
    ready.dispatch_threads(1000)
    expected = np.where(np.arange(1000) < 999, values.astype(np.float64) * 2.5 + 0.5, 0)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_arrays_have_their_count_and_groups_may_be_missing(
    tail: Any, ctx: Context
) -> None:
    cls = bound.sized(tail.Items, 25)
    assert cls.SIZE == 16 + 25 * 16
    all_ = ctx.zeros((), cls)
    by = ((1, 2, 3, 0), (4, 5, 6, 0))
    pipeline = tail.Main().bind(tail.Group0(all=all_), tail.Group2(by=by))
    pipeline.dispatch_threads(8, 2, 2)
    record = all_.numpy()
    assert record["total"] == 25
    expected = np.array([by[i % 2][:3] for i in range(25)])
    np.testing.assert_array_equal(record["items"]["at"], expected)
    assert len(all_.item().items) == 25


def test_kernels_and_pipelines_share_a_recording(scale: Any, ctx: Context) -> None:
    x, y = ctx.vector(np.arange(64), np.float32), ctx.empty(64, f32)
    submits = ctx.counters.submits
    with ctx.batch():
        first = scale.Group0(
            params=scale.Params(n=64, scale=3), x=elementwise.add(x, x)
        )
        scale.Main(bias=0).bind(first, scale.Group1(y=y)).dispatch_threads(64)
        z = elementwise.add(y, y)
    assert ctx.counters.submits == submits + 1
    np.testing.assert_array_equal(z.numpy(), np.arange(64) * 12)


def test_a_kernels_result_has_its_length(ctx: Context, tmp_path: Path) -> None:
    module = module_of(
        """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> length: array<u32>;
@compute @workgroup_size(1) fn main() { length[0] = arrayLength(&x); }
""",
        tmp_path,
    )
    for count in (1, 3, 5):
        x, length = ctx.zeros(count, f32), ctx.zeros(1, u32)
        group = module.Group0(x=elementwise.add(x, x), length=length)
        module.Main().bind(group).dispatch_threads(1)
        assert length.numpy() == [count]


def test_a_capture_replays_both(scale: Any, ctx: Context) -> None:
    x, y = ctx.vector(np.ones(8), np.float32), ctx.zeros(8, f32)
    with ctx.capture() as step:
        first = scale.Group0(params=scale.Params(n=8, scale=3), x=elementwise.add(x, x))
        scale.Main(bias=1).bind(first, scale.Group1(y=y)).dispatch_workgroups(1)
    np.testing.assert_array_equal(y.numpy(), 0)
    step.replay()
    np.testing.assert_array_equal(y.numpy(), 7)
    x.copy_from(np.full(8, 5.0))
    scale.Main(bias=9).bind(first, scale.Group1(y=ctx.zeros(8, f32))).dispatch_threads(
        8
    )
    step.replay(2)
    np.testing.assert_array_equal(y.numpy(), 31)


def test_a_profile_names_the_entry_point(scale: Any, ctx: Context) -> None:
    x, y = ctx.zeros(8, f32), ctx.zeros(8, f32)
    group0 = scale.Group0(params=scale.Params(n=8, scale=3), x=x)
    ready = scale.Main(bias=1).bind(group0, scale.Group1(y=y))
    with ctx.profile() as profile:
        ready.dispatch_workgroups(1)
    (event,) = profile.events
    assert event.kernel.endswith(".wgsl:main")


def test_nothing_is_run_for_no_threads(scale: Any, ctx: Context) -> None:
    x, y = ctx.zeros(8, f32), ctx.zeros(8, f32)
    group0 = scale.Group0(params=scale.Params(n=8, scale=3), x=x)
    dispatches = ctx.counters.dispatches
    scale.Main(bias=1).bind(group0, scale.Group1(y=y)).dispatch_threads(0)
    assert ctx.counters.dispatches == dispatches


Wrong = Callable[[Any, Context], object]
"""A wrong call, of the module and a context."""


def group0(scale: Any, ctx: Context, **given: object) -> Any:
    usual = {"params": scale.Params(n=8, scale=3), "x": ctx.zeros(8, f32)}
    return scale.Group0(**{**usual, **given})


def on(scale: Any, ctx: Context, **given: object) -> Any:
    first = group0(scale, ctx, **given)
    return scale.Main(bias=1).bind(first, scale.Group1(y=ctx.zeros(8, f32)))


WRONG: dict[str, tuple[Wrong, type[Exception], str]] = {
    "missing override": (lambda m, _: m.Main(), TypeError, "'bias'"),
    "override of another type": (
        lambda m, _: m.Main(bias="1"),
        gpu.DtypeError,
        "'Main.bias' is '1' (str); expected a number (f32)",
    ),
    "override out of range": (
        lambda m, _: m.Main(bias=1, SIZE=-1),
        gpu.UniformRangeError,
        "'Main.SIZE' is -1; u32 holds 0 to 4294967295",
    ),
    "workgroups of no invocations": (
        lambda m, c: (
            m.Main(bias=1, SIZE=0)
            .bind(group0(m, c), m.Group1(y=c.zeros(8, f32)))
            .dispatch_threads(8)
        ),
        gpu.ArgumentError,
        "Main: its workgroups are of (0, 1, 1) invocations; expected 1 or more",
    ),
    "uniform of another type": (
        lambda m, c: group0(m, c, params=1),
        gpu.DtypeError,
        "'Group0.params' is 1 (int); expected a Params",
    ),
    "no tensor": (
        lambda m, c: group0(m, c, x=[1.0]),
        gpu.DtypeError,
        "'Group0.x' is a list; expected a tensor of f32",
    ),
    "another element type": (
        lambda m, c: group0(m, c, x=c.zeros(8, i32)),
        gpu.DtypeError,
        "'Group0.x' has elements of i32; the shader has f32 there",
    ),
    "too small": (
        lambda m, c: group0(m, c, x=c.zeros(0, f32)),
        gpu.ShapeError,
        "'Group0.x' has 0 bytes; the shader reads 4 or more",
    ),
    "misaligned": (
        lambda m, c: group0(m, c, x=c.zeros(8, f32)[1:]),
        gpu.ShapeError,
        "'Group0.x' begins at byte 4 of its buffer",
    ),
    "another group": (
        lambda m, c: m.Main(bias=1).bind(group0(m, c), group0(m, c)),
        gpu.DtypeError,
        "Main.bind: expected a Group1, got a",
    ),
    "too many workgroups": (
        lambda m, c: on(m, c).dispatch_workgroups(1, 65536),
        gpu.LimitError,
        "65536 workgroups along an axis; the adapter runs 65535",
    ),
    "a negative count": (
        lambda m, c: on(m, c).dispatch_threads(-1),
        gpu.ArgumentError,
        "Main: x is -1; expected 0 or more",
    ),
    "a count that is no integer": (
        lambda m, c: on(m, c).dispatch_threads(1.5),
        gpu.DtypeError,
        "Main: x is a float; expected an int",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_raises_before_the_gpu(
    case: str, scale: Any, ctx: Context
) -> None:
    wrong, kind, text = WRONG[case]
    submits, dispatches = ctx.counters.submits, ctx.counters.dispatches
    with pytest.raises(kind) as found:
        wrong(scale, ctx)
    assert text in str(found.value)
    assert (ctx.counters.submits, ctx.counters.dispatches) == (submits, dispatches)


def test_what_is_written_is_bound_once(scale: Any, ctx: Context) -> None:
    x = ctx.zeros(64, f32)
    first = group0(scale, ctx, x=x)
    ready = scale.Main(bias=1).bind(first, scale.Group1(y=x))
    with pytest.raises(gpu.AliasError, match="'x' and 'y' are in one buffer"):
        ready.dispatch_threads(1)


def test_contexts_are_not_mixed(scale: Any, ctx: Context) -> None:
    first = group0(scale, ctx)
    with gpu.open(adapter="reference") as other:
        second = scale.Group1(y=other.zeros(8, f32))
        with pytest.raises(gpu.ContextError, match="different contexts"):
            scale.Main(bias=1).bind(first, second)
        x = other.zeros(8, f32)
        lone = scale.Group0(params=scale.Params(n=8, scale=3), x=x)
        ready = scale.Main(bias=1).bind(lone, second)
        with pytest.raises(gpu.FeatureError, match="without a NumPy reference"):
            ready.dispatch_threads(1)


def test_a_shader_of_another_text_is_refused(tmp_path: Path) -> None:
    name = module_of(SCALE, tmp_path).__name__
    shader = tmp_path / "wgsl" / name / f"{name}.wgsl"
    shader.write_text(SCALE.replace("bias;", "bias + 1;"), "utf-8")
    with pytest.raises(gpu.AbiError, match="was made of another text"):
        bound.Shader.of(name, str(tmp_path / f"{name}.py"), f"{name}.wgsl")


def test_lengths_that_no_buffer_has_are_refused(tail: Any) -> None:
    with pytest.raises(gpu.ShapeError, match="it has 1 at least"):
        bound.sized(tail.Items, 0)
    with pytest.raises(gpu.ShapeError, match="it ends in no array"):
        bound.sized(tail.Item, 3)


def test_numbers_are_uniforms_too(ctx: Context, tmp_path: Path) -> None:
    module = module_of(
        """
@group(0) @binding(0) var<uniform> n: u32;
@group(0) @binding(1) var<uniform> m: mat3x3f;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn main() { for (var i = 0u; i < n; i++) { y[i] = m[i / 3][i % 3]; } }
""",
        tmp_path,
    )
    y = ctx.zeros(9, f32)
    matrix = np.arange(9.0).reshape(3, 3)
    module.Main().bind(module.Group0(n=9, m=matrix, y=y)).dispatch_workgroups(1)
    np.testing.assert_array_equal(y.numpy(), np.arange(9))


def test_overrides_of_every_type_reach_the_shader(ctx: Context, tmp_path: Path) -> None:
    module = module_of(
        """
override a: i32; override b: bool = false; override c = 1.5; override d = 2 * a;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn main() { y[0] = f32(a); y[1] = select(0.0, 1.0, b); y[2] = c; y[3] = f32(d); }
""",
        tmp_path,
    )
    for given, expected in (
        ({"a": -3}, (-3, 0, 1.5, -6)),
        ({"a": 4, "b": True, "c": 0.25, "d": 9}, (4, 1, 0.25, 9)),
    ):
        y = ctx.zeros(4, f32)
        module.Main(**given).bind(module.Group0(y=y)).dispatch_workgroups(1)
        np.testing.assert_array_equal(y.numpy(), expected)


def test_shaders_keep_their_checks_where_kernels_have_none(tmp_path: Path) -> None:
    module = module_of(
        """
@group(0) @binding(0) var<uniform> at: u32;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> line: array<u32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    line[i] = i + 10u;
    workgroupBarrier();
    y[i] = line[at];
}
""",
        tmp_path,
    )
    with gpu.open(adapter="software", unchecked=True) as ctx:
        y = ctx.zeros(4, u32)
        module.Main().bind(module.Group0(at=3_000_000, y=y)).dispatch_workgroups(1)
        np.testing.assert_array_equal(y.numpy(), 13)


def test_elements_may_be_atomic(ctx: Context, tmp_path: Path) -> None:
    module = module_of(
        """
@group(0) @binding(0) var<storage, read_write> bins: array<atomic<u32>, 4>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) { atomicAdd(&bins[i % 4], i); }
""",
        tmp_path,
    )
    bins = ctx.zeros(4, u32)
    module.Main().bind(module.Group0(bins=bins)).dispatch_threads(32)
    expected = np.bincount(np.arange(32) % 4, np.arange(32))
    np.testing.assert_array_equal(bins.numpy(), expected)


WIDE = """
const STEP: i64 = 1099511627776li;
struct Params { by: vec2<i64>, scale: f64, low: u64 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> whole: array<i64>;
@group(0) @binding(2) var<storage, read_write> sums: array<i64>;
@group(0) @binding(3) var<storage, read_write> scaled: array<f64>;
@group(0) @binding(4) var<storage, read_write> most: atomic<u64>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    sums[id.x] = whole[id.x] + params.by.y + STEP;
    scaled[id.x] = params.scale * f64(sums[id.x]);
    atomicMax(&most, params.low + u64(id.x));
}
"""


def test_numbers_of_64_bits_agree_with_numpy(tmp_path: Path, ctx: Context) -> None:
    module = module_of(WIDE, tmp_path)
    values = np.arange(-4, 4, dtype=np.int64) * (2**59 - 1)
    sums, scaled = ctx.zeros(8, bound.i64), ctx.zeros(8, bound.f64)
    most = ctx.zeros((), bound.u64)
    params = module.Params(by=(0, -7), scale=np.pi, low=2**63)
    whole = ctx.vector(values, bound.i64)
    group = module.Group0(params, whole, sums, scaled, most)
    module.Main().bind(group).dispatch_threads(8)
    expected = values - 7 + 2**40
    np.testing.assert_array_equal(sums.numpy(), expected)
    np.testing.assert_allclose(scaled.numpy(), np.pi * expected, rtol=1e-15)
    assert most.numpy() == 2**63 + 7
    with pytest.raises(gpu.UniformRangeError, match="u64 holds 0 to"):
        module.Params(by=(0, 0), scale=1, low=2**64)
    with pytest.raises(gpu.DtypeError, match="has elements of i32"):
        module.Group0(params, ctx.zeros(8, i32), sums, scaled, most)
