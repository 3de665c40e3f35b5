"""How far a kernel's result may be from the exact one: the only place that says so.

Nothing here is a tuned `rtol`.  A bound follows from three things:

- what one operation may be off by: WGSL's accuracy rules, as the rows of
  `kerngen.ir.builtins.table` give them;
- how errors spread through the oracle's own equation: `approx`;
- how deep a sum is: with `d` additions between a term and the total, the error is at
  most `d * ulp * (sum of |term|)`, to first order.  `d` is not the number of terms but
  the depth of the tree that the strategy at hand builds: `SUMMATIONS`.

`test_tolerance.py` proves that the bounds are tight enough to see one dropped term, up
to `longest` terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.builtins.row import Accuracy, Builtin
from kerngen.ir.builtins.table import BUILTINS
from kerngen.plan.hostmath import ceil_div
from kerngen.schedule.gemv import columnwise_block
from kerngen.schedule.ragged import shape as ragged_shape
from kerngen.schedule.reduce import columnwise, parts
from kerngen.schedule.rows import strategy as rows
from kerngen.schedule.scan import across as scan_across
from kerngen.schedule.scan import shape as scan_shape
from kerngen.schedule.scatter import columns as scatter_lists

from .approx import ROUNDED, Approx, Arithmetic, Array
from .functions import ERF

Oracle: TypeAlias = Callable[..., Any]
Result: TypeAlias = NDArray[np.floating[Any]]

_CALL = re.compile(r"np\.(\w+)\(\{0\}\)")
"""A function of NumPy's, of one argument."""

_FUNCTIONS: Mapping[np.ufunc, Builtin] = {
    getattr(np, call[1]): row
    for row in BUILTINS.values()
    if (call := _CALL.fullmatch(row.numpy))
} | {ERF: BUILTINS["erf"]}
"""The built-ins that oracles call by NumPy's names."""


def serial(count: int) -> int:
    """One running total: the first term passes through every addition."""
    return max(count - 1, 0)


def columns(count: int) -> int:
    """A running total per lane, a tree of slices, then the same for the parts."""
    wide = columnwise.COLUMNS
    return max(
        _columns(count, n, width)
        for width in (1, 4)
        for n in range(width, wide + 1, width)
    )


def _columns(count: int, n: int, width: int) -> int:
    """The same, of n columns by vectors of `width`."""
    terms = columnwise.PART * columnwise.COLUMNS // n
    pieces = min(max(ceil_div(count, terms), 1), columnwise.MAX_PARTS)
    slices = columnwise.LANES_PER_GROUP // (n // width)
    last = min(ceil_div(pieces, columnwise.PARTS_AT_ONCE), columnwise.FINISH_SLICES)
    return (
        ceil_div(ceil_div(count, pieces), slices)
        + ceil_log2(slices)
        + ceil_div(pieces, last)
        + ceil_log2(last)
    )


def products(count: int) -> int:
    """The same in longer parts, or groups of lanes share a row.

    Schedules of the library have groups of 32 lanes at least, and slices of 4.
    """
    pieces = min(
        max(ceil_div(count, columnwise_block.LONG_PART), 1), columnwise.MAX_PARTS
    )
    each = max(serial(ceil_div(ceil_div(count, pieces), n)) + n for n in (4, 16))
    return max(_lanes(count, 32) + 4, pieces + each + 3)


def lists(count: int) -> int:
    """A running total of a run, of what that carries, and of what this carries."""
    run, carries = scatter_lists.RUN, scatter_lists.CARRIES
    return min(serial(count), run + carries + ceil_div(count, run * carries) + 2)


def by_tiles(count: int) -> int:
    """A running total, scaled to the largest score of its row at each tile of keys."""
    return serial(count) + 4 * ceil_div(count, 32)


def parts_or_columns(count: int) -> int:
    """The same, or many workgroups share it."""
    return max(whole(count), columns(count))


def whole_rows(count: int) -> int:
    """A running total per lane, of what its lanes take at once; then a tree.

    Trees of subgroups are no deeper than those of lanes.
    """
    return max(
        ceil_div(count, shape.step) + ceil_log2(shape.width) + ceil_log2(shape.lanes)
        for lanes in (None, 1024)
        for held in range(5)
        for passes in (1, 2)
        for shape in rows.shapes(rows.RowOptions(lanes, subgroups=False), held, passes)
        if shape.most is None or count <= shape.most
    )


def whole(count: int) -> int:
    """Many workgroups leave one partial result each; one workgroup adds those up."""
    pieces = min(max(ceil_div(count, parts.PART), 1), parts.MAX_PARTS)
    first = _lanes(ceil_div(count, pieces), parts.PART_LANES)
    return first + _lanes(pieces, parts.PART_LANES)


def ragged(count: int) -> int:
    """A running total per lane of what it takes at once, a tree; of parts, another one."""
    return max(
        ceil_div(count, ragged_shape.AT_ONCE * lanes)
        + ceil_log2(ragged_shape.AT_ONCE)
        + 2 * ceil_log2(max(lanes, ragged_shape.GROUP if count > 512 else 1))
        for lanes in (8, 32, ragged_shape.GROUP)
    )


def prefixes(count: int) -> int:
    """Lanes share a row, or each has a row of its own."""
    return max(_shared(count), _alone(count))


def _shared(count: int) -> int:
    """Runs of four, steps that take three lanes each, tiles, and all earlier parts."""
    tiles = ceil_div(count, scan_shape.INVOCATIONS * scan_shape.RUNS)
    lanes = 3 * ceil_div(ceil_log2(1024), 2)
    return scan_shape.RUNS * (tiles + 2) + lanes + whole(count)


