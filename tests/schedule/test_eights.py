"""Products with narrow integers, in runs of neighbours, give what NumPy gives."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.values.elements import Element
from tests.budget import sampled
from tests.compile import built_module

BLOCKS = {
    "words": (32, "columns(3) lanes(32, 2)"),
    "words of two rows": (64, "rows(2) lanes(16, 4)"),
    "eights": (32, "columns(3) unroll(2) lanes(32, 2)"),
    "8": (8, "rows(2)"),
    "12": (12, "rows(2)"),
}
"""What shares a scale, and how it is read: four words, eight neighbours, or fewer."""

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


@pytest.mark.parametrize(("block", "type_"), sampled(product(BLOCKS, TYPES), 5))
def test_blocks_and_zero_points(ctx: gpu.Context, type_: str, block: str) -> None:
    """All numbers are small integers: the sums are exact."""
    rng = np.random.default_rng(1)
    element, low, high = TYPES[type_]
    by, options = BLOCKS[block]
    text = KERNEL.format(type=type_, by=by, last=by - 1, options=options)
    with built_module(text) as module:
        for m, n, k in ((1, 7, 40), (3, 4, 1056), (2, 2, 36), (1, 1, 32)):
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


@pytest.mark.parametrize("type_", ["u4", "i8"])
def test_a_turn_is_read_before_it_begins(ctx: gpu.Context, type_: str) -> None:
    """Zero points with a sign and without, from no terms to several turns of 256 and a part of one."""
    element, low, high = TYPES[type_]
    text = KERNEL.replace("zero: u8", f"zero: {type_}").format(
        type="i4", by=32, last=31, options="lanes(8, 4)"
    )
    rng = np.random.default_rng(4)
    with built_module(text) as module:
        for n, k in ((3, 0), (9, 32), (5, 256), (2, 800)):
            x, each = rng.integers(-2, 3, (1, k)), rng.integers(-2, 3, k)
            w = rng.integers(-8, 8, (n, k))
            zero = rng.integers(low, high + 1, (n, k // 32))
            scale, blocks = rng.integers(-1, 3, zero.shape), np.arange(k) // 32
            right = each * scale[:, blocks] ** 2 * (w - zero[:, blocks])
            held: list[Any] = [ctx.tensor(x.astype(np.float32))]
            held.append(ctx.tensor(w.astype(np.int8), gpu.i4))
            held.append(ctx.tensor(zero.astype(np.int8 if low else np.uint8), element))
            held += [ctx.tensor(a.astype(np.float32)) for a in (scale, each)]
            np.testing.assert_array_equal(module.f(*held).numpy(), x @ right.T)


@pytest.mark.parametrize("type_", ["i8", "u8"])
def test_bytes_by_bytes_are_exact(ctx: gpu.Context, type_: str) -> None:
    """Four products of a word at once, where rows are multiples of 16."""
    element, low, high = TYPES[type_]
    text = f"""
    kernel f(a: {type_}[m, k], b: {type_}[n, k]) -> y: {type_[0]}32[m, n] {{
        y[i, j] = 3 * sum[p] a[i, p] * b[j, p];
    }}
    schedule f {{ gemv rows(2) columns(3) lanes(16, 2) }}
    """
    (program,) = compile_text(text, "f.kern").programs
    aligned, fours, edge = program.stages[0].schedules[0].variants
    codes = [each.shaders[0].code for each in (aligned, fours, edge)]
    assert ["dot4" in code for code in codes] == [True, False, False]
    rng = np.random.default_rng(3)
    with built_module(text) as module:
        for m, n, k in ((1, 7, 48), (3, 4, 1040), (2, 2, 36), (1, 1, 7)):
            a, b = (rng.choice([low, high, 1, 0], (rows, k)) for rows in (m, n))
            held: list[Any] = [
                ctx.tensor(x.astype(np.int8 if low else np.uint8), element)
                for x in (a, b)
            ]
            np.testing.assert_array_equal(module.f(*held).numpy(), 3 * a @ b.T)


def test_four_words_are_read_at_once_and_nothing_is_converted() -> None:
    text = KERNEL.format(type="u4", by=32, last=31, options="")
    (program,) = compile_text(text, "f.kern").programs
    aligned, eights, edge = program.stages[0].schedules[0].variants
    words, eight = (each.shaders[0].code for each in (aligned, eights))
    assert "w: array<vec4u>" in words
    # Once for each of two columns, each time for 32 neighbours; words before the first
    # turn, and in each for the next one.
    assert [code.count("= w[") for code in (words, eight)] == [4, 2]
    assert words.index("next_words_0_0 = w[") < words.index("workgroupBarrier();")
    for code in (words, eight):
        assert "vec4f(w_four" not in code
        assert ">> vec4u(" not in code
        # A block of the axis that is as long as there are blocks is inside of it.
        assert "clamp(" not in code
    assert "u4_lower" not in edge.shaders[0].code


@pytest.mark.parametrize(
    "options",
    ["unroll(2)", "lanes(128, 1)", "lanes(8, 16)", "rows(4) lanes(64, 1)"],
)
def test_what_workgroup_memory_has_no_room_for_is_read_by_eights(options: str) -> None:
    text = KERNEL.format(type="u4", by=32, last=31, options=options)
    (program,) = compile_text(text, "f.kern").programs
    aligned, _ = program.stages[0].schedules[0].variants
    assert "w: array<u32>" in aligned.shaders[0].code


def test_what_is_read_otherwise_too_is_not_bound_by_words() -> None:
    text = """
    kernel f(x: f32[k], w: i4[n, k]) -> y: f32[n] {
        y[j] = sum[p] x[p] * f32(w[j, p]) + f32(w[j, 1]);
    }
    schedule f { gemv }
    """
    rng = np.random.default_rng(2)
    x, w = rng.integers(-2, 3, 64), rng.integers(-8, 8, (3, 64))
    with gpu.open() as ctx, built_module(text) as module:
        y = module.f(ctx.vector(x, gpu.f32), ctx.matrix(w.astype(np.int8), gpu.i4))
        np.testing.assert_array_equal(y.numpy(), w @ x + w[:, 1])


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


@pytest.mark.parametrize("type_", TYPES)
def test_sums_over_two_indices_are_exact(ctx: gpu.Context, type_: str) -> None:
    """Runs of words are along one index, so that these terms are read in fours."""
    element, low, high = TYPES[type_]
    text = f"""
    kernel f(x: f32[m, p, k], w: {type_}[n, p, k]) -> y: f32[m, n] {{
        y[i, j] = sum[q, r] f32(q) * x[i, q, r] * f32(w[j, q, r]);
    }}
    """
    rng = np.random.default_rng(3)
    for schedule in ("", "schedule f { gemv }", "schedule f { gemv rows(2) }"):
        with built_module(text + schedule) as module:
            for m, p, k, n in ((1, 4, 64, 32), (3, 5, 40, 16), (17, 3, 36, 33)):
                x = rng.integers(-2, 3, (m, p, k))
                w = rng.integers(low, high + 1, (n, p, k))
                held: list[Any] = [ctx.tensor(x.astype(np.float32))]
                held.append(ctx.tensor(w.astype(np.int8 if low else np.uint8), element))
                terms = x * np.arange(p)[:, None]
                wanted = np.einsum("ipk,jpk->ij", terms, w)
                np.testing.assert_array_equal(module.f(*held).numpy(), wanted)
