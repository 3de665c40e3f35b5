"""One call, run one way: what surrounds it, and when no more of them are made."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis.errors import UnsatisfiedAssumption

import kerngen.runtime as gpu
from kerngen.plan.size import evaluate
from kerngen.plan.tree import dispatches_in
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.calls.ranges import shape_of
from kerngen.verify import campaign, large
from kerngen.verify import trial as trials
from kerngen.verify.calls.canned_calls import call_at, overlaps
from kerngen.verify.calls.draw import ARRANGEMENTS, Drawn
from kerngen.verify.calls.sizes import Fitting, Sizes, meeting
from kerngen.verify.campaign import given_of, reference_way
from kerngen.verify.effort import Effort, StopError
from kerngen.verify.fault import LOST, Fault, Tally, WrongError
from kerngen.verify.guarded import BEFORE, BEHIND, PATTERNS, Leased
from kerngen.verify.large import MOST_GROUPS, expected_seconds, large_sizes
from kerngen.verify.meaning.number import known as known_number
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.subjects import subjects
from kerngen.verify.trial import (
    Given,
    Trial,
    device_tensors,
    launch,
    refer,
    writes_words,
)
from kerngen.verify.ways import ways
from tests.compile import library_of, loaded
from tests.verify.patches import always, nothing, raising

X, Y = np.array([1, 2, 3], np.float32), np.array([5, 7, 9], np.float32)
CALL = Given((("n", 3),), (X, Y), ())
Z = (X * X + Y) * X * X - (Y * Y + X) * Y * Y
"""What `called` makes of them."""


def trial_of(subject: Subject, guarded: Any = None) -> Trial:
    return Trial(guarded, Fitting(subject, reference_way(subject)), Tally())


@pytest.mark.parametrize("turn", range(len(PATTERNS)))
def test_every_other_call_is_made_twice_amid_two_patterns(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    patterns: list[Any] = []

    def run(self: Trial, given: Given, pattern: Any) -> list[Any]:
        del self, given
        patterns.append(pattern)
        return [Z]

    monkeypatch.setattr(Trial, "run", run)
    trial = trial_of(known["called"])
    trial.check(replace(CALL, turn=turn))
    assert patterns == [PATTERNS[turn], PATTERNS[turn - 1]][: 2 - turn % 2]
    assert (trial.tally.cases, trial.tally.elements) == (1, 3)


@pytest.mark.parametrize(
    ("way", "values", "held"),
    [
        ("flash_tile64x64x32", [0.0, np.inf], True),
        ("flash_tile64x64x32", [0.0, 1.0], False),
        ("flash_tile64x64x128_rows4", [0.0, np.inf], False),
        ("gemm", [0.0, np.inf], False),
    ],
)
def test_values_that_are_left_out_are_weighed_by_0_in_tiles_of_flash(
    known: dict[str, Subject],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    values: list[float],
    held: bool,
) -> None:
    """0 times infinity is NaN, which is known nowhere else."""
    wanted = known_number(np.zeros(2, np.float32))
    monkeypatch.setattr(Trial, "run", always([np.array([np.nan, 0], np.float32)]))
    monkeypatch.setattr(Trial, "meaning", always([[wanted]]))
    trial = trial_of(known["called"])
    strategy = replace(trial.fitting.way.strategy, name=way)
    fitting = Fitting(trial.subject, replace(trial.fitting.way, strategy=strategy))
    trial = replace(trial, fitting=fitting)
    given = replace(CALL, arrays=(np.array(values, np.float32),), turn=1)
    if held:
        trial.check(given)
        return
    with pytest.raises(WrongError, match="nan"):
        trial.check(given)


def test_a_write_beside_the_tensors_is_wrong(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:

    def fault(*, by_words: bool) -> str:
        return "it wrote behind z" + " by words" * by_words

    monkeypatch.setattr(trials, "launch", always([Z]))
    guarded = SimpleNamespace(ctx=None, under=always(nullcontext()), fault=fault)
    with pytest.raises(WrongError, match=r"^it wrote behind z$") as raised:
        trial_of(known["called"], guarded).check(CALL)
    assert raised.value.fault.kind == "outside"


def test_a_second_run_gives_the_same_bits(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[Any] = [X / 3, X / 3 + [0, 0, 2.0**-24 * 5]]
    calls = count()

    def run(*_: object) -> list[Any]:
        return [results[next(calls)].astype(np.float32)]

    monkeypatch.setattr(Trial, "run", run)
    monkeypatch.setattr(Trial, "compare", nothing)
    trial = trial_of(known["called"])
    with pytest.raises(WrongError, match=r"^z\[2\] is 1.0, and 1.0000") as raised:
        trial.check(CALL)
    fault = raised.value.fault
    assert (fault.kind, fault.result, fault.place) == ("bits", 0, (2,))
    results[:] = [X, X + 1]
    calls = count()
    unknown = replace(CALL, arrays=(X * np.float32(1e30), Y))
    with np.errstate(all="ignore"):
        trial.check(unknown)  # nothing is known of it
    assert trial.tally.cases == 1


def test_bits_are_those_of_their_type() -> None:
    assert trials.bits(np.array([1.0, -0.0], np.float32)).tolist() == [
        0x3F800000,
        2**31,
    ]
    assert trials.bits(np.array(1.0, np.float16)).tolist() == 0x3C00


class Tensors:
    """A context that makes tensors which are arrays."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def tensor(self, array: Any, element: object) -> Any:
        del element
        self.made.append(array)
        return array


