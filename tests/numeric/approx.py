"""Exact values that carry a bound on the error of their computed counterparts.

Running error analysis: an oracle, plain NumPy code in float64, is run on `Approx` in
place of arrays; each operation adds the error that it may make itself, by the rules of
the `Arithmetic`, to what its operands bring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast, final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from kerngen.ir.builtins.row import Accuracy, Builtin, Variation

Array: TypeAlias = NDArray[np.float64]
Rule: TypeAlias = Callable[..., "Approx"]

ROUNDED = Accuracy(ulps=1.0, source="WGSL 15.7.4.1: correctly rounded")
DIVISION = Accuracy(ulps=2.5, source="WGSL 15.7.4.1: x / y")


@final
@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic that computed a result.

    `functions` are the rows of the functions, `depth` the number of additions on the
    longest path of a sum of so many terms.  `dropped`, where set, is a term that each
    sum leaves out: a planted fault.  `errs`, where set, plays the errors out: each
    result is off by as much as it may, up or down by chance, and carries no bound.
    """

    dtype: type[np.floating[Any]]
    functions: Mapping[np.ufunc, Builtin]
    depth: Callable[[int], int]
    dropped: int | None = None
    errs: np.random.Generator | None = None

    @property
    def unit(self) -> float:
        """One ulp of 1: WGSL lets a result be rounded up or down, not only to nearest."""
        return float(np.finfo(self.dtype).eps)

    @property
    def tiny(self) -> float:
        """The least normal number; what is smaller may be flushed to zero."""
        return float(np.finfo(self.dtype).tiny)

    def gamma(self, count: int) -> float:
        """The relative error of a sum of `count` terms (Higham's gamma of its depth)."""
        spread = self.depth(count) * self.unit
        assert spread < 1, "The sum is too long for any bound."
        return spread / (1 - spread)

    def leaf(self, values: object) -> Approx:
        """An argument or a constant: rounded to the element type, once."""
        if isinstance(values, Approx):
            return values
        exact = np.asarray(values, dtype=np.float64)
        finite = np.where(np.isinf(exact), 0.0, exact)
        rounded = finite.astype(self.dtype).astype(np.float64)
        return self.flushed(exact, np.abs(finite - rounded))

    def flushed(self, value: Array, error: Array) -> Approx:
        """Add what a flush to zero costs where the computed value may be subnormal."""
        subnormal = (np.abs(value) - error < self.tiny) & ((value != 0) | (error > 0))
        return self._met(value, error + self.tiny * subnormal)

    def _met(self, value: Array, error: Array) -> Approx:
        """The exact value with its bound, or one that is that far off with none."""
        if self.errs is None:
            return Approx(self, value, error)
        # Not quite as far: doubles are rounded, too.
        signs = self.errs.choice((-0.9999, 0.9999), np.shape(value))
        return Approx(self, value + signs * error, np.zeros(np.shape(value)))

    def rounded(self, value: Array, error: Array, accuracy: Accuracy) -> Approx:
        """Add the error of one operation to the `error` that its operands bring."""
        ulp = self.unit * (np.abs(value) + error)
        return self.flushed(value, error + accuracy.absolute + accuracy.ulps * ulp)


