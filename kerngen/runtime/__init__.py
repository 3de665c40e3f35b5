"""Run generated kernels: contexts, typed tensors, and the errors of a call.

    import kerngen.runtime as gpu
    from kerngen.runtime import f32

    ctx = gpu.open()
    x = ctx.matrix(array, f32)

Importing this module loads NumPy alone; wgpu follows at `open()`.
"""

from __future__ import annotations

from kerngen.runtime.abi import ABI, check_abi
from kerngen.runtime.context import Context
from kerngen.runtime.counters import Counters
from kerngen.runtime.device import (
    WEBGPU_LIMITS,
    open,  # noqa: A004 - `kerngen.runtime.open` reads as what it does
)
from kerngen.runtime.elements import Element, f16, f32, i32, u32
from kerngen.runtime.errors import (
    AbiError,
    AliasError,
    ContextError,
    DeviceLost,
    DtypeError,
    Error,
    FeatureError,
    LimitError,
    NoAdapter,
    OutOfMemoryError,
    ReferenceFallbackWarning,
    ShapeError,
    UniformRangeError,
    ValidationError,
)
from kerngen.runtime.tensor import Matrix, Scalar, Tensor, Tensor3, Tensor4, Vector

__all__ = [
    "ABI",
    "WEBGPU_LIMITS",
    "AbiError",
    "AliasError",
    "Context",
    "ContextError",
    "Counters",
    "DeviceLost",
    "DtypeError",
    "Element",
    "Error",
    "FeatureError",
    "LimitError",
    "Matrix",
    "NoAdapter",
    "OutOfMemoryError",
    "ReferenceFallbackWarning",
    "Scalar",
    "ShapeError",
    "Tensor",
    "Tensor3",
    "Tensor4",
    "UniformRangeError",
    "ValidationError",
    "Vector",
    "check_abi",
    "f16",
    "f32",
    "i32",
    "open",
    "u32",
]
