"""Lengths that pass through floats, functions and bits: the module computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kerngen.runtime import Context
from tests.compile import loaded

TEXT = """
fn below(a: u32) -> u32 {{ a - 1 }}
fn far(a: f32) -> f32 {{ length(vec2f(a, 4.0)) }}
kernel k(x: f32[nan], a: i32, b: u32, f: f32, m: mat2x3f, v: vec3i) -> y: f32[] {{
    host o = {value};
    y = x[0] + sum[j < o] 1.0;
}}
schedule k when nan > 3 {{ generic }}
"""
ARGUMENTS: dict[str, Any] = {
    "a": 13,
    "b": 0,
    "f": 0.0,
    "m": ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
    "v": (7, 8, 9),
}
VALUES = {
    "i32(below(b) / 1000000000)": 4,
    "reverseBits(a) / 100000000 + 30": 30 + int("1011".ljust(32, "0"), 2) // 10**8 - 42,
    "i32(clamp(log2(f), -2.0, 5.0) * 10.0) + 20": 0,
    "i32(clamp(inverseSqrt(f), -2.0, 5.0) * 10.0) + 20": 70,
    "if is_nan(f / f) { 3 } else { 5 }": 3,
    "i32(m[1].y)": 5,
    "i32(m[1][0])": 4,
    "i32(far(3.0)) + v.y": 13,
    "v.x * 2 - a": 1,
    "mod(v.x - a, 4)": 2,
    "if f > 0.5 { 1 } else { 2 }": 2,
}


@pytest.mark.parametrize("value", VALUES)
def test_what_no_plan_holds_is_computed(ctx: Context, value: str) -> None:
    module = loaded(TEXT.format(value=value))
    x = np.zeros(4, np.float32)
    (y,) = module._K.launch(ctx, (ctx.tensor(x),), tuple(ARGUMENTS.values()), (None,))
    assert float(y.numpy()) == VALUES[value]
    with np.errstate(all="ignore"):
        assert float(module.k_reference(x, **ARGUMENTS)) == VALUES[value]


def test_numbers_too_large_for_plans_are_computed(ctx: Context) -> None:
    module = loaded(
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }\n"
        "schedule k when n < 4294967295 * 4294967295 { generic }"
    )
    assert [c.strategy for c in ctx.choices(module.k, n=3)] == ["generic"]
