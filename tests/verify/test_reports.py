"""The report: tables, summaries, and the programs that repeat a failure."""

from __future__ import annotations

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
from kerngen.verify import report
from kerngen.verify.calls.canned_calls import PERIOD, call_at
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.contents import leaves
from kerngen.verify.fault import Fault, Tally, WrongError
from kerngen.verify.hazards import Hazard
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.meaning.values import blank_array
from kerngen.verify.result import (
    DIFFERENCES,
    OVERLAPS,
    REFERENCE,
    Counterexample,
    Verdict,
)
from kerngen.verify.snippet import array_text, snippet
from tests.compile import checked
from tests.verify.results import given_of, result_of

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


def test_a_fault_in_a_struct_has_its_path(known: dict[str, Subject]) -> None:
    """The program looks at the same number as the comparison."""
    subject = known["pairs"]
    tensor = next(each for each in subject.kernel.tensors if each.name == "q")
    got = blank_array(subject.runtime.outputs[0].element, (2,))
    want = [n(np.zeros(part.shape)) for _, _, part in leaves(tensor.memory, got)]
    given = call_at(Fitting(subject, reference_way(subject)), (("n", 2),))

    def told(wanted: list[BoundedArray], **changed: int) -> Fault:
        array = got.copy()
        for name, value in changed.items():
            array[name][(-1,) * array[name].ndim] = value
        with pytest.raises(WrongError) as raised:
            faults.compare("q", tensor.memory, wanted, array, Tally(), 1)
        return raised.value.fault

    for member, place in (("far", (1, 2)), ("count", (1,))):
        fault = told(want, **{member: 3})
        at = f"[{', '.join(map(str, place))}]"
        assert fault.text.startswith(f"q.{member}{at} is 3")
        assert (fault.result, fault.path, fault.place) == (1, f".{member}", place)
        wrong = result_of(subject, counterexample=Counterexample(given, fault))
        lines = snippet(wrong, "").splitlines()
        assert f"got = results[1]['{member}']{at}" in lines
        assert any(f"q.{member}{at}: the device gives" in line for line in lines)
    fault = told([n(np.zeros((3, 2))), *want[1:]])
    assert fault.text == "q.near has shape (2, 2), not (3, 2)"
    assert (fault.result, fault.path) == (1, ".near")


@pytest.mark.parametrize("unsteady", [False, True])
def test_a_fault_is_printed_alike_from_a_result_and_from_data(
    known: dict[str, Subject], unsteady: bool
) -> None:
    """Its program can be copied: lines are neither cut nor coloured."""
    given = given_of([np.arange(40.0), np.arange(40.0)])
    fault = Fault("value", "it is [wrong]", place=(1,))
    found = Counterexample(given, fault, unsteady=unsteady)
    result = result_of(known["called"], verdict=Verdict.WRONG, counterexample=found)
    console = Console(width=60, force_terminal=True, color_system="standard")
    with console.capture() as one:
        report.print_counterexample(console, result, "src")
    data = report.data_of(report.Report("adapter", 4, [result], 1, "src"))
    with console.capture() as other:
        report.print_data(console, data)
    assert one.get() == other.get()
    assert ("The same call was also right" in one.get()) == unsteady
    for line in snippet(result, "src").splitlines():
        assert f"\n    {line}".rstrip(" ") + "\n" in one.get()


def test_hazards_are_printed_on_lines_of_their_own(known: dict[str, Subject]) -> None:
    statement = known["called"].kernel.body[0]
    hazard = Hazard(statement, "overflow", "1e30 * 1e30 is not finite in f32", 1e30)
    sound, risky = (result_of(known["called"], hazards=h) for h in ((), (hazard,)))
    console = Console(width=40)
    with console.capture() as printed:
        report.print_hazards(console, [sound])
    assert printed.get() == ""
    line = f"a.kern:{hazard.line}: k[1]: {hazard.text}"
    with console.capture() as printed:
        report.print_hazards(console, [sound, risky])
    *_, first, second = printed.get().splitlines()
    assert (first, second) == (f"  {line}", f"    {statement.text}")
    assert printed.get().startswith("\nOrdinary numbers exceed f32")
    with console.capture() as printed:
        data = report.data_of(report.Report("adapter", 4, [sound, risky], 2))
        report.print_data(console, data)
    assert printed.get() == f"{line}\n"


def test_numbers_of_a_narrow_table_are_whole(known: dict[str, Subject]) -> None:
    """Names are folded instead."""
    long = result_of(known["called"], kernel="kernel" * 9, strategy="strategy" * 9)
    console = Console(width=60)
    with console.capture() as printed:
        console.print(report.table_of([long]))
    assert "0.50 of bound" in printed.get()
