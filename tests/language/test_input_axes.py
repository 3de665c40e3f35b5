"""Axes of inputs that are computed from others: `scale: f32[f, (d + 31) / 32]`."""

from __future__ import annotations

import numpy as np
import pytest

from kerngen import runtime as gpu
from tests.compile import built_module

_BLOCKS = """
kernel scaled(
    x: f32[d],
    scale: f32[(d + width - 1) / width],
    width: u32,
) -> y: f32[d] {
    require width > 0;
    y[p] = scale[p / i32(width)] * x[p];
}

kernel scaled_gradient = gradient of scaled by x, scale;
"""


@pytest.mark.parametrize(("d", "width"), [(7, 3), (9, 3), (0, 4)])
def test_a_block_of_elements_has_a_scale(d: int, width: int) -> None:
    rng = np.random.default_rng(d)
    x, scale = rng.normal(size=(2, d)).astype("f4")
    scale = scale[: -(-d // width)]
    expected = np.repeat(scale, width)[:d] * x
    with built_module(_BLOCKS) as module, gpu.open() as ctx:
        y = module.scaled(
            ctx.vector(x, gpu.f32), ctx.vector(scale, gpu.f32), width=width
        )
        np.testing.assert_array_equal(y.numpy(), expected)
        reference = module.scaled_reference(x, scale, width=width)
        np.testing.assert_array_equal(reference, expected)


def test_its_gradient_by_the_scales_sums_a_block() -> None:
    x, scale, dy = np.random.default_rng(1).normal(size=(3, 7)).astype("f4")
    scale = scale[:3]
    with built_module(_BLOCKS) as module:
        dx, dscale = module.scaled_gradient_reference(x, scale, dy, width=3)
    np.testing.assert_allclose(dx, dy * np.repeat(scale, 3)[:7], rtol=1e-6)
    sums = np.add.reduceat((dy * x).astype("f8"), [0, 3, 6])
    np.testing.assert_allclose(dscale, sums, rtol=1e-5)


def test_a_shape_of_another_length_is_refused() -> None:
    x, scale = np.ones(7, "f4"), np.ones(4, "f4")
    with built_module(_BLOCKS) as module, pytest.raises(gpu.ShapeError) as raised:
        module.scaled_reference(x, scale, width=3)
    assert str(raised.value).endswith(
        "argument 'scale' has shape (4,); expected ((d + width - 1) / width = 3,): "
        "d is 7."
    )
