"""Values and bounds of the oracle's numbers, each worked out by hand from WGSL's rules.

A bound that is too narrow finds faults where there are none; one that is too wide hides
them.  So each is held to what it should be, from both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kerngen.ir.types import Scalar
from kerngen.verify.meaning import number
from kerngen.verify.meaning.number import BoundedArray
from tests.verify.bounds import INF, TOP, U

T = 2.0**-126
THIRD = 1 / 3


def n(value: Any, error: Any = 0.0, size: Any = None) -> BoundedArray:
    """Numbers that are off by `error`."""
    values = np.asarray(value, np.float64)
    errors = np.broadcast_to(np.asarray(error, np.float64), values.shape)
    return BoundedArray(
        values, errors, np.asarray(np.abs(values) if size is None else size)
    )


def holds(found: BoundedArray, value: Any, error: Any, size: Any = None) -> None:
    np.testing.assert_allclose(found.error, error, rtol=1e-12)
    known = np.isfinite(found.error)
    np.testing.assert_allclose(found.value[known], np.asarray(value)[known], rtol=1e-15)
    if size is not None:
        np.testing.assert_allclose(found.size, size, rtol=1e-12)


def test_arguments_are_rounded_and_may_be_flushed() -> None:
    small = float(np.float32(1e-40))
    found = number.real([1.0, 0.1, 1e-40, T, -2.0, np.inf, np.nan])
    assert found.value[:5].tolist() == [1, float(np.float32(0.1)), small, T, -2]
    assert np.isinf(found.value[5])
    assert np.isnan(found.value[6])
    holds(found, found.value, [0, 0, small, 0, 0, INF, INF])
    np.testing.assert_array_equal(found.size[2:], [small, T, 2, INF, INF])


def test_nothing_is_known() -> None:
    found = number.unknown((2, 3), Scalar.I32)
    assert found.shape == found.error.shape == found.size.shape == (2, 3)
    assert found.dtype == np.int64
    assert np.isinf(found.error).all()
    assert np.isinf(found.size).all()
    assert found.unsure.all()
    assert not number.known([1, 2]).unsure.any()
    doubt = number.unsure_where([1, 2], [True, False])
    assert doubt.unsure.tolist() == [True, False]
    assert doubt.error.tolist() == [INF, 0]


OFF = {
    "a representable result is exact": (1.5, 0.0, 1.0, 0.0),
    "another is rounded": (THIRD, 0.0, 1.0, THIRD * U),
    "by some ulps": (THIRD, 0.0, 3.0, THIRD * 3 * U),
    "an error stays and counts": (1.5, 0.25, 2.0, 0.25 + 1.75 * 2 * U),
    "0 is exact": (0.0, 0.0, 1.0, 0.0),
    "the least normal number is exact": (T, 0.0, 1.0, 0.0),
    "a subnormal one may be flushed": (T / 2, 0.0, 1.0, T / 2 * U + T),
    "one near them may be, too": (T * 1.9, T / 64, 1.0, T / 64 + T * 1.915625 * U + T),
    "twice as much may not": (T * 2, T, 1.0, T + 3 * T * U),
    "the highest is exact": (TOP, 0.0, 1.0, 0.0),
    "what is beyond it is unknown": (TOP * 1.001, 0.0, 1.0, INF),
    "what may be beyond it is unknown": (TOP, TOP / 1000, 1.0, INF),
    "what is not finite is unknown": (np.nan, 0.0, 1.0, INF),
    "so is what may be off by anything": (1.0, INF, 1.0, INF),
}


@pytest.mark.parametrize("case", OFF)
def test_one_operation_is_rounded(case: str) -> None:
    value, error, ulps, bound = OFF[case]
    found = number.settle(np.array(value), np.array(error), ulps)
    holds(found, value, bound)
    if np.isinf(bound):
        assert found.value == 0
        assert found.size == INF


def test_ulps_are_counted_of_the_size_where_that_is_more() -> None:
    holds(number.inexact(np.array(1.0), np.array(0.0), 1.0, 8.0), 1, 8 * U, 8)
    holds(
        number.inexact(np.array(1.0), np.array(0.5), 1.0, 1.25), 1, 0.5 + 1.5 * U, 1.5
    )
    holds(number.inexact(np.array(2 * T), np.array(0.0), 0.0), 2 * T, 0.0)


def test_f16_has_fewer_digits() -> None:
    h, t = 2.0**-10, 2.0**-14
    given = n([0.5, THIRD, 65504, 65505, 1, 65504, 65503], [0, 0, 0, 0, 0.25, 1, 1])
    most = 1 + 65504 * h + t
    bounds = [0, THIRD * h + t, 0, INF, 0.25 + 1.25 * h + t, INF, most]
    found = number.to_half(given)
    holds(found, given.value, bounds)
    assert (found.size == given.size).all()


TWO: dict[
    str, tuple[Callable[..., BoundedArray], BoundedArray, BoundedArray, float, float]
] = {
    "whole": (number.add, n(3), n(4), 7, 0),
    "the last whole": (number.add, n(2.0**24 - 1), n(1), 2.0**24, 0),
    "too large": (number.add, n(2.0**24), n(1), 2.0**24 + 1, (2.0**24 + 1) * U),
    "fractions": (number.add, n(4095.75), n(0.25), 4096, 0),
    "too fine": (number.add, n(4096.0), n(0.25), 4096.25, 4096.25 * U),
    "of other parts": (
        number.add,
        n(2.0**-13),
        n(2.0**-12),
        3 * 2.0**-13,
        3 * 2**-13 * U,
    ),
    "and one is whole": (number.add, n(2.0**-13), n(1), 1 + 2.0**-13, (1 + 2**-13) * U),
    "nothing to the right": (number.add, n(THIRD), n(0), THIRD, 0),
    "nothing to the left": (number.add, n(0), n(THIRD), THIRD, 0),
    "rounded ones": (number.add, n(1, 0.5), n(2, 0.25), 3, 0.75 + 3.75 * U),
    "of larger terms": (number.add, n(1, 0, 5), n(2, 0, 2.0**24), 3, (2**24 + 5) * U),
    "overflow": (number.add, n(TOP), n(TOP), 0, INF),
    "cancelled": (number.subtract, n(0.3), n(0.2), 0.3 - 0.2, 0.5 * U),
    "subnormal difference": (number.subtract, n(7e-38), n(6e-38), 1e-38, 1e-38),
    "whole difference": (number.subtract, n(3), n(5), -2, 0),
    "product": (number.multiply, n(3), n(-2), -6, 0),
    "rounded product": (number.multiply, n(0.1), n(3), 0.1 * 3, 0.1 * 3 * U),
    "product of rough": (
        *(number.multiply, n(-3, 0.5), n(-2, 0.25), 6),
        0.75 + 1 + 0.125 + 7.875 * U,
    ),
    "quotient": (number.divide, n(1), n(3), THIRD, 2.5 * U * THIRD),
    "even quotient": (number.divide, n(-6), n(2), -3, 2.5 * U * 3),
    "quotient of rough": (
        *(number.divide, n(-6, 0.5), n(3, 0.25), -2),
        1 / 2.75 + 2.5 * U * (2 + 1 / 2.75),
    ),
    "by what may be 0": (number.divide, n(1), n(0.5, 0.5), 0, INF),
    "by the least": (number.divide, n(T), n(-T), -1, 2.5 * U),
    "by less": (number.divide, n(T), n(T / 2), 0, INF),
    "by what may be less": (number.divide, n(T), n(2 * T, 1.5 * T), 0, INF),
    "by the most": (number.divide, n(2.0**126), n(2.0**126), 1, 2.5 * U),
    "by more": (number.divide, n(2.0**126), n(2.0**126 * 1.5), 0, INF),
    "by what may be more": (number.divide, n(1), n(2.0**126, 2.0**100), 0, INF),
    "rest": (number.remainder, n(7), n(3), 1, 0),
    "rest below 0": (number.remainder, n(-7), n(3), -1, 0),
    "rest by less than 0": (number.remainder, n(7), n(-3), 1, 0),
    "rest of 0": (number.remainder, n(0), n(3), 0, 0),
    "no rest": (number.remainder, n(6), n(3), 0, INF),
    "rest of 0 by one": (number.remainder, n(0), n(1), 0, 0),
    "rest of a thousand": (number.remainder, n(-1000), n(3), -1, 0),
    "rest of more": (number.remainder, n(-1001), n(3), 0, INF),
    "rest by a thousand": (number.remainder, n(7), n(-1000), 7, 0),
    "rest by more": (number.remainder, n(7), n(-1001), 0, INF),
    "rest of a fraction": (number.remainder, n(7.5), n(3), 0, INF),
    "rest by a fraction": (number.remainder, n(7), n(2.5), 0, INF),
    "rest by 0": (number.remainder, n(7), n(0), 0, INF),
    "rest of a rough one": (number.remainder, n(7, 0.1), n(3), 0, INF),
    "rest by a rough one": (number.remainder, n(7), n(3, 0.1), 0, INF),
}
"""An operator, its operands, and the value and the bound of the result."""


@pytest.mark.parametrize("case", TWO)
def test_operators(case: str) -> None:
    operator, left, right, value, error = TWO[case]
    with np.errstate(all="ignore"):
        holds(operator(left, right), value, error)


def test_negation_keeps_bounds() -> None:
    holds(number.negate(n(3, 0.5, 4)), -3, 0.5, 4)


def test_the_size_of_a_sum_is_that_of_its_terms() -> None:
    assert number.add(n(3), n(-3)).size == 6
    assert number.add(n(0.1), n(-0.1)).size == 0.2


def test_a_comparison_is_known_where_rounding_can_not_decide() -> None:
    left = n([1, 1, 1, 1, 1, 3], [0, 0.5, 0.5, 0, INF, 0.5])
    right = n([2, 2, 2, 1, 2, 2], [0, 0.25, 0.5, 0, 0, 0.4999])
    found = number.compare(left, right, np.less)
    assert found.value.tolist() == [True, True, True, False, True, False]
    assert found.unsure.tolist() == [False, False, True, False, True, False]


def test_a_choice_is_one_or_both() -> None:
    sure = number.known(np.array([True, False, True]))
    open_ = number.unsure_where(sure.value, [True, True, True])
    then, other = n([1, 1, 1], [0.5, 0.5, INF], 7), n([4, 4, 4], 0.25, 9)
    chosen = number.choose(sure, then, other)
    holds(chosen, [1, 4, 1], [0.5, 0.25, INF], [7, 9, 7])
    either = number.choose(open_, then, other)
    holds(either, [1, 4, 1], [3.5, 3.5, INF], [9, 9, 9])


def test_an_open_choice_of_integers_is_known_where_both_are_one() -> None:
    open_ = number.unsure_where([True, True], [True, True])
    either = number.choose(open_, number.known([3, 5]), number.known([3, 4]))
    assert either.unsure.tolist() == [False, True]
    assert either.value.tolist() == [3, 5]
    assert either.error.tolist() == [0, INF]


SPREAD = 3 * U / (1 - 3 * U)

SUMS: dict[str, tuple[BoundedArray, int, Any, Any]] = {
    "whole": (n([1, 2, 3]), 1, 6, 0),
    "fractions": (n([0.25, -0.5, 3]), 1, 2.75, 0),
    "of nothing": (n(np.zeros((0, 2))), 1, [0, 0], [0, 0]),
    "of one": (n([THIRD]), 1, THIRD, 0),
    "of two": (n([0.1, 0.1]), 1, 0.2, 0.2 * 2 * U / (1 - 2 * U)),
    "of one that is off": (n([1], 0.5), 1, 1, 0.5 + 1.5 * U / (1 - U) + T),
    "rounded": (n([0.1, 0.1, -0.1]), 1, 0.1, 0.1 * 3 * SPREAD),
    "rough": (n([1, 2, 3], 0.25), 1, 6, 0.75 + 6.75 * SPREAD),
    "tiny": (n([T / 2, T, T]), 1, 2.5 * T, 2.5 * T * SPREAD + 3 * T),
    "the last whole": (n([2.0**23, 2.0**23 - 1, 1]), 1, 2.0**24, 0),
    "too large": (n([2.0**24, 0, 1]), 1, 2.0**24 + 1, (2.0**24 + 1) * SPREAD),
    "partly whole": (n([1, 2, 0.1]), 1, 3.1, 3.1 * SPREAD),
    "of two axes": (
        n(np.full((3, 1, 2), 0.1)),
        2,
        [0.1 * 3] * 2,
        [0.1 * 3 * SPREAD] * 2,
    ),
    "overflow": (n([TOP, TOP, 0]), 1, 0, INF),
}


@pytest.mark.parametrize("case", SUMS)
def test_sums(case: str) -> None:
    terms, axes, value, error = SUMS[case]
    found = number.total(terms, number.Join(axes))
    known = np.isfinite(found.error)
    np.testing.assert_allclose(found.error, error, rtol=1e-9, atol=T / 100)
    np.testing.assert_allclose(found.value[known], np.asarray(value)[known], rtol=1e-15)


PRODUCTS: dict[str, tuple[BoundedArray, Any, Any, Any]] = {
    "whole": (n([2, -3, 4]), -24, 0, 24),
    "the last whole": (n([2.0**12, 2.0**12, 1]), 2.0**24, 0, 2.0**24),
    "too large": (n([2.0**12, 2.0**13, 1]), 2.0**25, 2.0**25 * SPREAD, 2.0**25),
    "fractions": (n([0.5, -3, 1]), -1.5, 1.5 * SPREAD, 3),
    "of nothing": (n(np.zeros((0, 1))), [1], [0], [1]),
    "rough": (n([2, 3, 1], [0.5, 0.25, 0]), 6, 2.125 + 8.125 * SPREAD, 8.125),
    "with a 0": (n([0.0, 0.5, 1]), 0, 3 * T, 1),
    "that may be too small": (n([2.0**-100, 2.0**-100, 2.0**100]), 0, INF, 2.0**100),
    "with one that may be 0": (n([0.5, 0.5, 2], [0.5, 0, 0]), 0, INF, 2),
    "with a 0 and a subnormal": (n([0.0, 0.75 * T, 1]), 0, INF, 1),
    "as small as may be": (
        *(n([2.0**-63, 2.0**-63, 1]), T),
        *(T * SPREAD + 3 * T, 1),
    ),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case: str) -> None:
    terms, value, error, size = PRODUCTS[case]
    found = number.product(terms, number.Join())
    known = np.isfinite(found.error)
    np.testing.assert_allclose(found.error, error, rtol=1e-6, atol=T / 100)
    np.testing.assert_allclose(found.value[known], np.asarray(value)[known], rtol=1e-15)
    np.testing.assert_allclose(found.size[known], np.asarray(size)[known], rtol=1e-6)


def test_of_very_many_terms_a_bound_is_known() -> None:
    """Of 5 million terms, where n u is above 1/2; of 8 million the formula divides by 0."""
    terms = n(1 + 2.0**-20).map(lambda part: np.broadcast_to(part, 5 << 20))
    found = number.total(terms, number.Join())
    assert found.value * 0.6 <= found.error <= found.value * 1.001
    factors = n(1 + 2.0**-30).map(lambda part: np.broadcast_to(part, 5 << 20))
    found = number.product(factors, number.Join())
    assert 0.6 <= found.error <= 1.01 * found.value


def test_the_highest_number_is_known() -> None:
    """It is no overflow: the greatest of terms is not rounded."""
    holds(number.highest(n([[TOP], [1.0]]), number.Join()), [TOP], [0], [TOP])
    holds(number.lowest(n([[-TOP], [1.0]]), number.Join()), [-TOP], [0], [TOP])


def test_sums_are_as_large_as_their_terms() -> None:
    """So are the sizes of a product whose order matters, and of what is finite."""
    found = number.total(n([0.1, 0.1, -0.1]), number.Join())
    assert found.size == pytest.approx(0.3)
    exact = number.product(n([3, -2, 0]), number.Join())
    assert (float(exact.value), float(exact.size)) == (0, 0)
    assert number.finite(n([1.0], 0.5, [7.0])).size == 7


def test_a_product_of_many_factors_may_be_rounded_up_each_time() -> None:
    """By an ulp of each partial product: 2^21 factors grow by e^(1 / 4), and no more than 1 / 3."""
    count = 2**21
    found = number.product(n(np.full((count, 1), 1 + 2.0**-30)), number.Join())
    grown = found.value * ((1 + U) ** count - 1)
    assert (found.error >= grown).all()
    assert (found.error <= found.value / 3 + 1e-3).all()


def test_extrema() -> None:
    terms = n([[1.0], [2.0], [1.9]], [[0.5], [0.25], [0.5]])
    holds(number.highest(terms, number.Join()), [2], [0.4], [2])
    lower = n([[-1.0], [-2.0], [-1.9]], [[0.5], [0.25], [0.5]])
    holds(number.lowest(lower, number.Join()), [-2], [0.4], [2])
    rising = n([[1.0], [2.0]], [[0.0], [0.75]])
    holds(number.highest(rising, number.Join()), [2], [0.75])
    holds(number.lowest(rising, number.Join()), [1], [0.0])
    unknown = n([[np.inf], [-2.0]], [[INF], [0.0]])
    assert number.highest(unknown, number.Join()).error == INF


def test_extrema_of_nothing_are_infinite() -> None:
    nothing = n(np.zeros((0, 2, 1)))
    assert number.highest(nothing, number.Join(2)).value.tolist() == [-np.inf]
    assert number.lowest(nothing, number.Join(2)).value.tolist() == [np.inf]
    assert number.highest(nothing, number.Join(2)).error.tolist() == [0]
    assert number.lowest(nothing, number.Join(2)).error.tolist() == [0]


def test_infinities_are_known_where_they_are_not_computed_with() -> None:
    lowest, unsure = number.literal(-np.inf), n([-np.inf, -np.inf], [0, INF])
    assert (float(lowest.value), float(lowest.error)) == (-np.inf, 0)
    highest = number.negate(lowest)
    assert (float(highest.value), float(highest.error)) == (np.inf, 0)
    chosen = number.choose(number.known([True, False]), lowest, n([2.0, 3.0]))
    assert chosen.value.tolist() == [-np.inf, 3]
    assert chosen.error.tolist() == [0, 0]
    doubt = number.choose(number.unsure_where([False], [True]), n([5.0]), lowest)
    assert number.highest(doubt, number.Join()).error == INF
    assert number.to_half(lowest).error == 0
    for terms, error in ((n([-np.inf]), 0), (unsure, INF)):
        assert number.highest(terms, number.Join()).error == error
        assert number.highest(terms, number.Join()).value == (
            -np.inf if error == 0 else 0
        )
    mixed = n([[-np.inf], [2.0]])
    holds(number.highest(mixed, number.Join()), [2], [0])
    assert number.lowest(mixed, number.Join()).error == INF
    assert number.highest(n([[np.inf], [2.0]]), number.Join()).error == INF
    assert number.finite(n([1.0, np.inf, -np.inf])).error.tolist() == [0, INF, INF]
    assert number.literal(0.1).error == 0


def test_elements_are_taken_with_their_bounds() -> None:
    given = n([1, 2, 3], [0, 0.5, 0], [4, 5, 6])
    taken = given.at([np.array([1, 2])])
    holds(taken, [2, 3], [0.5, 0], [5, 6])
    joined = number.joined([given, taken], np.concatenate)
    holds(joined, [1, 2, 3, 2, 3], [0, 0.5, 0, 0.5, 0], [4, 5, 6, 5, 6])


@pytest.mark.parametrize(
    "join", [number.total, number.product, number.highest, number.lowest]
)
def test_prefixes_are_joined_one_by_one(
    join: Callable[[BoundedArray, number.Join], BoundedArray],
) -> None:
    """All at once, and each by itself: with errors, infinities, and of nothing."""
    values = [[1.0, 0.5], [2.0**12, -np.inf], [3.0, 0.1], [0.0, -(2.0**-100)]]
    errors = [[0.0, 0.25], [0.0, 0.0], [0.0, 0.5], [0.0, 0.0]]
    terms = n(values, errors)
    with np.errstate(all="ignore"):
        found = join(terms, number.Join(running=True))
        singles = [join(terms[:k], number.Join()) for k in range(len(values) + 1)]
    for count, single in enumerate(singles):
        for part in ("value", "error", "size"):
            whole, own = getattr(found, part)[count], getattr(single, part)
            np.testing.assert_array_equal(whole, own, f"{part} of {count}")


def test_a_first_best_place_is_known_if_no_other_may_be_better() -> None:
    counts = number.known([True, True, True])

    def place(value: Any, error: Any = 0.0, *, least: bool = False) -> int | None:
        found = number.first_best(n(value, error), counts, least=least)
        return None if found.unsure else int(found.value)

    assert place([1, 3, 3]) == 1
    assert place([3, 1, 2], 0.4) == 0
    assert place([1, 3, 3], 0.1) is None
    assert place([3, 2.9, 0], 0.06) is None  # 2.96 may be more than 2.94
    assert place([3, 2.9, 0], 0.04) == 0
    assert place([2.9, 3, 0], [0, 0.1, 0]) is None  # equal at worst, and earlier
    assert place([3, 2.9, 0], [0.1, 0, 0]) == 0  # equal at worst, and later
    assert place([-1, -3, -3], least=True) == 1
    assert place([3, 2.9, 3.1], [0, 0.06, 0], least=True) == 1
    assert place([3, 2.9, 3.1], 0.06, least=True) is None
    assert place([3, np.nan, 0], [0, INF, 0]) is None
    assert place([np.nan, 1, 0], [INF, 0, 0]) is None
    assert number.first_best(n([np.nan], INF), number.known([True]), least=True).unsure
    assert place([3, 1, 0], [0, INF, 0]) is None


def test_terms_that_do_not_count_are_no_best_ones() -> None:
    terms = n([5, 3, 2], [1, 0, 0])
    found = number.first_best(terms, number.known([False, True, True]), least=False)
    assert (int(found.value), bool(found.unsure)) == (1, False)
    terms.value[0] = np.nan
    found = number.first_best(terms, number.known([False, True, True]), least=False)
    assert (int(found.value), bool(found.unsure)) == (1, False)
    nothing = number.first_best(terms, number.known([False] * 3), least=False)
    assert (int(nothing.value), bool(nothing.unsure)) == (-1, False)
    nobody = number.known(np.zeros((0, 2), np.bool_))
    empty = number.first_best(n(np.zeros((0, 2))), nobody, least=True)
    assert empty.value.tolist() == [-1, -1]
    doubt = number.unsure_where([True, True, True], [False, False, True])
    assert number.first_best(terms, doubt, least=False).unsure.all()
