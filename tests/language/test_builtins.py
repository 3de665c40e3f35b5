"""Every typing of every built-in, alone and four at a time, against Python's arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.builtins.row import Builtin, Overload
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar
from tests.budget import sampled
from tests.compile import built
from tests.language.builtin_oracles import (
    DOMAINS,
    INTEGERS,
    ORACLES,
    SIGNED_ORACLES,
    Oracle,
)

SIZES = (400, 401)
"""A multiple of 4, which is computed in vectors, and a size that is not."""

WHOLE_RANGE = {Scalar.I32: (-(2**31), 2**31 - 1), Scalar.U32: (0, 2**32 - 1)}
NUMPY = {Scalar.F32: np.float32, Scalar.I32: np.int32, Scalar.U32: np.uint32}


@dataclass(frozen=True)
class Typing:
    """One overload of one built-in."""

    builtin: Builtin
    overload: Overload

    def __str__(self) -> str:
        """The name and the types, as tests show them."""
        types = ",".join(p.spelling for p in self.overload.parameters)
        return f"{self.builtin.name}({types})"

    @property
    def text(self) -> str:
        """A kernel that calls it; booleans travel as i32."""
        names = [f"x{number}" for number in range(self.builtin.arity)]
        typed = zip(names, self.overload.parameters, strict=True)
        parameters = ", ".join(f"{name}: {carrier(type_)}[n]" for name, type_ in typed)
        typed = zip(names, self.overload.parameters, strict=True)
        arguments = ", ".join(
            f"{name}[i] > 0" if type_ is Scalar.BOOL else f"{name}[i]"
            for name, type_ in typed
        )
        call = f"{self.builtin.name}({arguments})"
        result = self.overload.result
        value = f"if {call} {{ 1 }} else {{ 0 }}" if result is Scalar.BOOL else call
        output = f"y: {carrier(result)}[n]"
        return f"kernel f({parameters}) -> {output} {{ y[i] = {value}; }}"

    @property
    def oracle(self) -> Oracle:
        """What the call means, in Python: a table of ours, or else the row itself."""
        name, first = self.builtin.name, self.overload.parameters[0]
        if first is Scalar.I32 and name in SIGNED_ORACLES:
            return SIGNED_ORACLES[name]
        return ORACLES.get(name, self._by_row)

    def _by_row(self, *given: float) -> Any:
        return self.builtin.value(self.overload.parameters[0], given)

    def draw(self, size: int) -> list[NDArray[Any]]:
        """Arguments from where the bound holds."""
        random = np.random.default_rng(size)
        drawn: list[NDArray[Any]] = []
        for number, type_ in enumerate(self.overload.parameters):
            match type_:
                case Scalar.F32:
                    values: NDArray[Any] = random.uniform(*self._reals(number), size)
                case Scalar.BOOL:
                    values = random.integers(0, 2, size)
                case Scalar.I32 | Scalar.U32:
                    values = random.integers(*self._range(number, type_), size)
                case _:
                    assert_never(type_)
            drawn.append(values.astype(NUMPY.get(type_, np.int32)))
        return drawn

    def _reals(self, number: int) -> tuple[float, float]:
        """Return where to draw an f32 from: near 0, where the accuracy holds."""
        if self.builtin.name in DOMAINS:
            return DOMAINS[self.builtin.name][number]
        low, high = self.builtin.intervals[number]
        return max(low, -9.0), min(high, 9.0)

    def _range(self, number: int, type_: Scalar) -> tuple[int, int]:
        low, high = WHOLE_RANGE[type_]
        ranges = INTEGERS.get(self.builtin.name)
        if ranges is not None and ranges[number] != (0, 0):
            low, high = max(low, ranges[number][0]), min(high, ranges[number][1])
        return low, high + 1

    def bound(self, first: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
        """How far from the oracle a result may be, as the table says."""
        accuracy = self.builtin.accuracy
        ulp = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
        ulps = accuracy.ulps + accuracy.ulps_per_argument * np.abs(first)
        rounding = 0.0 if accuracy.source.startswith("exact") else 0.5
        bound: NDArray[Any] = accuracy.absolute + (ulps + rounding) * ulp
        return bound


def carrier(type_: Scalar) -> str:
    return "i32" if type_ is Scalar.BOOL else type_.spelling


def wrapped(values: list[Any], result: Scalar) -> NDArray[Any]:
    """Exact results as the result's type: bit patterns for integers."""
    if result is Scalar.F32:
        return np.array(values, np.float64)
    bits = np.array([int(value) & 0xFFFFFFFF for value in values], np.uint32)
    return bits.view(NUMPY.get(result, np.int32))


TYPINGS = [
    Typing(builtin, overload)
    for builtin in BUILTINS.values()
    for overload in builtin.overloads
]


def test_oracles_are_of_builtins() -> None:
    assert set(ORACLES) <= set(BUILTINS)


@pytest.mark.parametrize("typing", sampled(TYPINGS, 2))
def test_builtins_mean_what_python_means(ctx: gpu.Context, typing: Typing) -> None:
    with built(typing.text) as (kernel,):
        for size in SIZES:
            arrays = typing.draw(size)
            oracle: Callable[..., Any] = typing.oracle
            points = zip(*map(list_of, arrays), strict=True)
            values = [oracle(*point) for point in points]
            wanted = wrapped(values, typing.overload.result)
            tensors = tuple(ctx.tensor(array) for array in arrays)
            (y,) = kernel.launch(ctx, tensors, (), (None,))
            compare(typing, arrays[0], y.numpy(), wanted)
            compare(typing, arrays[0], kernel.reference(*arrays), wanted)