def test_tensors_of_one_type_lie_in_one_buffer(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["called"], reference_way(known["called"]))
    ctx: Any = Tensors()
    x = np.arange(70, dtype=np.float32)
    given = Given((("n", 70),), (x, x + 1), (), "together")
    first, second = trials.device_tensors(ctx, fitting, given)
    (whole,) = ctx.made
    assert np.array_equal(first, x)
    assert np.array_equal(second, x + 1)
    assert np.shares_memory(first, whole)
    assert whole.size == 128 + 70
    assert not whole[70:128].any()
    one, other = trials.device_tensors(
        ctx, fitting, replace(given, arrangement="the same")
    )
    assert one is other
    one, other = trials.device_tensors(
        ctx, fitting, replace(given, arrangement="apart")
    )
    assert one is not other


def test_the_reference_changes_copies(known: dict[str, Subject]) -> None:
    trial = trial_of(known["ordered"])
    given = Given((("n", 3),), (X, X, X), ())
    results = refer(trial.fitting.kernel, given)
    expected = [X + 4, X + 2, X + 3, X + 1]
    assert all(map(np.array_equal, results, expected))
    assert X.tolist() == [1, 2, 3]
    trial.refer(given)
    assert (trial.tally.cases, trial.tally.elements) == (1, 12)


def test_a_sum_whose_scale_may_come_last_is_unknown_where_it_overflows(
    known: dict[str, Subject],
) -> None:
    trial = trial_of(known["narrow"])
    w, zero, scale = (np.array(x) for x in ([15, 14], [3], [0.0]))
    for x, is_known in (1e36, True), (2e37, False):
        arrays = (np.full(2, x, np.float32), w, zero, scale.astype(np.float16))
        (want,) = trial.meaning(Given((("n", 2),), arrays, ()))[0]
        assert bool(np.isfinite(want.error).all()) == is_known


def test_tensors_whose_elements_share_bytes_are_not_cut(
    ctx: gpu.Context, known: dict[str, Subject]
) -> None:
    fitting = trial_of(known["narrow"]).fitting
    codes, zero = np.array([1, 2, 3], np.uint8), np.array([4], np.uint8)
    arrays = (np.ones(3, np.float32), codes, zero, np.ones(1, np.float16))
    given = Given((("n", 3),), arrays, (), arrangement="together")
    made = device_tensors(ctx, fitting, given)
    assert [tensor.numpy().tolist() for tensor in made] == [
        each.tolist() for each in arrays
    ]


# Zones


