"""How far a kernel's result may be from the exact one: the only place that says so.

Nothing here is a tuned `rtol`.  A bound follows from three things:

- what one operation may be off by: WGSL's accuracy rules, as the rows of
  `kerngen.ir.builtins` give them;
- how errors spread through the oracle's own equation: `approx`;
- how deep a sum is: with `d` additions between a term and the total, the error is at
  most `d * ulp * (sum of |term|)`, to first order.  `d` is not the number of terms but
  the depth of the tree that the strategy at hand builds: `DEPTHS`.

`test_tolerance.py` proves that the bounds are tight enough to see one dropped term, up
to `LONGEST` terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.builtins import BUILTINS, Accuracy

from .approx import Approx, Arithmetic, Array
from .oracles import ERF

Oracle: TypeAlias = Callable[..., Any]
Result: TypeAlias = NDArray[np.floating[Any]]

_FUNCTIONS = {
    np.exp: "exp",
    np.log: "log",
    np.sqrt: "sqrt",
    np.tanh: "tanh",
    ERF: "erf",
}


def serial(count: int) -> int:
    """One running total: the first term passes through every addition."""
    return max(count - 1, 0)


def shader_arithmetic(depth: Callable[[int], int]) -> Arithmetic:
    """WGSL's float32, with sums of the given depth."""
    functions = {key: BUILTINS[name].accuracy for key, name in _FUNCTIONS.items()}
    return Arithmetic(np.float32, functions, depth)


def reference_arithmetic(dtype: type[np.floating[Any]]) -> Arithmetic:
    """NumPy's: its sums are serial at worst, its functions good to a few ulps."""
    functions = {key: Accuracy(ulps=4.0, source="NumPy") for key in _FUNCTIONS}
    return Arithmetic(dtype, functions, serial)


@final
@dataclass(frozen=True)
class Expected:
    """A result as it should be, and how far off each element may be."""

    value: Array
    error: Array

    def check(self, actual: Result, what: str) -> None:
        """Fail, with the worst element, unless every element is within its bound."""
        assert actual.shape == self.value.shape, f"{what}: shape {actual.shape}"
        assert np.isfinite(self.error).all(), f"{what}: a bound is infinite"
        excess = np.abs(actual.astype(np.float64) - self.value) - self.error
        if excess.size and not (excess <= 0).all():
            worst = np.unravel_index(
                np.argmax(np.nan_to_num(excess, nan=np.inf)), excess.shape
            )
            raise AssertionError(
                f"{what}: element {tuple(map(int, worst))} is {actual[worst]!r}, not"
                f" {self.value[worst]!r} within {self.error[worst]:.3g}"
            )


def expect(
    oracle: Oracle,
    arithmetic: Arithmetic,
    arrays: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, float],
) -> tuple[Expected, ...]:
    """What the oracle gives for these arguments, and how far a computed result may be.

    A float64 result is held to an oracle in float64, which may be off by as much itself.
    """
    results = _run(oracle, arithmetic, arrays, scalars)
    slack = 2.0 if arithmetic.dtype is np.float64 else 1.0
    return tuple(Expected(result.value, slack * result.error) for result in results)


def without_term(
    term: int,
    oracle: Oracle,
    arithmetic: Arithmetic,
    arrays: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, float],
) -> tuple[Array, ...]:
    """What the oracle gives when every sum in it forgets one term."""
    faulty = replace(arithmetic, dropped=term)
    return tuple(result.value for result in _run(oracle, faulty, arrays, scalars))


def _run(
    oracle: Oracle,
    arithmetic: Arithmetic,
    arrays: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, float],
) -> tuple[Approx, ...]:
    given = [
        arithmetic.leaf(array) if np.issubdtype(array.dtype, np.floating) else array
        for array in arrays.values()
    ]
    result = oracle(*given, **scalars)
    results = result if isinstance(result, tuple) else (result,)
    assert all(isinstance(one, Approx) for one in results)
    return results