def list_of(array: NDArray[Any]) -> list[Any]:
    listed: list[Any] = array.tolist()
    return listed


def compare(
    typing: Typing, first: NDArray[Any], got: NDArray[Any], wanted: NDArray[Any]
) -> None:
    """Hold results to the table's bound; integers must be equal."""
    if typing.overload.result is not Scalar.F32:
        np.testing.assert_array_equal(got, wanted)
        return
    error = np.abs(got.astype(np.float64) - wanted)
    bound = typing.bound(first.astype(np.float64), wanted)
    worst = int(np.argmax(error - bound))
    assert error[worst] <= bound[worst], (
        f"at {first[worst]}: got {got[worst]}, wanted {wanted[worst]}, "
        f"off by {error[worst]:.3g}, allowed {bound[worst]:.3g}"
    )


EDGES = (-(2**31), -(2**31) + 1, -7, -2, -1, 0, 1, 2, 7, 2**31 - 2, 2**31 - 1)
"""Integers around 0 and at the limits of i32; all pairs of them are divided."""


@pytest.mark.parametrize("width", ["i32", "vec2i", "vec3i"])
def test_floored_divisions_are_pythons_at_the_limits(
    ctx: gpu.Context, width: str
) -> None:
    text = (
        f"kernel f(a: {width}[n], b: {width}[n]) -> q: {width}[n], r: {width}[n] {{ "
        "q[i] = floor_div(a[i], b[i]); r[i] = mod(a[i], b[i]); }"
    )
    pairs = [(a, b) for a in EDGES for b in EDGES]
    lanes = 1 if width == "i32" else int(width[3])
    a, b = np.array(pairs, np.int32).T.repeat(lanes, 1)
    oracles: list[Any] = [ORACLES["floor_div"], ORACLES["mod"]]
    wanted = [
        wrapped([oracle(x, y) for x, y in pairs], Scalar.I32).repeat(lanes)
        for oracle in oracles
    ]
    shape = (-1,) if lanes == 1 else (-1, lanes)
    arrays = [side.reshape(shape) for side in (a, b)]
    with built(text) as (kernel,):
        element = gpu.i32 if lanes == 1 else getattr(gpu, width)
        tensors = tuple(ctx.tensor(array, element) for array in arrays)
        for results in (
            [y.numpy() for y in kernel.launch(ctx, tensors, (), (None, None))],
            kernel.reference(*arrays),
        ):
            for result, exact in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(result.ravel(), exact)


FLOATS = (
    0.0,
    -0.5,
    1.5,
    -7.9,
    2147483520.0,
    2.0**31,
    -(2.0**31),
    3e9,
    -3e9,
    4294967040.0,
)
NAMELESS = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF], np.uint32)
"""Infinity, and numbers that are none, by their bits; the sign is added."""


@pytest.mark.parametrize("extra", [0, 1], ids=["vectors", "scalars"])
@pytest.mark.parametrize("type_", ["i32", "u32"])
def test_casts_saturate_and_nan_is_0(ctx: gpu.Context, type_: str, extra: int) -> None:
    special = np.concatenate([NAMELESS, NAMELESS | 2**31]).view(np.float32)
    finite = np.array([*FLOATS, 2.0**32, 3.4e38, -3.4e38, 1e-40], np.float32)
    x = np.resize(np.concatenate([special, finite]), 40 + extra)
    low, high = (0, 2**32 - 256) if type_ == "u32" else (-(2**31), 2**31 - 128)
    numbers = np.where(np.isnan(x), 0, x).astype(np.float64)
    wanted = np.clip(np.trunc(numbers), low, high).astype(np.int64)
    text = (
        f"fn whole(t: f32) -> {type_} {{ {type_}(t * 1.0) }}\n"
        f"kernel f(x: f32[n], p: vec3f[n]) -> y: {type_}[n], z: vec3{type_[0]}[n] "
        f"{{ y[i] = whole(x[i]); z[i] = vec3{type_[0]}(p[i]); }}"
    )
    with built(text) as (kernel,):
        p = x[:, None].repeat(3, 1)
        tensors = ctx.tensor(x), ctx.tensor(p, gpu.vec3f)
        device = [y.numpy() for y in kernel.launch(ctx, tensors, (), (None, None))]
        for y, z in (device, kernel.reference(x, p)):
            np.testing.assert_array_equal(y, wanted)
            np.testing.assert_array_equal(z, wanted[:, None].repeat(3, 1))


def test_casts_of_what_is_finite_need_no_helper() -> None:
    text = "kernel f(x: f32[n], k: i32[n]) -> y: i32[n] {{ y[i] = i32({}); }}"
    for value, helped in (
        ("0.5 * f32(k[i]) + 1e30", False),
        ("floor(f32(k[i]) / 8.0) - 1.0", False),
        ("if x[i] > 0.0 { 1.5 } else { 2.5 }", False),
        ("x[i]", True),
        ("0.0 * x[i]", True),
        ("f32(k[i]) * 1e30", True),
        ("f32(k[i]) / f32(n)", True),
        ("sqrt(f32(k[i]))", True),
    ):
        with built(text.format(value)) as (kernel,):
            assert isinstance(kernel.folder, Path)
            for file in kernel.folder.glob("*.wgsl"):
                assert ("to_i32" in file.read_text("utf-8")) == helped, value
