"""What beginners pass by mistake gets an error in their own words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise

NO_TENSOR: Any = np.ones(3, np.float32)
NO_CONTEXT: Any = 3
NO_ELEMENT: Any = np.float32


def test_an_array_is_no_tensor() -> None:
    with pytest.raises(gpu.DtypeError, match=r"'x' is a ndarray.*ctx\.vector\(x, f32"):
        elementwise.relu(NO_TENSOR)


def test_a_number_is_no_context(ctx: gpu.Context) -> None:
    with pytest.raises(
        gpu.ContextError, match=r"relu \(dsl/elementwise.kern:\d+\): ctx is a int"
    ):
        elementwise.relu(ctx.zeros(3, f32), ctx=NO_CONTEXT)


def test_a_numpy_dtype_is_no_element_type(ctx: gpu.Context) -> None:
    for make in (ctx.zeros, ctx.empty):
        with pytest.raises(gpu.DtypeError, match="got float32"):
            make(3, NO_ELEMENT)
    with pytest.raises(gpu.DtypeError, match=r"element type of kerngen\.runtime"):
        ctx.vector([1.0], NO_ELEMENT)


def test_contexts_that_look_alike_are_told_apart() -> None:
    """The text that names both would say the same twice."""
    with gpu.open(adapter="reference") as one, gpu.open(adapter="reference") as other:
        x, y = one.zeros(4, f32), other.zeros(4, gpu.f32)
        with pytest.raises(gpu.ContextError) as caught:
            elementwise.add(x, y)
    text = str(caught.value)
    assert text.startswith("add (dsl/elementwise.kern:")
    assert "'b' belongs to another Context(reference: NumPy" in text
    assert text.count("Context(") == 1


def test_a_number_too_large_is_told_by_the_name_of_its_argument(
    ctx: gpu.Context,
) -> None:
    x = ctx.zeros(3, f32)
    with pytest.raises(
        gpu.UniformRangeError,
        match=r"^scale \(dsl/.*:\d+\): scalar argument 'alpha' is 1e\+300; f32 holds",
    ):
        elementwise.scale(x, alpha=1e300)
