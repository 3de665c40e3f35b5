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
    with pytest.raises(gpu.ContextError, match="relu: ctx is a int"):
        elementwise.relu(ctx.zeros(3, f32), ctx=NO_CONTEXT)


def test_a_numpy_dtype_is_no_element_type(ctx: gpu.Context) -> None:
    for make in (ctx.zeros, ctx.empty):
        with pytest.raises(gpu.DtypeError, match="got float32"):
            make(3, NO_ELEMENT)
    with pytest.raises(gpu.DtypeError, match=r"element type of kerngen\.runtime"):
        ctx.vector([1.0], NO_ELEMENT)
