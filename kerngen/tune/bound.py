"""Checks of candidates' results: suitable arguments, and bounds of the error.

Arguments are whole numbers, so that sums of products are exact in any order, and one term
too few or too many is found: 1 to 4, and 1 or -1 in f16, which represents whole numbers up
to 2048.  The bound of a result is the sum of

- its rounding if it is stored in f16,
- 8 ulps of f32,
- four times the largest error of `generic` beyond that rounding, for functions and
  divisions, which are not exact.

`generic` is the plainest schedule.  Where it is exact by luck, and another one is not, the
bound that follows from WGSL's accuracy rules decides: `Expected.widened`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.bench.arguments import all_lengths
from kerngen.runtime import Context, Tensor, f16, f32
from kerngen.runtime.calls.kernel import Kernel, TensorSpec
from kerngen.runtime.calls.ranges import shape_of
from kerngen.runtime.values.fields import is_leaf
from kerngen.verify.meaning.number import BoundedArray

Array: TypeAlias = NDArray[Any]

_ULPS: Final = 8
_TIMES_GENERIC: Final = 4
"""The allowed error: ulps of f32, and times the error of `generic`."""
_BLOCK: Final = 65521
"""The random numbers of a tensor, then repeated: a prime, so that no two rows are equal."""


def whole_numbers(kernel: Kernel, sizes: Mapping[str, int]) -> list[Array]:
    """Return arguments of small whole numbers, whose sums are exact."""
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
    drawn = rng.integers(1, 5, _BLOCK)
    if dtype.base == np.float16:
        drawn = np.where(drawn % 2, 1, -1)
    drawn = drawn.astype(dtype.base)
    return np.resize(drawn, (*shape, *dtype.shape))


def run(
    ctx: Context, kernel: Kernel, arrays: list[Array], scalars: tuple[Any, ...]
) -> list[Array]:
    """Run a kernel, and return the tensors that it changes, then its outputs."""
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
    """Run a kernel's NumPy reference in float64; return changed arrays, then outputs."""
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
    """Expected results, and a bound on the error of each element.

    It `is_widened` if the bound is at least what WGSL's accuracy allows.
    """

    values: tuple[Array, ...]
    allowed: tuple[Array, ...]
    is_widened: bool = False

    def fault(self, results: list[Array]) -> str:
        """Return the fault of wrong results in words, or "" if they are right."""
        for value, allowed, result in zip(
            self.values, self.allowed, results, strict=True
        ):
            if value.dtype.names is not None:
                wrong = result != value
            else:
                right = (_off(result, value) <= allowed) | (result == value)
                wrong = ~right & ~(np.isnan(value) & np.isnan(result))
            if wrong.any():
                return f"{int(wrong.sum())} of {wrong.size} elements are wrong"
        return ""

    def widened(self, oracle: Sequence[Sequence[BoundedArray]]) -> Expected:
        """Return the expected results with bounds at least as wide as an oracle's.

        The oracle is `kerngen.verify.meaning.programs`. Where it has no bound, the
        present one stays; structs are compared exactly.
        """
        parts = zip(self.values, self.allowed, oracle, strict=True)
        allowed = tuple(
            own if value.dtype.names is not None else _wider(value, own, *numbers)
            for value, own, numbers in parts
        )
        return Expected(self.values, allowed, is_widened=True)


def _wider(value: Array, own: Array, oracle: BoundedArray) -> Array:
    with np.errstate(all="ignore"):
        bound = oracle.error + np.abs(oracle.value - value)
    return np.asarray(np.maximum(own, np.where(np.isfinite(bound), bound, 0.0)))


def expect(exact: list[Array], generic: list[Array]) -> Expected:
    """Return the expected results: exact ones, each with the error that is allowed.

    The allowed error follows from the greatest error of `generic`, a schedule that is
    known to be right.
    """
    values = tuple(map(_in_range, exact, generic))
    return Expected(values, tuple(map(_allowed, values, generic)))


def _in_range(exact: Array, generic: Array) -> Array:
    """Return exact results, infinite where they overflow the type of the output."""
    if not np.issubdtype(generic.dtype, np.floating):
        return exact
    with np.errstate(over="ignore"):
        stored = exact.astype(generic.dtype)
    return np.where(np.isinf(stored), stored, exact)


def _allowed(exact: Array, generic: Array) -> Array:
    if exact.dtype.names is not None or not np.issubdtype(generic.dtype, np.floating):
        return np.zeros(exact.shape)
    size = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    stored = _stored(size, generic.dtype)
    beyond = _off(generic, exact) - stored
    largest = float(np.max(beyond, initial=0.0, where=np.isfinite(beyond)))
    ulps = _ULPS * float(np.finfo(np.float32).eps) * size
    return np.asarray(stored + ulps + _TIMES_GENERIC * largest)


def _stored(size: Array, dtype: np.dtype[Any]) -> Array:
    """Return the rounding error of numbers stored in a narrower type than f32."""
    if dtype != np.float16:
        return np.zeros(size.shape)
    return np.asarray(np.spacing(size.astype(dtype)).astype(np.float64) / 2)


def _off(result: Array, exact: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(result.astype(np.float64) - exact))