@final
class Approx(NDArrayOperatorsMixin):
    """An array of exact values, each with a bound on its computed value's error.

    It offers what the oracles use of NumPy: operators, ufuncs, `np.where`, functions that
    rearrange, subscripts, `sum`, `max` and `min`.
    """

    def __init__(self, arithmetic: Arithmetic, value: Array, error: Array) -> None:
        self.arithmetic = arithmetic
        self.value = np.asarray(value)
        self.error = np.asarray(error)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: object
    ) -> Approx | NDArray[np.bool_]:
        """Run an operator by its rule, a function by its row."""
        assert method == "__call__", method
        assert not kwargs, kwargs
        operands = [self.arithmetic.leaf(value) for value in inputs]
        if ufunc in _COMPARISONS:
            assert not any(
                operand.error.any() for operand in operands
            ), "A lucky branch."
            return np.asarray(ufunc(*(operand.value for operand in operands)))
        if ufunc in _RULES:
            return _RULES[ufunc](self.arithmetic, *operands)
        return _function(self.arithmetic, ufunc, *operands)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: object,
        args: tuple[Any, ...],
        kwargs: Mapping[str, object],
    ) -> Approx:
        """`np.where` with an exact condition, and functions that move elements only."""
        if function in _REARRANGE:
            values, errors = (
                function(*_parts(args, part), **kwargs) for part in ("value", "error")
            )
            return Approx(self.arithmetic, np.asarray(values), np.asarray(errors))
        assert function is np.where, function
        assert not kwargs, kwargs
        a, b = self.arithmetic.leaf(args[1]), self.arithmetic.leaf(args[2])
        return Approx(
            self.arithmetic,
            np.where(args[0], a.value, b.value),
            np.where(args[0], a.error, b.error),
        )

    def __getitem__(self, key: Any) -> Approx:
        """A part of it."""
        return Approx(self.arithmetic, self.value[key], self.error[key])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, as an array has it."""
        return self.value.shape

    @property
    def T(self) -> Approx:  # noqa: N802
        """The transpose, by NumPy's name for it."""
        return Approx(self.arithmetic, self.value.T, self.error.T)

    def astype(self, dtype: type[np.float64]) -> Approx:
        """Itself: the values are float64."""
        assert dtype is np.float64
        return self

    def sum(self, axis: int | tuple[int, ...] = -1) -> Approx:
        """The sum along some axes: `gamma` of the sum of magnitudes."""
        arithmetic = self.arithmetic
        axes = axis if isinstance(axis, tuple) else (axis,)
        count = prod(self.value.shape[number] for number in axes)
        size = (np.abs(self.value) + self.error).sum(axis)
        error = self.error.sum(axis) + arithmetic.gamma(count) * size
        value = self.value.sum(axis)
        if arithmetic.dropped is not None:
            (only,) = axes
            value = value - self.value.take(arithmetic.dropped, only)
        return arithmetic.flushed(value, error + count * arithmetic.tiny)

    def cumsum(self, axis: int = -1) -> Approx:
        """The sums of all prefixes along an axis, each as deep as that of all terms."""
        arithmetic, count = self.arithmetic, self.value.shape[axis]
        size = (np.abs(self.value) + self.error).cumsum(axis)
        error = self.error.cumsum(axis) + arithmetic.gamma(count) * size
        value = self.value.cumsum(axis)
        if arithmetic.dropped is not None:
            rest = np.moveaxis(value, axis, -1)
            missing = self.value.take([arithmetic.dropped], axis)
            rest[..., arithmetic.dropped :] -= np.moveaxis(missing, axis, -1)
        return arithmetic.flushed(value, error + count * arithmetic.tiny)

    def max(self, axis: int | tuple[int, ...] = -1, *, initial: float) -> Approx:
        """The largest along some axes."""
        ends = (self.value + k * self.error for k in (-1, 0, 1))
        return _between(
            self.arithmetic, *(end.max(axis, initial=initial) for end in ends)
        )

    def min(self, axis: int | tuple[int, ...] = -1, *, initial: float) -> Approx:
        """The smallest along some axes."""
        ends = (self.value + k * self.error for k in (-1, 0, 1))
        return _between(
            self.arithmetic, *(end.min(axis, initial=initial) for end in ends)
        )


