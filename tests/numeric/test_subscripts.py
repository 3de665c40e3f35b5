"""No subscript of a shader is outside of its array, in any lane, whatever is ignored.

So shaders need none of the checks that `open(unchecked=True)` leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from itertools import chain, cycle
from typing import TypeAlias

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context
from kerngen.runtime.device.gpu import GPUDevice
from kerngen.runtime.device.native import MakeModule, unchecked_modules
from tests.budget import several
from tests.compile import built, built_module
from tests.language import meaning
from tests.language.cases import CASES, Inputs
from tests.language.cases import Case as Construct

from .cases import Case
from .domains import Dims
from .guarded_ways import AWKWARD, FAULTY, SINGLE, Fault, faulty, sizes
from .subscripts import Instrumented, InstrumentedDevice
from .ways import Way, all_ways, some, ways

Opened: TypeAlias = tuple[Context, InstrumentedDevice]

SIZES = (*SINGLE, *AWKWARD)
EMPTY = ((0, 37, 5), (131, 0, 5), (3, 67, 0))
"""Lengths some of which are 0; a kernel's dims take them in turn."""

FAULTS = (
    Fault(
        "ignored",
        "copy.map:edge",
        "x_edge[",
        "x_edge[0] + 0.0 * x_edge[9999u + ",
        "x_edge[9999u",
    ),
    Fault(
        "far off",
        "copy.map:edge",
        "y_edge[element]",
        "y_edge[element+999u]",
        "y_edge[element+999u",
    ),
    Fault("of words", "copy.map", "(u.n >> 2u)", "u.n", "x[element]"),
    Fault("of lanes", "total.reduce:edge", "f32, 256>", "f32, 255>", "partial[lane"),
    Fault("of parts", "total.reduce", "parts[g", "parts[99u+g", "parts[99u+g"),
)
"""What is to be noted, each with a part of it."""


def unchecked(device: GPUDevice) -> MakeModule:
    """What makes shader modules that don't check either what they touch."""
    make = unchecked_modules(device)
    assert not isinstance(make, str), make
    return make


@pytest.fixture(scope="module")
def opened(ctx: Context) -> Opened:
    """A context on an instrumented device of its own, of the adapter of `ctx`."""
    features = list(ctx.device.features)
    own = ctx.device.adapter.request_device_sync(required_features=features)
    device = InstrumentedDevice(own, unchecked(own))
    return gpu.open(device), device


def hold(opened: Opened, *several: Way) -> None:
    """Run each way at every size, and see that nothing was outside."""
    ctx, device = opened
    for way in several:
        for lengths in chain(sizes(way.case, SIZES), empty(way.case)):
            arrays, scalars = way.draw(np.random.default_rng(5), lengths)
            way.run(ctx, arrays, scalars)
            outside = device.outside()
            assert not outside, f"{lengths}: {outside}"


def empty(case: Case) -> Iterator[Dims]:
    """Lengths for every dim of a kernel, some of them 0."""
    return (dict(zip(case.kernel.dims, cycle(lengths))) for lengths in EMPTY)


@pytest.mark.parametrize(
    "way", [*some(all_ways(), most=1, every=4, but=("sort", "scatter digits"))]
)
def test_every_subscript_is_inside(opened: Opened, way: Way) -> None:
    hold(opened, way)


@pytest.mark.parametrize(
    ("case", "size"),
    [
        pytest.param(
            case,
            size,
            marks=[] if number % 5 == 2 and size == 67 else [pytest.mark.nightly],
            id=f"{case}-{size}",
        )
        for number, case in enumerate(CASES)
        for size in (5, 67)
    ],
)
def test_those_of_every_construct_are_inside(
    opened: Opened, case: Construct, size: int
) -> None:
    ctx, device = opened
    with meaning.kernel_of(case, "") as kernel:
        arrays = case.arguments(Inputs(size), size)
        list(meaning.run(ctx, case, kernel, arrays))
        assert not device.outside()


