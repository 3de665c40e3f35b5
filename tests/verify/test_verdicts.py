"""What is made of results: faults and their words, the time that is left, hazards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kerngen.ir.memory import Leaf
from kerngen.ir.types import Scalar
from kerngen.verify import fault as faults
from kerngen.verify import large
from kerngen.verify.effort import SPENT, Effort, StopError
from kerngen.verify.fault import Fault, Tally, WrongError
from kerngen.verify.hazards import Hazard, HazardCollector
from kerngen.verify.meaning import number
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.programs import Subject

F32 = Leaf(Scalar.F32)
INF = np.inf


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def n(value: Any, error: Any = 0.0) -> BoundedArray:
    values = np.asarray(value, np.float64)
    errors = np.array(np.broadcast_to(np.asarray(error, np.float64), values.shape))
    return BoundedArray(values, errors, np.abs(values))


# Faults


def compared(want: BoundedArray, got: Any, tally: Tally | None = None) -> Fault | None:
    array = np.asarray(got, np.float32)
    try:
        faults.compare("y", F32, [want], array, tally or Tally(), 3)
    except WrongError as error:
        return error.fault
    return None


def test_the_worst_element_is_reported() -> None:
    for got, worst in (
        ([1, 4, 1], (1,)),
        ([3, 4, 9], (2,)),
        ([9, np.nan, 9], (1,)),
        ([3, 1, 2.75], (0,)),
    ):
        found = compared(n([1, 1, 1], 0.5), got)
        assert found is not None
        assert found.place == worst
    found = compared(n([1, 1], [5.0, 0.5]), [7, 3])
    assert found is not None
    assert found.place == (1,)


def test_a_result_may_be_off_by_its_bound() -> None:
    assert compared(n([1, 2], 0.5), [1.5, 1.5]) is None
    assert compared(n([1, 2], 0.5), [1.5, 1.4375]) is not None
    assert compared(n([1, 2], [0.5, INF]), [0.5, np.nan]) is None
    assert compared(n([1, 2], 0.5), [1, np.nan]) is not None
    assert compared(n([1, 2]), [1, 2]) is None
    assert compared(n([-INF, 2]), [-INF, 2]) is None
    lowest = compared(n([-INF, 2]), [-3e38, 2])
    assert lowest is not None
    assert lowest.text.endswith("e+38, not -inf")
    assert compared(n([-INF, 2]), [INF, 2]) is not None


def test_the_fault_is_the_element_that_is_farthest_off() -> None:
    found = compared(n([[1, 2], [3, 4]], [[0, 0], [0, 1]]), [[1, 2.5], [3.25, 5.25]])
    assert found == Fault("value", "y[0, 1] is 2.5, not 2", 3, "", (0, 1), 2.5, 2, 0)
    found = compared(n([1, 2], [9, 0.25]), [5, 2.5])
    assert found is not None
    assert found.text == "y[1] is 2.5, not 2 within 0.25"
    assert (found.place, found.got, found.expected, found.bound) == ((1,), 2.5, 2, 0.25)
    found = compared(n([1, 2]), [3, np.nan])
    assert found is not None
    assert found.text == "y[1] is nan, not 2"
    found = compared(n(1), 2)
    assert found is not None
    assert (found.text, found.place) == ("y is 2.0, not 1", ())
    found = compared(n([1, 2]), [1, 2, 3])
    assert found is not None
    assert found.text == "y has shape (3,), not (2,)"


def test_integers_are_shown_whole() -> None:
    with pytest.raises(WrongError, match=r"^y\[1\] is 3, not 2$"):
        faults.compare(
            *("y", Leaf(Scalar.I32), [number.known([1, 2])]),
            *(np.array([1, 3], np.int32), Tally(), 0),
        )


def test_a_tally_counts_what_is_known_and_how_near_its_bound() -> None:
    tally = Tally()
    compared(n([1, 2, 3, 4], [0, 0.5, INF, 2]), [1, 2.25, 9, 4.5], tally)
    assert (tally.elements, tally.known, tally.worst) == (4, 3, 0.5)
    compared(n([1, 2], [0, 0.5]), [1, 2.125], tally)
    assert (tally.elements, tally.known, tally.worst) == (6, 5, 0.5)
    compared(n([1], 0.5), [1.375], tally)
    assert tally.worst == 0.75


# Effort


def test_what_time_there_is_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    effort = Effort(5, 0, deadline=160.0)
    assert effort.shared(4).soon == 115.0
    assert effort.shared(0).soon == 160.0
    assert Effort(5, 0).shared(3).soon == INF
    spent = replace(effort, soon=100.0)
    spent.check(0)
    spent.check(1)
    monkeypatch.setattr(time, "monotonic", lambda: 101.0)
    spent.check(0)
    with pytest.raises(StopError) as stopped:
        spent.check(1)
    assert stopped.value.why == SPENT
    monkeypatch.setattr(time, "monotonic", lambda: 160.0)
    replace(effort, soon=INF).check(1)
    monkeypatch.setattr(time, "monotonic", lambda: 161.0)
    with pytest.raises(StopError):
        effort.check(0)
    assert StopError().why == ""


# Hazards


def seen(
    known: dict[str, Subject], watch: HazardCollector, value: BoundedArray
) -> list[Hazard]:
    watch.statement(known["called"].kernel.body[0], value)
    return [*watch.found.values()]


UNKNOWN = n(1, INF)


def test_operators_that_leave_the_numbers(known: dict[str, Subject]) -> None:
    def told(
        op: str, left: BoundedArray, right: BoundedArray, value: BoundedArray = UNKNOWN
    ) -> Any:
        watch = HazardCollector()
        found = {**number.FLOAT_OPERATORS, "<": number.remainder}[op](left, right)
        watch.operator(op, left, right, found)
        return [(each.kind, each.text) for each in seen(known, watch, value)]

    high = 3e38
    assert told("+", n(high), n(high)) == [
        ("overflow", "3e+38 + 3e+38 is not finite in f32")
    ]
    assert told("*", n(high), n([1, -2])) == [
        ("overflow", "3e+38 * -2 is not finite in f32")
    ]
    assert told("/", n([1, 5]), n([0, 1])) == [("division", "1 / 0")]
    assert told("/", n(0), n(0)) == [("division", "0 / 0")]
    assert told("/", n(1), n(1e-40)) == [("overflow", "1 / 1e-40 is not finite in f32")]
    assert told("-", n(INF, INF), n(1)) == []  # it was lost before
    assert told("-", n(INF), n(INF)) == [("undefined", "inf - inf is not a number")]
    assert told("+", n(number.HIGHEST), n(0, 1e33)) == []  # which f32 still holds
    assert told("%", n(1), n(0)) == []
    assert told("+", n(1), n(2)) == []
    assert told("+", n(high), n(high), n(1)) == []  # the result does not depend on it
    rough = n(1, 0.5)
    near = n([1000, 1001, 5], 1e-3), n([1000.01, 1001.01, 1], 1e-3)
    assert told("-", *near, rough) == [
        ("cancellation", "1000 - 1000.01 loses all digits: both are rounded")
    ]
    assert told("-", *near, n(1, 0.005)) == []
    assert told("-", *near, n(1, 0.02)) != []
    assert told("-", n([1000, 5], 1e-3), n([1000.01, 1], 1e-3), rough) == []
    assert told("-", n(1000), n(1000.01, 1e-3), rough) == []
    assert told("*", *near, rough) == []


def test_the_least_numbers_that_fail_are_told(known: dict[str, Subject]) -> None:
    watch = HazardCollector()
    for size in ([3e38, 2.5e38], 3.2e38, 2e38, 2.8e38):
        watch.operator("+", n(size), n(size), number.add(n(size), n(size)))
        (found,) = seen(known, watch, UNKNOWN)
    assert found.text == "2e+38 + 2e+38 is not finite in f32"
    assert found.magnitude == 2e38
    assert found.line == found.statement.span.line if found.statement.span else 0
    assert found.line > 0


def test_functions_and_sums_that_leave_the_numbers(known: dict[str, Subject]) -> None:
    def told(watch: HazardCollector) -> Any:
        return [(each.kind, each.text) for each in seen(known, watch, UNKNOWN)]

    watch = HazardCollector()
    watch.builtin("pow", [n(-8), n(0.5)], n(0, INF))
    assert told(watch) == [("undefined", "pow(-8, 0.5) is not a number")]
    watch = HazardCollector()
    watch.builtin("exp", [n([1, 100])], n([1, 1], [0, INF]))
    assert told(watch) == [("overflow", "exp(100) is not finite in f32")]
    watch = HazardCollector()
    watch.builtin("select", [n(1), n(2), n(3)], n(0, INF))
    assert told(watch) == []
    watch = HazardCollector()
    terms = n([[1e38, 1], [-3e38, 1], [3e38, 1], [3e38, 1]])
    watch.reduction("sum", terms, 1, number.total(terms, number.Join()))
    assert told(watch) == [
        ("overflow", "the sum of 4 terms up to 3e+38 is not finite in f32")
    ]
    watch = HazardCollector()
    watch.reduction("prod", n([1e30, 1e30]), 1, n(0, INF))
    assert told(watch) == [
        ("overflow", "the product of 2 terms up to 1e+30 is not finite in f32")
    ]
    watch = HazardCollector()
    watch.reduction("max", n([1e30, 1e30]), 1, n(0, INF))
    assert told(watch) == []


def test_what_f16_does_not_hold_is_told(known: dict[str, Subject]) -> None:
    def told(value: BoundedArray, *, is_half: bool) -> Any:
        watch = HazardCollector()
        watch.statement(known["called"].kernel.body[0], value, is_half=is_half)
        return [(each.kind, each.text) for each in watch.found.values()]

    text = [("overflow", "65505 is more than an f16 holds")]
    assert told(n([7e4, 65505, 1]), is_half=True) == text
    assert told(n([65505]), is_half=False) == []
    assert told(n([65504]), is_half=True) == []
    assert told(n([65505], INF), is_half=True) == []


# Large calls


def test_elements_at_the_ends_are_looked_at() -> None:
    rows, columns = large.chosen_places((1000, 70))
    flat = rows * 70 + columns
    assert flat[:4].tolist() == [0, 1, 69_998, 69_999]
    assert len({*flat.tolist()}) > 390
    assert flat.min() >= 0
    assert flat.max() < 70_000
    assert large.chosen_places(()) == []
    (only,) = large.chosen_places((1,))
    assert {*only.tolist()} == {0}
    (none,) = large.chosen_places((0,))
    assert none.size == 0
