"""Products with narrow integers, eight neighbours at a time, give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.values.elements import Element
from tests.compile import built_module

BLOCKS = {"32": 32, "8": 8, "12": 12, "4": 4}
"""What shares a scale, and what may not: eight neighbours, or fewer."""

TYPES: dict[str, tuple[type[Element], int, int]] = {
    "u4": (gpu.u4, 0, 15),
    "i4": (gpu.i4, -8, 7),
    "u8": (gpu.u8, 0, 255),
    "i8": (gpu.i8, -128, 127),
}

KERNEL = """
kernel f(
    x: f32[m, k], w: {type}[n, k], zero: u8[n, (k + {last}) / {by}],
    scale: f32[n, (k + {last}) / {by}], each: f32[k]
) -> y: f32[m, n] {{
    y[i, j] = sum[p] x[i, p]
        * (each[p] * scale[j, p / {by}] * (f32(w[j, p]) - f32(zero[j, p / {by}])) * scale[j, p / {by}]);
}}
schedule f {{ gemv {options} }}
"""


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_and_zero_points(ctx: gpu.Context, type_: str, block: str) -> None:
    """All numbers are small integers: the sums are exact."""
    rng = np.random.default_rng(1)
    element, low, high = TYPES[type_]
    by = BLOCKS[block]
    options = "columns(3) unroll(2) lanes(32, 2)" if by == 32 else "rows(2)"
    text = KERNEL.format(type=type_, by=by, last=by - 1, options=options)
    with built_module(text) as module:
        for m, n, k in ((1, 7, 40), (3, 4, 1032), (2, 2, 36), (1, 1, 8)):
            x, each = (rng.integers(-2, 3, shape) for shape in ((m, k), k))
            w = rng.integers(low, high + 1, (n, k))
            blocks = np.arange(k) // by
            zero = rng.integers(0, 256, (n, blocks[-1] + 1))
            scale = rng.integers(-1, 3, zero.shape)
            right = each * scale[:, blocks] ** 2 * (w - zero[:, blocks])
            held: list[Any] = [ctx.tensor(x.astype(np.float32))]
            held.append(ctx.tensor(w.astype(np.int8 if low else np.uint8), element))
            held.append(ctx.tensor(zero.astype(np.uint8), gpu.u8))
            held += [ctx.tensor(a.astype(np.float32)) for a in (scale, each)]
            np.testing.assert_array_equal(module.f(*held).numpy(), x @ right.T)


def test_a_word_is_read_once_and_nothing_is_converted() -> None:
    text = KERNEL.format(type="u4", by=32, last=31, options="unroll(1)")
    (program,) = compile_text(text, "f.kern").programs
    aligned, edge = program.stages[0].schedules[0].variants
    code = aligned.shaders[0].code
    assert code.count("w[at]") == 2
    assert "vec4f(w_four" not in code
    assert ">> vec4u(" not in code
    # A block of the axis that is as long as there are blocks is inside of it.
    assert "clamp(" not in code
    assert "w_half_0" not in edge.shaders[0].code


@pytest.mark.parametrize(
    ("axes", "is_clamped"),
    [
        ("x: f32[d], scale: f32[(d + 31) / 32]", False),
        ("x: f32[d], scale: f32[(d + 30) / 32]", True),
        ("x: f32[d], scale: f32[(d + 31) / 33]", True),
        ("x: f32[d], scale: f32[e]", True),
        ("x: f32[65], scale: f32[3]", False),
        ("x: f32[65], scale: f32[2]", True),
    ],
)
def test_a_block_is_clamped_unless_its_axis_has_all_blocks(
    axes: str, *, is_clamped: bool
) -> None:
    text = f"kernel f({axes}) -> y: f32[n] {{ y[i] = x[i] * scale[i / 32]; }}"
    text = text.replace("f32[n]", "f32[65]" if "65" in axes else "f32[d]")
    (program,) = compile_text(text, "f.kern").programs
    variants = program.stages[0].schedules[0].variants
    codes = [shader.code for variant in variants for shader in variant.shaders]
    assert all(("clamp(" in code) == is_clamped for code in codes)