ATTENTION = """
kernel f(q: f32[h, s, d], k: f32[h, AXES], v: f32[h, t, e], of_key: f32[t]) -> y: f32[h, s, e] {
    let dot[g, i, j] = sum[p] q[g, i, p] * k[g, PLACE];
    let score[g, i, j] = dot[g, i, j] SCORE;
    let top[g, i] = max[j when MASK] score[g, i, j];
    let total[g, i] = sum[j when MASK] exp(score[g, i, j] - top[g, i]);
    let weight[g, i, j] = exp(score[g, i, j] - top[g, i]) / total[g, i];
    y[g, i, c] = sum[j when MASK] weight[g, i, j] * v[g, j, c];
}
kernel df = gradient of f by q, k, v;
schedule f { flash tile(16, 32, 32) micro(4, 4) depth(8, 8) }
schedule df { flash tile(16, 32, 32) micro(4, 4) depth(8, 8) CHUNK }
"""
ROWS_OF_TERMS, ROWS_OF_KEYS = ("t, d", "j, p"), ("d, t", "p, j")
LENGTHS = (
    (300, 32, 8, 8),
    (64, 32, 8, 8),
    (5, 3, 0, 8),
    (45, 21, 8, 12),
    (3, 45, 16, 4),
)
"""s, t, d, e: more queries than keys and fewer, whole turns and not, and no terms."""


@pytest.mark.parametrize(
    ("keys", "score", "mask", "chunk"),
    [
        (ROWS_OF_KEYS, "", "j >= i", "chunk(32)"),
        *(
            pytest.param(keys, "* of_key[j]", mask, "", marks=pytest.mark.nightly)
            for keys in (ROWS_OF_TERMS, ROWS_OF_KEYS)
            for mask in ("j <= i", "j >= i", "j < i + 20")
        ),
    ],
)
def test_those_of_attention_are_inside(
    opened: Opened, keys: tuple[str, str], score: str, mask: str, chunk: str
) -> None:
    ctx, device = opened
    text = ATTENTION.replace("AXES", keys[0]).replace("PLACE", keys[1])
    text = text.replace("SCORE", score).replace("MASK", mask).replace("CHUNK", chunk)
    with built_module(text) as module:
        for s, t, d, e in several(LENGTHS, by_day=2):
            shapes = {"q": (2, s, d), "k": (2, t, d), "v": (2, t, e), "of_key": (t,)}
            if keys is ROWS_OF_KEYS:
                shapes["k"] = (2, d, t)
            shapes["dy"] = (2, s, e)
            for function in (module.f, module.df):
                given = signature(function).parameters
                arrays = (np.ones(shapes[n], np.float32) for n in given if n in shapes)
                function(*map(ctx.tensor, arrays))
                outside = device.outside()
                assert not outside, f"{(s, t, d, e)}: {outside}"


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_noted(opened: Opened, fault: Fault) -> None:
    with built(FAULTY) as kernels:
        (kernel,) = (kernel for kernel in kernels if kernel.name == fault.kernel)
        fault.seed(kernel)
        with pytest.raises(AssertionError) as caught:
            hold(opened, *ways(faulty(kernel)))
        assert fault.shows in str(caught.value)
        assert f"'{kernel.name}' (" in str(caught.value)


CODE = """\
struct Point {
    at: vec3f,  // offset 0, x[0]
    trail: array<vec2f, 5>,
}
var<workgroup> tile: array<array<vec4<f32>, 5>, 16>;
@group(0) @binding(1) var<storage, read> points: array<Point>;
@group(0) @binding(2) var<storage, read> ids: array<u32>;
fn main(tile_row: u32) {
    let a = tile[tile_row + 1u][2u][ids[3u]];  // tile[9]
    let b = points[ids[tile_row]].trail[i].x + points[0u].at[k] + a.x;
}
"""


def test_what_is_rewritten() -> None:
    texts = Instrumented(CODE).texts
    assert texts == [
        "tile[tile_row + 1u]",
        "tile[0][0][ids[3u]]",
        "points[ids[tile_row]]",
        "ids[tile_row]",
        "points[0].trail[i]",
        "points[0].at[k]",
    ]
    lines = Instrumented(CODE, 7).code.splitlines()
    assert (
        "tile[kept_inside(u32(tile_row + 1u), 16u, 7u)][2u][kept_inside(u32(ids[3u]), 4u, 8u)]"
        in (lines[8])
    )
    assert (
        "points[kept_inside(u32(ids[kept_inside(u32(tile_row), arrayLength(&ids), 10u)])"
        in (lines[9])
    )
    assert ".trail[kept_inside(u32(i), 5u, 11u)].x" in lines[9]
    assert ".at[kept_inside(u32(k), 3u, 12u)]" in lines[9]