def zoned(filled: int = 0) -> tuple[Any, Any]:
    """A buffer of 8 bytes whose zones hold a pattern, and the bytes of all."""
    buffer: Any = SimpleNamespace(word=0x7FC12300, filled=filled)
    words = np.full((BEFORE + 8 + BEHIND) // 4, buffer.word, np.uint32)
    return buffer, words.view(np.uint8).copy()


def spoilt(at: int, nbytes: int = 6, filled: int = 0) -> str:
    """What is told of a buffer one byte of which, or of what is around it, changed."""
    buffer, found = zoned(filled)
    found[BEFORE + at] ^= 0xFF
    return Leased(nbytes, buffer).fault(found, by_words=False)


@pytest.mark.parametrize(("by_words", "is_fault"), [(True, False), (False, True)])
def test_zeros_behind_the_last_narrow_integer(by_words: bool, is_fault: bool) -> None:
    """Of halves a shader writes no words, so that zeros behind the last are a fault."""
    buffer, found = zoned()
    found[BEFORE + 6 : BEFORE + 8] = 0
    assert bool(Leased(6, buffer).fault(found, by_words=by_words)) == is_fault


def test_what_lies_around_a_buffer_is_to_stay() -> None:
    assert spoilt(0) == spoilt(5) == ""
    assert spoilt(6) == "something wrote at byte 6 of a buffer of 6"
    assert spoilt(-1) == "something wrote at byte -1 of a buffer of 6"
    assert spoilt(-BEFORE) != ""
    assert spoilt(BEHIND + 7) != ""
    # An upload is in words: it may fill the last one up, and no more.
    assert spoilt(7, filled=8) == ""
    assert spoilt(7, filled=7) != ""
    assert spoilt(8, filled=9) != ""


def test_zones_are_aligned_and_patterns_differ() -> None:
    assert BEFORE % 256 == 0
    assert BEHIND >= 1 << 17
    words = [pattern.of(2) for pattern in PATTERNS]
    assert len({*words}) == len(words) == 5
    assert words[4] == 1  # as an integer, a place that most tensors have
    floats = np.array([pattern.word for pattern in PATTERNS], np.uint32).view(
        np.float32
    )
    assert np.isnan(floats[0])
    assert floats[1:3].tolist() == [np.inf, -np.inf]
    assert floats[3] == np.float32(np.pi)
    assert sum(pattern.of(1) != pattern.of(2) for pattern in PATTERNS) == 2


# When no more calls are made


def calls_of(subject: Subject, run: Any, **more: Any) -> campaign.Calls:
    return campaign.Calls(trial_of(subject), run, Effort(5, 0, **more))


def reject() -> None:
    raise UnsatisfiedAssumption


DRAWN = Drawn((("n", 3),), (), (("whole", "few"),) * 2, (1, 1), 1, "apart", 0)


def test_an_adapter_that_refuses_all_calls_is_left(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hypothesis.reject", reject)
    calls = calls_of(known["called"], raising(gpu.LimitError("too large")))
    for _ in range(19):
        with pytest.raises(UnsatisfiedAssumption):
            calls.check(DRAWN)
    with pytest.raises(StopError):
        calls.check(DRAWN)
    assert calls.missing == "too large"
    calls.trial.tally.cases = 1
    with pytest.raises(UnsatisfiedAssumption):
        calls.check(DRAWN)
    outside = calls_of(known["called"], raising(gpu.UniformRangeError("above 1")))
    with pytest.raises(UnsatisfiedAssumption):
        outside.check(DRAWN)
    assert (outside.missing, outside.refused) == ("", 0)
    lacking = calls_of(known["called"], raising(gpu.FeatureError("no f16")))
    with pytest.raises(StopError):
        lacking.check(DRAWN)


def test_a_plainer_call_is_looked_for_for_a_while(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.seconds)
    wrong = WrongError(Fault("value", "it is wrong"))
    calls = calls_of(known["called"], raising(wrong), deadline=101.0)
    for now.seconds in (100.0, 105.0, 109.0):
        with pytest.raises(WrongError):
            calls.check(DRAWN)
    now.seconds = 110.5
    with pytest.raises(StopError):
        calls.check(DRAWN)
    fitting = calls.trial.fitting
    assert len(calls.failed) == 3
    assert all(each.given.sizes == DRAWN.sizes for each in calls.failed)
    assert np.array_equal(
        calls.failed[0].given.arrays[0], given_of(DRAWN, fitting).arrays[0]
    )
    late = calls_of(known["called"], raising(wrong), deadline=101.0)
    with pytest.raises(StopError, match="budget"):
        late.check(DRAWN)
    lost = calls_of(known["called"], raising(WrongError(Fault(LOST, "it is lost"))))
    with pytest.raises(StopError):
        lost.check(DRAWN)
    assert len(lost.failed) == 1


# Large calls


@pytest.mark.parametrize(("name", "dims"), [("windowed", "n"), ("blocks", "mn")])
def test_a_large_call_is_the_least_that_folds(
    known: dict[str, Subject], name: str, dims: str
) -> None:
    context: Any = SimpleNamespace(ctx=SimpleNamespace(max_tensor_bytes=1 << 30))
    for way in ways(known[name].runtime):
        fitting = Fitting(known[name], way)
        trial = Trial(context, fitting, Tally())
        sizes = large_sizes(trial)
        if sizes is None:
            continue
        assert "".join(dim for dim, _ in sizes) == dims
        lengths = fitting.lengths(sizes)
        assert lengths is not None

        def groups(lengths: Any, way: Any = way) -> int:
            dispatches = dispatches_in(way.variant.body)
            return max(evaluate(each.groups, lengths) for each in dispatches)

        assert MOST_GROUPS < groups(lengths) <= MOST_GROUPS + 8
        assert way.takes(lengths)
        small: Any = SimpleNamespace(ctx=SimpleNamespace(max_tensor_bytes=1 << 20))
        assert large_sizes(replace(trial, guarded=small)) is None
        largest = max(
            prod(shape_of(t.axes, lengths)) * 4 for t in fitting.kernel.tensors
        )
        most = largest + BEFORE + BEHIND
        for bytes_, found in ((most, sizes), (most - 1, None)):
            exact: Any = SimpleNamespace(ctx=SimpleNamespace(max_tensor_bytes=bytes_))
            assert large_sizes(replace(trial, guarded=exact)) == found
        assert_seconds_are_expected(fitting, sizes)
        return
    pytest.fail("no way folds")


@pytest.mark.parametrize(("most", "fits"), [(0, False), (1, True)])
def test_sums_of_a_large_call_are_short(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch, most: int, fits: bool
) -> None:
    """An element of 'windowed' is a sum of one term."""
    monkeypatch.setattr(large, "_MOST_TERMS", most)
    context: Any = SimpleNamespace(ctx=SimpleNamespace(max_tensor_bytes=1 << 30))
    fittings = [Fitting(known["windowed"], x) for x in ways(known["windowed"].runtime)]
    several = [Trial(context, each, Tally()) for each in fittings]
    assert any(map(large_sizes, several)) == fits


def assert_seconds_are_expected(fitting: Fitting, sizes: Sizes) -> None:
    """A call of a 16th of the length is made, and takes as much less."""
    made: list[int] = []

    def run(given: Given, _: object) -> None:
        made.append(max(length for _, length in given.sizes))
        time.sleep(0.02)
        if len(made) > 1:
            raise WrongError(Fault("value", "it is wrong"))

    trial: Any = SimpleNamespace(fitting=fitting, run=run)
    longest = max(length for _, length in sizes)
    assert 0.02 * 16 <= expected_seconds(trial, sizes) < 5.0
    assert made == [longest // 16 // 256 * 256]
    assert expected_seconds(trial, sizes) == 0.0
    assert expected_seconds(trial, (("n", 300),)) == 0.0


def test_kernels_that_store_only_parts_have_no_large_call() -> None:
    """Not even if their first statement writes a whole tensor."""
    text = """
        struct Pair { first: f32, second: f32 }
        kernel f(x: f32[n], mut kept: Pair[m]) -> y: f32[n] {
            y[i] = 2.0 * x[i];
            kept[i].second = 3.0;
        }
        schedule f { generic }
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = found["a.kern"]
        context: Any = SimpleNamespace(ctx=SimpleNamespace(max_tensor_bytes=1 << 30))
        made = [
            Trial(context, Fitting(subject, way), Tally())
            for way in ways(subject.runtime)
        ]
        assert made
        assert not any(map(large_sizes, made))


def test_words_are_written_where_one_output_is_narrow(
    known: dict[str, Subject],
) -> None:
    assert writes_words(known["two_widths"])
    assert not writes_words(known["lagged"])


def test_sizes_meet_what_is_required(known: dict[str, Subject]) -> None:
    """A scalar may be negative then, a length is not."""
    kernel = known["lagged"].runtime
    assert meeting(kernel, {"n": 0, "lag": 0}) == {"n": 0, "lag": -1}
    assert meeting(kernel, {"n": 5, "lag": 3}) == {"n": 5, "lag": 3}
    packed = """
        kernel k(x: f32[n]) -> y: f32[n] { require n % 8 == 3; y[i] = x[i]; }
    """
    assert meeting(loaded(packed)._K, {"n": 21}) == {"n": 19}


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("2 * n < m", {"n": 6, "m": 13}),
        ("2 * n <= m", {"n": 6, "m": 12}),
        ("n + 3 > m", {"n": 6, "m": 8}),
        ("n + 3 >= m", {"n": 6, "m": 9}),
        ("n < m - 5", {"n": 4, "m": 10}),
        ("n > m + 1", {"n": 12, "m": 10}),
        ("n >= m + 1", {"n": 11, "m": 10}),
        ("n == m + 1", {"n": 11, "m": 10}),
        ("n % 5 == 2 and m < n", {"n": 7, "m": 6}),
        ("(n % 5 == 2 and m < n) or n == 0", {"n": 7, "m": 6}),
        ("n % 5 == 2 and n < m", {"n": 7, "m": 10}),
    ],
)
def test_sizes_meet_comparisons_of_either_side(
    condition: str, met: dict[str, int]
) -> None:
    text = f"kernel k(x: f32[n], z: f32[m]) -> y: f32[n] {{ require {condition}; y[i] = x[i]; }}"
    given = {"n": 6, "m": 10}
    if condition.startswith("n + 3"):
        given["m"] = 20
    assert meeting(loaded(text)._K, given) == met


# Layouts in memory


@pytest.mark.parametrize("name", ["alike", "matrices", "called"])
def test_tensors_in_one_buffer_keep_their_contents(
    ctx: gpu.Context, known: dict[str, Subject], name: str
) -> None:
    fitting = trial_of(known[name]).fitting
    plain = call_at(fitting, (("n", 70),))
    arrays = tuple(array + n for n, array in enumerate(plain.arrays))
    given = replace(plain, arrays=arrays, arrangement="together")
    made = device_tensors(ctx, fitting, given)
    assert all(map(np.array_equal, [each.numpy() for each in made], arrays))


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_results_are_the_same_in_each_layout(
    ctx: gpu.Context,
    known: dict[str, Subject],
    monkeypatch: pytest.MonkeyPatch,
    arrangement: str,
) -> None:
    """Outputs are made by the call, unless it is their layout to be given."""
    passed: list[Any] = []
    call = Kernel.launch

    def noted(self: Kernel, ctx: Any, tensors: Any, scalars: Any, out: Any) -> Any:
        passed.extend(out)
        return call(self, ctx, tensors, scalars, out)

    monkeypatch.setattr(Kernel, "launch", noted)
    way, *_ = ways(known["ordered"].runtime)
    fitting = Fitting(known["ordered"], way)
    given = replace(call_at(fitting, (("n", 8),)), arrangement=arrangement)
    results = launch(ctx, fitting, way, given)
    expected = refer(fitting.kernel, given)
    assert len(results) == len(expected) == 4
    assert all(map(np.array_equal, results, expected))
    assert [each is not None for each in passed] == [arrangement == "given"] * 2


def test_one_tensor_for_two_of_which_one_is_written_is_refused(
    ctx: gpu.Context, known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two inputs, or an input and an output."""
    way, *_ = ways(known["ordered"].runtime)
    fitting = Fitting(known["ordered"], way)
    tried = [*overlaps(fitting)]
    assert [launch(ctx, fitting, way, given) for given in tried] == [[]] * 9
    monkeypatch.setattr("kerngen.runtime.calls.launch.check_overlap", nothing)
    names = [tensor.name for tensor in fitting.kernel.tensors]
    for given in tried:
        assert given.overlapping is not None
        first, second = (names[n] for n in given.overlapping)
        text = f"^'{first}' and '{second}' are one tensor, and "
        with pytest.raises(WrongError, match=text) as raised:
            launch(ctx, fitting, way, given)
        assert raised.value.fault.kind == "overlap"
