"""Quantizing the weights of the decoder example: blocks of 32, and products with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from examples.qwen3.quantized import dequantize, quantize, upload
from kerngen.runtime import Context, f16, f32, i4, u4
from kerngen_kernels import quantized

BITS: Any = (4, 8)


@pytest.mark.parametrize("bits", BITS)
def test_a_weight_is_as_near_as_its_block_allows(bits: Any) -> None:
    """Half a step of the scale, but a whole one at the end where an integer is missing."""
    weights = np.random.default_rng(0).normal(size=(9, 70)).astype(np.float32)
    codes, scales = quantize(weights, bits)
    assert codes.shape == weights.shape
    assert scales.shape == (9, 3)
    lowest = -(2 ** (bits - 1))
    assert codes.min() == lowest
    assert codes.max() <= -1 - lowest
    steps = np.repeat(np.abs(scales.astype(float)), 32, axis=1)[:, :70]
    apart = np.abs(dequantize(codes, scales) - weights)
    ends = codes == -1 - lowest
    assert (apart[~ends] <= 0.5001 * steps[~ends]).all()
    assert (apart <= 1.01 * steps).all()


def test_a_block_of_zeros_stays_zero() -> None:
    weights = np.zeros((2, 40), np.float32)
    weights[1, 39] = -3
    for bits in BITS:
        np.testing.assert_array_equal(dequantize(*quantize(weights, bits)), weights)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("rows", [1, 3])
def test_products_are_those_of_what_integers_stand_for(
    ctx: Context, bits: Any, rows: int
) -> None:
    rng = np.random.default_rng(rows)
    linear = quantized.linear_i4 if bits == 4 else quantized.linear_i8
    for columns, outputs in ((1088, 6), (67, 5), (2120, 9)):
        weights = rng.normal(size=(outputs, columns)).astype(np.float32)
        x = rng.normal(size=(rows, columns)).astype(np.float32)
        kept = upload(ctx, weights, bits)
        near = dequantize(*quantize(weights, bits))
        got = linear(ctx.matrix(x, f32), kept.codes, kept.scales).numpy()
        want = x.astype(np.float64) @ near.T
        bound = np.abs(x).astype(np.float64) @ np.abs(near).T
        assert (np.abs(got - want) <= 1e-6 * bound).all()


def test_a_zero_point_is_taken_off(ctx: Context) -> None:
    rng = np.random.default_rng(2)
    w = rng.integers(0, 16, (6, 100)).astype(np.uint8)
    zero = rng.integers(0, 16, (6, 4)).astype(np.uint8)
    scale = rng.uniform(0.5, 2, (6, 4)).astype(np.float16)
    x = rng.normal(size=(1, 100)).astype(np.float32)
    given = ctx.matrix(w, u4), ctx.matrix(zero, u4), ctx.matrix(scale, f16)
    got = quantized.linear_u4(ctx.matrix(x, f32), *given).numpy()
    blocks = np.repeat(np.stack([zero, scale]).astype(float), 32, axis=2)[:, :, :100]
    want = x @ ((w - blocks[0]) * blocks[1]).T
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_four_bits_take_an_eighth(ctx: Context) -> None:
    kept = upload(ctx, np.ones((64, 256), np.float32), 4)
    assert kept.codes.element is i4
    assert kept.nbytes == 64 * 256 * (4 + 16 / 32) / 8