def _alone(count: int) -> int:
    """A running total of a part, behind that of earlier parts; the tests have few rows."""
    if count <= scan_across.LONG:
        return serial(count)
    length = max(scan_across.AT_ONCE, ceil_div(count, scan_across.MAX_PARTS // 2))
    return ceil_div(count, length) + 2 * length


def _lanes(count: int, lanes: int) -> int:
    four_wide = ceil_div(count, 4 * lanes) + 3
    return max(ceil_div(count, lanes), four_wide) + ceil_log2(lanes)


def ceil_log2(count: int) -> int:
    """The depth of a tree with so many leaves."""
    return (count - 1).bit_length()


@final
@dataclass(frozen=True)
class Summation:
    """How a strategy sums: how deep, and up to how many terms one term still shows."""

    depth: Callable[[int], int]
    longest: int


def none(_: int) -> int:
    """Nothing is summed."""
    return 0


NO_SUM = Summation(none, longest=0)
SERIAL = Summation(serial, longest=1024)
SUMMATIONS: Mapping[tuple[str, bool], Summation] = {
    ("map", False): NO_SUM,
    ("map", True): NO_SUM,
    ("generic", False): SERIAL,
    ("generic", True): SERIAL,
    **{(name, False): NO_SUM for name in ("recur", "loop", "steps")},
    ("fold", False): SERIAL,
    ("gemm", False): SERIAL,
    ("sort", False): NO_SUM,
    ("flash", False): Summation(by_tiles, longest=1024),
    ("gemv", False): Summation(products, longest=1500),
    ("reduce", False): Summation(parts_or_columns, longest=1500),
    ("rows", False): Summation(whole_rows, longest=1500),
    ("rows", True): Summation(whole_rows, longest=1500),
    ("ragged", False): Summation(ragged, longest=1500),
    ("scan", False): Summation(prefixes, longest=1500),
    ("scan", True): Summation(prefixes, longest=1500),
    ("scatter", False): Summation(lists, longest=1500),
    ("scatter", True): Summation(lists, longest=1500),
    ("reduce", True): Summation(whole, longest=20000),
}
"""By strategy, and whether the sum is the whole result (one of rank 0)."""


def shader_arithmetic(depth: Callable[[int], int]) -> Arithmetic:
    """WGSL's float32, with sums of the given depth."""
    return Arithmetic(np.float32, _FUNCTIONS, depth)


def reference_arithmetic(dtype: type[np.floating[Any]]) -> Arithmetic:
    """NumPy's: its sums are serial at worst, its functions good to a few ulps."""
    accuracy = Accuracy(ulps=4.0, source="NumPy")
    functions = {
        function: replace(row, accuracy=accuracy)
        for function, row in _FUNCTIONS.items()
    }
    return Arithmetic(dtype, functions, serial)


_HALF = Arithmetic(np.float16, {}, none)


@final
@dataclass(frozen=True)
class Expected:
    """A result as it should be, and how far off each element may be.

    One that is kept as f16 has been rounded once more.
    """

    value: Array
    error: Array

    def check(self, actual: Result, what: str) -> None:
        """Fail, with the worst element, unless every element is within its bound.

        What is infinite, as the largest of nothing, is exact.
        """
        assert actual.shape == self.value.shape, f"{what}: shape {actual.shape}"
        infinite = np.isinf(self.value)
        error = np.where(infinite, 0.0, self.error)
        assert np.isfinite(error).all(), f"{what}: a bound is infinite"
        if actual.dtype == np.float16:
            error = _HALF.rounded(self.value, error, ROUNDED).error
        with np.errstate(invalid="ignore"):
            apart = np.abs(actual.astype(np.float64) - self.value)
        apart = np.where(infinite & (actual == self.value), 0.0, apart)
        excess = apart - error
        if excess.size and not (excess <= 0).all():
            worst = np.unravel_index(
                np.argmax(np.nan_to_num(excess, nan=np.inf)), excess.shape
            )
            raise AssertionError(
                f"{what}: element {tuple(map(int, worst))} is {actual[worst]!r}, not"
                f" {self.value[worst]!r} within {error[worst]:.3g}"
            )


def expect(
    oracle: Oracle,
    arithmetic: Arithmetic,
    arrays: Mapping[str, NDArray[Any]],
    scalars: Mapping[str, float],
) -> tuple[Expected, ...]:
    """What the oracle gives for these arguments, and how far a computed result may be.

    Integers are exact.

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
    given: list[Any] = [
        arithmetic.leaf(array) if np.issubdtype(array.dtype, np.floating) else array
        for array in arrays.values()
    ]
    # Rows without elements have no sum to divide by, nor anything to divide.
    with np.errstate(all="ignore"):
        result: Any = oracle(*(given or [arithmetic.leaf]), **scalars)
    results: list[Any] = [*result] if isinstance(result, tuple) else [result]
    return tuple(_carrying(arithmetic, each) for each in results)


def _carrying(arithmetic: Arithmetic, result: Approx | NDArray[Any]) -> Approx:
    """A result with its error: integers have none, converted ones are rounded once.

    WGSL lets a conversion give either neighbour of a number that has no float of its own.
    """
    if isinstance(result, Approx):
        return result
    exact = result.astype(np.float64)
    error = np.zeros(result.shape)
    if np.issubdtype(result.dtype, np.floating):
        converted = arithmetic.rounded(exact, error, ROUNDED).error
        representable = arithmetic.leaf(exact).error == 0
        error = np.where(representable, error, converted)
    return Approx(arithmetic, exact, error)
