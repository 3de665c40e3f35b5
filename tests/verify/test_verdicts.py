"""What is made of results: faults and their words, hazards, plainer calls, the report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

import kerngen
from kerngen.ir.memory import Leaf
from kerngen.ir.types import Scalar
from kerngen.verify import fault as faults
from kerngen.verify import large, report
from kerngen.verify.calls import shrink
from kerngen.verify.calls.canned_calls import PERIOD
from kerngen.verify.calls.shrink import plainer
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.effort import SPENT, Effort, StopError
from kerngen.verify.fault import Fault, Tally, WrongError
from kerngen.verify.hazards import Hazard, HazardCollector
from kerngen.verify.meaning import number
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.result import (
    DIFFERENCES,
    OVERLAPS,
    REFERENCE,
    Counterexample,
    Verdict,
    WayResult,
)
from kerngen.verify.snippet import array_text, snippet
from kerngen.verify.trial import Given
from tests.compile import checked

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


# Plainer calls


def given_of(arrays: list[Any], *scalars: Any, **more: Any) -> Given:
    sizes = (("n", len(arrays[0])),)
    made = tuple(np.asarray(each, np.float32) for each in arrays)
    return Given(sizes, made, scalars, **more)


def test_a_call_that_fails_becomes_short_and_plain(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["called"], reference_way(known["called"]))
    x = [0.3, 2.5, 7.25, -1.5, 0.1, 6.5, 8.5]
    given = given_of([x, x], arrangement="together")

    def fails(candidate: Given) -> bool:
        return bool((candidate.arrays[0] > 7).any())

    found = plainer(given, fitting, fails)
    assert found.arrangement == "apart"
    assert found.sizes == (("n", 1),)
    assert found.arrays[0].tolist() in ([7.25], [7.0], [8.0], [8.5])
    assert found.arrays[1].tolist() == [0]
    assert found.arrays[0][0] == np.rint(found.arrays[0][0])

    def together(candidate: Given) -> bool:
        return candidate.arrangement == "together" and bool(candidate.arrays[1].any())

    found = plainer(given, fitting, together)
    assert (found.arrangement, found.arrays[1].tolist()) == ("together", [1])

    def same(candidate: Given) -> bool:
        return candidate.arrangement == "the same"

    found = plainer(replace(given, arrangement="the same"), fitting, same)
    assert (found.sizes, found.arrays[0].tolist()) == ((("n", 1),), [np.float32(0.3)])


def test_numbers_become_0_if_they_do_not_matter(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["called"], reference_way(known["called"]))
    given = given_of([np.arange(1, 10) / 4, np.arange(1, 10) / 4])

    def fails(candidate: Given) -> bool:
        x, y = candidate.arrays
        return len(x) == 9 and x[4] == 1.25 and y[8] != 0 and y[0] == 0.25

    found = plainer(given, fitting, fails)
    assert found.arrays[0].tolist() == [0, 0, 0, 0, 1.25, 0, 0, 0, 0]
    assert found.arrays[1].tolist() == [0.25, 0, 0, 0, 0, 0, 0, 0, 2.25]


def test_axes_are_cut_at_either_end(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["called"], reference_way(known["called"]))
    given = given_of([range(1, 10), range(1, 10)])
    for kept in (1, 9, 5):

        def fails(candidate: Given, kept: int = kept) -> bool:
            return kept in candidate.arrays[0]

        found = plainer(given, fitting, fails)
        assert found.arrays[0].tolist() == [kept]
    windowed = Fitting(known["windowed"], reference_way(known["windowed"]))
    found = plainer(given_of([range(1, 10)]), windowed, lambda _: True)
    assert found.sizes in ((("n", 2),), (("n", 3),))


def test_two_axes_are_cut_apart(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["blocks"], reference_way(known["blocks"]))
    x = np.arange(70, dtype=np.float32).reshape(10, 7)
    given = Given((("m", 10), ("n", 7)), (x,), ())
    shorter = vars(shrink)["_shorter"](given, fitting)
    cuts = {(each.sizes, each.arrays[0].tobytes()) for each in shorter}
    lengths = [(n, 7) for n in (1, 2, 3, 4, 5, 8, 9)] + [
        (10, n) for n in (1, 2, 3, 4, 6)
    ]
    assert cuts == {
        ((("m", m), ("n", n)), np.ascontiguousarray(part).tobytes())
        for m, n in lengths
        for part in (x[:m, :n], x[10 - m :, 7 - n :])
    }


def test_axes_become_shorter_by_one_element(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["called"], reference_way(known["called"]))
    given = given_of([range(30), range(30)])
    found = plainer(given, fitting, lambda each: len(each.arrays[0]) >= 21)
    assert found.sizes == (("n", 21),)


def test_scalars_become_0_or_1(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["hosted"], reference_way(known["hosted"]))
    given = given_of([[1.5]], 7.5, 3)
    assert plainer(given, fitting, lambda _: True).scalars == (0.0, 3)
    three = replace(given, scalars=(1.5, 2.5, 3.5))
    assert vars(shrink)["_with_scalar"](three, 1, 0.0).scalars == (1.5, 0.0, 3.5)
    found = plainer(given, fitting, lambda each: each.scalars[0] > 0)
    assert found.scalars == (1.0, 3)
    found = plainer(given, fitting, lambda each: each.scalars[0] > 1)
    assert found.scalars == (7.5, 3)


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


# Reports


def result_of(subject: Subject, **more: Any) -> WayResult:
    tally = Tally(cases=2, elements=8, known=6, worst=0.5)
    plain = WayResult("a.kern", "k[1]", "y", "map", "edge", subject, tally=tally)
    return replace(plain, **more)


def test_a_row_for_each_way(known: dict[str, Subject]) -> None:
    subject = known["called"]
    given = given_of([[1.0], [2.0]])
    found = Counterexample(given, Fault("value", "it is [wrong]", got=INF, bound=0.5))
    rows = [
        result_of(subject),
        result_of(subject, strategy="gemv", tally=Tally(cases=1), why="but not all"),
        result_of(subject, kernel="other", large=(("m", 5), ("n", 7)), tally=Tally()),
        result_of(subject, verdict=Verdict.WRONG, counterexample=found),
        result_of(
            subject,
            verdict=Verdict.WRONG,
            counterexample=Counterexample(
                given, Fault("raised", "it is"), unsteady=True
            ),
        ),
    ]
    console = Console(width=150)
    with console.capture() as printed:
        console.print(report.table_of(rows))
    lines = [line.rstrip() for line in printed.get().splitlines()]
    assert [line.split() for line in lines] == [
        ["kernel", "schedule", "calls", "known", "worst", "error"],
        ["k[1]", "y", "map", "edge", "2", "75%", "0.50", "of", "bound", "held"],
        [*"y gemv edge 1 exact held:".split(), "but", "not", "all"],
        [*"other y map edge held: also m = 5, n = 7".split()],
        [*"k[1] y map edge 2 75% 0.50 of bound wrong: it is [wrong]".split()],
        [*"y map edge 2 75% 0.50 of bound wrong: it is, not each time".split()],
    ]
    data = report.data_of(report.Report("adapter", 4, rows, 5))
    assert (data["adapter"], data["seed"], data["finished"]) == ("adapter", 4, True)
    assert data["results"][2]["large"] == {"m": 5, "n": 7}
    assert data["results"][0]["known"] == 6
    wrong = data["results"][3]["counterexample"]
    assert (wrong["got"], wrong["expected"], wrong["steady"]) == ("inf", 0.0, True)
    assert wrong["sizes"] == {"n": 1}
    finite = Counterexample(given, Fault("value", "", got=-1.5, expected=np.nan))
    (row,) = report.data_of(
        report.Report(
            *("adapter", 4, [result_of(subject, counterexample=finite)]), planned=1
        )
    )["results"]
    wrong = row["counterexample"]
    assert (wrong["got"], wrong["expected"]) == (-1.5, "nan")
    raised = data["results"][4]["counterexample"]
    assert not raised["steady"]
    assert raised["got"] == raised["expected"] == raised["bound"] == 0


def test_the_last_line_counts(known: dict[str, Subject]) -> None:
    subject = known["called"]
    rows = [
        result_of(subject),
        result_of(subject, strategy="gemv"),
        result_of(subject, file="b.kern", verdict=Verdict.WRONG),
        result_of(subject, strategy=OVERLAPS, verdict=Verdict.NOT_RUN, cut=True),
    ]
    whole = report.Report("adapter", 4, rows, 7)
    assert report.summary(whole) == (
        "2 kernels, 4 ways to run them, 8 calls: 2 held, 1 wrong, 1 not run (seed 4)."
    )
    assert not whole.finished
    assert whole.interruption == "Interrupted: 3 of 7 ways were run."
    nothing = report.Report("adapter", 4, [], 1, interrupted=True)
    assert report.summary(nothing).endswith("0 calls: nothing run (seed 4).")
    assert nothing.interruption == "Interrupted: 0 of 1 way were run."
    assert not nothing.finished
    assert [each.on_device for each in rows] == [True, True, True, False]
    assert not result_of(subject, strategy=REFERENCE).on_device
    assert rows[0].schedule == "y map edge"


def test_long_arrays_that_repeat_are_written_once() -> None:
    period = np.arange(PERIOD, dtype=np.float32)
    text = array_text(np.resize(period, (41, 100)), F32)
    assert text.startswith("np.resize(np.array([0.0, 1.0, 2.0, ")
    assert text.endswith(" 250.0], np.float32), (41, 100))")
    odd = np.resize(period, 4097)
    odd[-1] += 1
    assert array_text(odd, F32).startswith("np.frombuffer(decompress(")
    short = array_text(np.resize(period, 4096), F32)
    assert short.startswith("np.array([0.0, ")
    assert (
        array_text(np.zeros((2, 3), np.float32), F32) == "np.zeros((2, 3), np.float32)"
    )
    assert array_text(np.array([[1, 2]], np.float32), F32) == (
        "np.array([1.0, 2.0], np.float32).reshape((1, 2))"
    )


def test_long_structs_that_repeat_are_written_once() -> None:
    text = "struct P { a: f32, b: i32 }"
    (structure,) = checked(text).structs
    repeated: NDArray[Any] = np.zeros((41, 100), kerngen.compile(text).P.DTYPE)
    repeated["a"] = np.resize(np.arange(PERIOD), repeated.shape)
    written = array_text(repeated, structure)
    assert written.startswith("np.resize(np.frombuffer(")
    assert written.endswith(f", {repeated.nbytes}), (41, 100)")


def test_a_program_imports_what_unpacks_its_arrays(known: dict[str, Subject]) -> None:
    fault = Fault("value", "", 0, "", (1,), 2.0, 1.0, 0.25)
    long = np.arange(5000.0) ** 0.5
    for arrays in ([long, long], [long, [1.0]], [[1.0], long]):
        wrong = result_of(
            known["called"],
            kernel="called",
            counterexample=Counterexample(given_of(arrays), fault),
        )
        first, second, *_ = snippet(wrong, "").splitlines()
        assert first == "from base64 import b85decode"
        assert second == "from zlib import decompress"


def test_an_argument_is_called_by_no_word_of_python(known: dict[str, Subject]) -> None:
    fault = Fault("value", "", 0, "", (1,), 2.0, 1.0, 0.25)
    found = Counterexample(given_of([[1.5, 2.0]]), fault)
    wrong = result_of(known["named"], kernel="named", counterexample=found)
    lines = snippet(wrong, "").splitlines()
    assert "lambda_ = np.array([1.5, 2.0], np.float32)" in lines
    assert "    results = run(lambda_)" in lines


def test_a_program_repeats_differences(known: dict[str, Subject]) -> None:
    fault = Fault("value", "", 0, "", (1,), 2.0, 1.0, 0.25)
    found = Counterexample(given_of([[1.5, 2.0]], INF, 3, turn=7), fault)
    wrong = result_of(
        known["hosted"], kernel="hosted", strategy=DIFFERENCES, counterexample=found
    )
    assert snippet(wrong, "").splitlines() == [
        "from kerngen.verify.repeat import differences",
        "",
        "for each in differences('a.kern', 'hosted', seed=7):",
        "    print(each)",
        "    assert each.is_held",
    ]
    third = snippet(wrong, "src").splitlines()[2]
    assert third == (
        "for each in differences('a.kern', 'hosted', seed=7, sources='src'):"
    )


def test_the_program_repeats_what_went_wrong(known: dict[str, Subject]) -> None:
    subject = known["hosted"]
    given = given_of([[1.5, -0.0]], INF, 3, turn=2)
    fault = Fault("value", "", 0, "", (1,), 2.0, 1.0, 0.25)
    wrong = result_of(
        subject, kernel="hosted", counterexample=Counterexample(given, fault)
    )
    assert snippet(wrong, "").splitlines() == [
        "import numpy as np",
        "",
        "from kerngen.verify.repeat import kernel",
        "",
        "x = np.array([1.5, -0.0], np.float32)",
        "scale = np.inf",
        "step = 3",
        "with kernel('a.kern', 'hosted', 'y map edge') as run:",
        "    results = run(x, scale, step, pattern=2)",
        "got = results[0][1]",
        "expected, bound = 1.0, 0.25",
        'print(f"y[1]: the device gives {got}, not {expected} within {bound}")',
        "assert abs(float(got) - expected) <= bound",
    ]
    lowest = Counterexample(given, replace(fault, expected=-INF, bound=0.0))
    assert snippet(replace(wrong, counterexample=lowest), "").splitlines()[-3::2] == [
        "expected, bound = -np.inf, 0.0",
        "assert got == expected",
    ]
    twice = replace(given, arrangement="together", overlapping=(0, 1))
    bits = replace(fault, kind="bits", place=())
    again = replace(wrong, counterexample=Counterexample(twice, bits))
    lines = snippet(again, "src").splitlines()
    way = "'a.kern', 'hosted', 'y map edge', sources='src'"
    assert lines[-4:] == [
        f"with kernel({way}, arrangement='together', overlapping=(0, 1)) as run:",
        "    results = run(x, scale, step, pattern=2)",
        "    again = run(x, scale, step, pattern=1)",
        "assert results[0].tobytes() == again[0].tobytes()",
    ]
    odd = Counterexample(
        replace(given, turn=1), replace(fault, kind="outside", text="it")
    )
    lines = snippet(replace(wrong, counterexample=odd), "").splitlines()
    assert lines[-2:] == ["    results = run(x, scale, step, pattern=1)", "# it"]
    numpy = replace(wrong, strategy=REFERENCE)
    assert "y[1]: NumPy gives" in snippet(numpy, "")