def _add(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    return arithmetic.rounded(a.value + b.value, a.error + b.error, ROUNDED)


def _subtract(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    return arithmetic.rounded(a.value - b.value, a.error + b.error, ROUNDED)


def _multiply(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    spread = np.abs(a.value) * b.error + a.error * (np.abs(b.value) + b.error)
    return arithmetic.rounded(a.value * b.value, spread, ROUNDED)


def _divide(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    value = a.value / b.value
    least = np.abs(b.value) - b.error
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (a.error + np.abs(value) * b.error) / least
    return arithmetic.rounded(value, np.where(least > 0, spread, np.inf), DIVISION)


def _matmul(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    """Products, each rounded, then their sum; `a` or `b` may be a vector."""
    count = a.value.shape[-1]
    size_a, size_b = np.abs(a.value) + a.error, np.abs(b.value) + b.error
    spread = size_a @ b.error + a.error @ size_b
    relative = arithmetic.gamma(count) + arithmetic.unit
    value = a.value @ b.value
    if arithmetic.dropped is not None:
        one = slice(arithmetic.dropped, arithmetic.dropped + 1)
        rows = (one,) if b.value.ndim == 1 else (..., one, slice(None))
        value = value - a.value[..., one] @ b.value[rows]
    error = spread + relative * (size_a @ size_b) + 2 * count * arithmetic.tiny
    return arithmetic.flushed(value, error)


def _maximum(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    ends = (
        np.maximum(a.value + k * a.error, b.value + k * b.error) for k in (-1, 0, 1)
    )
    return _between(arithmetic, *ends)


def _minimum(arithmetic: Arithmetic, a: Approx, b: Approx) -> Approx:
    ends = (
        np.minimum(a.value + k * a.error, b.value + k * b.error) for k in (-1, 0, 1)
    )
    return _between(arithmetic, *ends)


def _between(arithmetic: Arithmetic, low: Array, value: Array, high: Array) -> Approx:
    return Approx(arithmetic, value, np.maximum(high - value, value - low))


def _negative(arithmetic: Arithmetic, a: Approx) -> Approx:
    return Approx(arithmetic, -a.value, a.error)


def _absolute(arithmetic: Arithmetic, a: Approx) -> Approx:
    return Approx(arithmetic, np.abs(a.value), a.error)


def _sign(arithmetic: Arithmetic, a: Approx) -> Approx:
    """Exact, unless the operand may have the other sign."""
    other = (np.abs(a.value) <= a.error) & (a.error > 0)
    return Approx(arithmetic, np.sign(a.value), np.where(other, 2.0, 0.0))


def _function(arithmetic: Arithmetic, function: np.ufunc, a: Approx) -> Approx:
    """How far errors of the operand spread, by its row, and the function's own error."""
    row = arithmetic.functions[function]
    assert row.variation in (Variation.MONOTONE, Variation.LIPSCHITZ), row.name
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        low, value, high = (
            np.asarray(function(a.value + error), dtype=np.float64)
            for error in (-a.error, 0 * a.error, a.error)
        )
        spread = np.maximum(np.abs(high - value), np.abs(value - low))
    if row.variation is Variation.LIPSCHITZ:
        spread = a.error
    own = row.accuracy
    ulps = own.ulps + own.ulps_per_argument * (np.abs(a.value) + a.error)
    spread = np.where(np.isnan(spread), np.inf, spread)
    ulp = arithmetic.unit * (np.abs(value) + spread)
    return arithmetic.flushed(value, spread + own.absolute + ulps * ulp)


def _parts(args: tuple[Any, ...], part: str) -> tuple[Any, ...]:
    """The arguments, with the values or the errors of each `Approx`."""
    return tuple(_part(argument, part) for argument in args)


def _part(argument: object, part: str) -> Any:
    """The values or the errors of an argument; those in lists too."""
    if isinstance(argument, Approx):
        return argument.value if part == "value" else argument.error
    if isinstance(argument, list):
        return [_part(each, part) for each in cast("list[object]", argument)]
    return argument


def exactly(x: Approx | Array) -> Array:
    """The values of what is known exactly: what decides, or is counted."""
    if not isinstance(x, Approx):
        return x
    assert not x.error.any(), "A lucky decision."
    return x.value


def known(values: Array, like: Approx | Array) -> Any:
    """Values without an error, of the kind of another operand."""
    if not isinstance(like, Approx):
        return values
    return Approx(like.arithmetic, values, np.zeros_like(values))


_COMPARISONS = frozenset({np.greater, np.greater_equal, np.less})

_REARRANGE: frozenset[Callable[..., Any]] = frozenset(
    {
        np.concatenate,
        np.flip,
        np.moveaxis,
        np.pad,
        np.repeat,
        np.reshape,
        np.roll,
        np.stack,
        np.swapaxes,
        np.tile,
        sliding_window_view,
    }
)

_RULES: Mapping[np.ufunc, Rule] = {
    np.add: _add,
    np.subtract: _subtract,
    np.multiply: _multiply,
    np.divide: _divide,
    np.matmul: _matmul,
    np.maximum: _maximum,
    np.minimum: _minimum,
    np.negative: _negative,
    np.absolute: _absolute,
    np.sign: _sign,
}
