"""Whether a result is right: arguments that tell, and how far off it may be.

Arguments are whole numbers from 1 to 4, so that sums of products are exact in whatever
order a schedule adds: one term too few or too many is seen.  What functions and divisions
round is allowed for by what `generic`, the plainest schedule, is off by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.bench.arguments import all_lengths
from kerngen.runtime import Context, Tensor, f16, f32
from kerngen.runtime.fields import is_leaf
from kerngen.runtime.kernel import Kernel, TensorSpec
from kerngen.runtime.ranges import shape_of

Array: TypeAlias = NDArray[Any]

_ULPS: Final = 8
_TIMES_GENERIC: Final = 4
_BLOCK: Final = 2**16


def whole_numbers(kernel: Kernel, sizes: Mapping[str, int]) -> list[Array]:
    """Return the arguments of a call, in the elements' own types."""
    rng = np.random.default_rng(0)
    lengths = all_lengths(kernel, sizes)
    return [_numbers(rng, spec, lengths) for spec in kernel.inputs]


def _numbers(
    rng: np.random.Generator, spec: TensorSpec, lengths: Mapping[str, int]
) -> Array:
    shape = shape_of(spec.axes, lengths)
    dtype = spec.element.DTYPE
    if dtype.names is not None or not is_leaf(spec.element):
        return np.zeros(shape, dtype)
    drawn = rng.integers(1, 5, _BLOCK).astype(dtype.base)
    return np.resize(drawn, (*shape, *dtype.shape))


def run(
    ctx: Context, kernel: Kernel, arrays: list[Array], scalars: tuple[Any, ...]
) -> list[Array]:
    """Return what a kernel makes of arguments: all that it writes."""
    given: list[Tensor[Any, Any]] = [
        ctx.tensor(array, spec.element)
        for array, spec in zip(arrays, kernel.inputs, strict=True)
    ]
    outputs = kernel.launch(ctx, tuple(given), scalars, kernel.no_out)
    pairs = zip(given, kernel.inputs, strict=True)
    updated = [tensor for tensor, spec in pairs if spec.access == "update"]
    return [tensor.numpy() for tensor in (*updated, *outputs)]


def reference(
    kernel: Kernel, arrays: list[Array], scalars: tuple[Any, ...]
) -> list[Array]:
    """Return the same by the kernel's NumPy reference, in float64."""
    given = [
        array.astype(np.float64) if spec.element in {f16, f32} else array.copy()
        for array, spec in zip(arrays, kernel.inputs, strict=True)
    ]
    names = (spec.name for spec in kernel.scalars)
    result = kernel.reference(*given, **dict(zip(names, scalars, strict=True)))
    pairs = zip(given, kernel.inputs, strict=True)
    updated = [array for array, spec in pairs if spec.access == "update"]
    outputs: list[Any] = []
    if result is not None:
        outputs = [*result] if isinstance(result, tuple) else [result]
    return [np.asarray(each) for each in (*updated, *outputs)]


@final
@dataclass(frozen=True, slots=True)
class Expected:
    """Results as they should be, and how far off each element may be."""

    values: tuple[Array, ...]
    allowed: tuple[Array, ...]

    def fault(self, results: list[Array]) -> str:
        """Say what is wrong with results; empty if nothing is."""
        for value, allowed, result in zip(
            self.values, self.allowed, results, strict=True
        ):
            if value.dtype.names is not None:
                wrong = result != value
            else:
                off = np.abs(result.astype(np.float64) - value)
                wrong = ~(off <= allowed) & ~(np.isnan(value) & np.isnan(result))
            if wrong.any():
                return f"{int(wrong.sum())} of {wrong.size} elements are wrong"
        return ""


def expect(exact: list[Array], generic: list[Array]) -> Expected:
    """Return what to expect, given the exact results, and those of `generic`."""
    allowed = tuple(map(_allowed, exact, generic))
    return Expected(tuple(exact), allowed)


def _allowed(exact: Array, generic: Array) -> Array:
    if exact.dtype.names is not None or not np.issubdtype(generic.dtype, np.floating):
        return np.zeros(exact.shape)
    size = np.abs(exact.astype(np.float64))
    off = np.abs(generic.astype(np.float64) - exact)
    largest = float(np.max(off, initial=0.0, where=np.isfinite(off)))
    return _ULPS * float(np.finfo(generic.dtype).eps) * size + _TIMES_GENERIC * largest
