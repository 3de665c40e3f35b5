"""The calls that are tried: their numbers, their lengths, and what of them is one tensor."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import find
from hypothesis.errors import NoSuchExample, Unsatisfiable

from kerngen.ir.memory import Leaf
from kerngen.ir.types import Scalar, Storage
from kerngen.plan.size import ALWAYS, NEVER, ONE, Symbol, all_of, compare, divides
from kerngen.plan.tree import (
    Case,
    Choice,
    Dispatch,
    Needs,
    Sequence,
    choices_in,
    dispatches_in,
    stages_of,
)
from kerngen.verify.calls import draw
from kerngen.verify.calls import sizes as lengths_module
from kerngen.verify.calls.canned_calls import PERIOD, call_at, canned_call, overlaps
from kerngen.verify.calls.draw import ARRANGEMENTS, Drawn, inputs_of, twins
from kerngen.verify.calls.sizes import Fitting, meeting
from kerngen.verify.campaign import given_of, reference_way
from kerngen.verify.effort import Effort
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.meaning.values import FLOATS, blank_array, cloned, fill, integers
from kerngen.verify.subjects import subjects
from kerngen.verify.ways import Way, ways
from tests.compile import library_of
from tests.verify.patches import nothing

COUNT = 4000
F32 = Leaf(Scalar.F32)
HALF = Leaf(Scalar.F32, is_half=True)
TOP = float(np.finfo(np.float32).max)
FLOAT_OF: Any = vars(draw)["_float"]


def fitting(subject: Subject) -> Fitting:
    return Fitting(subject, reference_way(subject))


def numbers(kind: str, dtype: Any = np.float32, seed: int = 5) -> Any:
    array = np.zeros(COUNT, dtype)
    fill(HALF if dtype == np.float16 else F32, array, (kind, "any"), seed, 1)
    return array


RANGES = {
    "whole": (0, 3),
    "even": (0.5, 1.5),
    "positive": (np.exp(-3), np.exp(3)),
    "close": (999, 1001),
    "unit": (0, 1),
    "spread": (2.0**-12, 2.0**12),
    "tiny": (2.0**-149, 2.0**-110),
    "huge": (2.0**40, 2.0**127),
}
"""The magnitudes of each kind of numbers, and whether they have signs."""

SIGNED = {"whole", "even", "spread", "tiny", "huge"}


@pytest.mark.parametrize("kind", RANGES)
def test_floats_fill_the_range_of_their_kind(kind: str) -> None:
    drawn = numbers(kind).astype(np.float64)
    low, high = RANGES[kind]
    sizes = np.abs(drawn)
    assert sizes.min() >= low * (1 - 1e-6)
    assert sizes.max() <= high * (1 + 1e-6)
    tried = np.log2(sizes[sizes > 0]) if high > 2**10 * low > 0 else sizes
    ends = np.log2([low, high]) if high > 2**10 * low > 0 else np.array([low, high])
    room = 0.02 * (ends[1] - ends[0])
    assert tried.min() <= ends[0] + room
    assert tried.max() >= ends[1] - room
    assert (drawn < 0).any() == (kind in SIGNED)
    if kind in SIGNED:
        assert abs(np.sign(drawn).mean()) < 0.1
    assert not np.array_equal(drawn, numbers(kind, seed=6))


def test_whole_numbers_are_whole_and_all_there() -> None:
    assert {*numbers("whole").tolist()} == {-3, -2, -1, 0, 1, 2, 3}


def test_special_numbers_are_rare_and_all_there() -> None:
    drawn = numbers("special")
    odd = [np.inf, -np.inf, TOP, -TOP, np.float32(1e-45), np.float32(2.0**-126)]
    assert all((drawn == each).any() for each in odd)
    assert np.isnan(drawn).any()
    assert (np.signbit(drawn) & (drawn == 0)).any()
    plain = np.isin(drawn, [-3, -2, -1, 1, 2, 3]) | ((drawn == 0) & ~np.signbit(drawn))
    assert 0.88 < plain.mean() < 0.92
    assert {*drawn[plain].tolist()} == {-3, -2, -1, 0, 1, 2, 3}


def test_ordinary_numbers_are_drawn_more_often() -> None:
    """Whole ones, which are exact, as often as those with a fraction."""
    kinds: list[str] = vars(draw)["_KINDS"]
    often = Counter(kinds)
    assert {*often} == {*FLOATS}
    whole, even, positive = (often.pop(kind) for kind in ("whole", "even", "positive"))
    assert whole == even > positive > 1
    assert {*often.values()} == {1}


def test_huge_halves_are_finite_as_a_rule() -> None:
    drawn = numbers("huge", np.float16)
    assert np.isfinite(drawn).mean() > 0.9
    assert np.abs(drawn[np.isfinite(drawn)]).max() > 2.0**14


def whole(kind: str, bound: int, storage: Storage) -> Any:
    return integers(np.random.default_rng(3), (COUNT,), kind, bound, storage)


def test_integers_of_each_kind() -> None:
    places = whole("places", 5, Storage.I32)
    assert {*places.tolist()} == {-1, 0, 1, 2, 3, 4, 5, 6}
    assert 0.02 < np.isin(places, [-1, 5, 6]).mean() < 0.08
    assert {*whole("places", 0, Storage.I32).tolist()} == {-1, 0, 1}
    assert {*whole("few", 5, Storage.I32).tolist()} == {-2, -1, 0, 1, 2}
    assert {*whole("few", 5, Storage.U32).tolist()} == {0, 1, 2}
    ends = [-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1]
    assert sorted({*whole("ends", 5, Storage.I32).tolist()}) == ends
    assert sorted({*whole("ends", 5, Storage.U32).tolist()}) == [
        *(0, 1, 2**32 - 2, 2**32 - 1)
    ]
    every = whole("any", 5, Storage.I32)
    assert every.min() < -(2**31) * 0.99
    assert every.max() > 2**31 * 0.99
    assert whole("any", 5, Storage.U32).max() > 2**32 * 0.99
    assert sorted({*whole("ends", 5, Storage.I4).tolist()}) == [-8, -7, -1, 0, 1, 6, 7]
    assert {*whole("any", 5, Storage.U4).tolist()} == {*range(16)}
    assert {*whole("any", 5, Storage.I8).tolist()} == {*range(-128, 128)}


def test_floats_and_integers_are_filled_by_their_own_kinds(
    known: dict[str, Subject],
) -> None:
    subject = known["pairs"]
    (_, tensor), (_, spec) = inputs_of(subject.kernel), subject.runtime.inputs
    array = blank_array(spec.element, (400,))
    fill(tensor.memory, array, ("close", "few"), 1, 1)
    assert np.abs(array["near"] - 1000).max() <= 1
    assert {*array["count"].tolist()} == {-2, -1, 0, 1, 2}
    behind = array.view(np.uint8).reshape(400, -1)[:, -4:]
    behind[:] = 7
    clean = cloned(tensor.memory, array)
    assert all((clean[name] == array[name]).all() for name in array.dtype.names or ())
    assert (clean.view(np.uint8).reshape(400, -1)[:, -4:] == 0).all()


def test_arrays_of_leaves_have_components_behind(known: dict[str, Subject]) -> None:
    spec = known["matrices"].runtime.inputs[0]
    assert blank_array(spec.element, (5,)).shape == (5, 2, 3)
    pair = known["pairs"].runtime.inputs[1]
    assert blank_array(pair.element, (5,)).shape == (5,)


# Lengths


def test_lengths_of_every_kind_are_tried_with_any_schedule(
    known: dict[str, Subject],
) -> None:
    tried = {*fitting(known["summed"]).telling}
    assert {0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 67, 131} <= tried
    assert not tried & {6, 9, 12, 14, 30, 66, 68, 130, 132}


def test_lengths_beside_those_of_a_schedule_are_tried(
    known: dict[str, Subject],
) -> None:
    subject = known["blocks"]
    tiles = Case("gemm_tile48x96_micro1", (), needs=Needs(invocations=320))
    way = Way(subject.runtime, "c", tiles, Case("", ()))
    tried = Fitting(subject, way).telling
    assert {47, 48, 49, 95, 96, 97, 319, 320, 321, 63, 64, 65, 255, 256, 257} <= {
        *tried
    }
    assert {0, 1, 2, 3, 7} <= {*tried}
    assert list(tried) == sorted({*tried})
    long = replace(way, strategy=Case("reduce1024_by1026", ()))
    tried = Fitting(subject, long).telling
    assert {1023, 1024, 1025} <= {*tried}
    assert max(tried) == 1025


def test_lengths_that_a_kernel_refuses_are_changed(known: dict[str, Subject]) -> None:
    windowed = fitting(known["windowed"])
    assert windowed.names == ("n",)
    assert windowed.lengths((("n", 1),)) is None
    assert not windowed.suits((("n", 1),))
    assert windowed.near((("n", 5),)) == (("n", 5),)
    mended = windowed.near((("n", 1),))
    assert mended is not None
    assert windowed.suits(mended)
    assert windowed.near((("n", 1),)) is mended  # known from before


def test_a_call_is_as_large_as_its_largest_sum_or_tensor(
    known: dict[str, Subject],
) -> None:
    assert fitting(known["blocks"]).cost({"m": 6, "n": 7}) == 42
    assert fitting(known["ordered"]).cost({"n": 9}) == 9
    assert fitting(known["before"]).cost({"n": 9}) == 9
    assert fitting(known["pairs"]).cost({"n": 9}) == 27
    both = fitting(known["matrices"])
    assert both.suits((("n", 65536),))
    assert not both.suits((("n", 65537),))


def test_a_way_takes_its_own_lengths_alone(known: dict[str, Subject]) -> None:
    subject = known["blocks"]

    even = all_of(divides(4, Symbol("m")), compare(">", Symbol("n"), 100))
    way = replace(reference_way(subject), variant=Case("", (), when=even))
    given = Fitting(subject, way)
    assert not given.suits((("m", 3), ("n", 200)))
    mended = dict(given.near((("m", 3), ("n", 200))) or ())
    assert mended == {"m": 4, "n": 200}
    never = replace(way, variant=Case("", (), when=NEVER))
    assert Fitting(subject, never).near((("m", 3), ("n", 5))) is None


def test_lengths_are_changed_as_a_variant_wants_them(known: dict[str, Subject]) -> None:
    """What it asks of lengths that follow from others is left to them."""
    lag, n = Symbol("lag"), Symbol("n")
    wanted = all_of(compare("==", lag, 77), compare("==", n, 211))
    way = replace(reference_way(known["lagged"]), variant=Case("", (), when=wanted))
    found = Fitting(known["lagged"], way).near((("n", 5), ("lag", 0)))
    assert dict(found or ()) == {"n": 211, "lag": 77}
    never = replace(way, variant=Case("", (), when=all_of(wanted, compare("<", n, 9))))
    assert Fitting(known["lagged"], never).near((("n", 5), ("lag", 0))) is None
    kernel = known["lagged"].runtime
    others = all_of(wanted, compare("==", Symbol("derived"), 3))
    assert meeting(kernel, {"n": 5, "lag": 0}, others) == {"n": 211, "lag": 77}


def test_candidates_are_ever_less_like_what_was_drawn(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths_module, "_TRIES", 60)
    found = fitting(known["blocks"])
    first, *others = found.candidates((("m", 0), ("n", 1300)))
    assert first == (("m", 0), ("n", 1300))
    made = [dict(each) for each in others]
    assert made[:6] == [
        *({"m": 0, "n": 1300}, {"m": 1, "n": 1300}),
        *({"m": 0, "n": 1300}, {"m": 4, "n": 1300}),
        *({"m": 0, "n": 1408}, {"m": 128, "n": 1408}),
    ]
    assert {"m": 0, "n": 1024} in made
    assert {"m": 0, "n": 8} in made
    random = made[-60:]
    assert {each["m"] for each in random} >= {0, 1, 2, 3, 5}
    assert any(each["n"] == 8 for each in random)
    assert all(each["m"] <= 64 * 8 for each in random)


def test_caps_come_one_after_the_other_then_random_lengths(
    known: dict[str, Subject],
) -> None:
    """Each cap is tried as it is and in multiples of 4 and 128, with and without an axis of 0."""
    first, *others = fitting(known["blocks"]).candidates((("m", 0), ("n", 9000)))
    made = [dict(each) for each in (first, *others)]
    assert len(made) == 1 + 36 + 400
    assert made[0]["n"] == 9000
    assert [each["n"] for each in made[1:37:6]] == [5000, 1024, 256, 64, 16, 8]
    # From the shortest cap on, random ones: those in turn, and up to eight times as long.
    single, several = made[38::2], made[37::2]
    ladder = {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 18, 20, 32, 64}
    assert {each["m"] for each in single} == {0, *ladder}
    assert {each["n"] for each in single} == {8, *ladder}
    assert {each["m"] // 64 for each in several} >= {0, 1, 2, 3, 4}
    assert 64 * 4 <= max(each["m"] for each in several) <= 64 * 8
    assert 0.3 < sum(each["m"] == 0 for each in made[37:]) / 400 < 0.7


def test_scalars_that_lengths_depend_on_are_small(known: dict[str, Subject]) -> None:
    lagged = fitting(known["lagged"])
    found = map(dict, lagged.candidates((("lag", 9), ("n", 20))))
    # Where `n` is short, `lag` is changed to be shorter.
    lags = [each["lag"] for each in found if each["n"] > 9]
    assert {*lags} == {0, 1, 2, 3, 4, 9}
    assert all(isinstance(lag, int) for lag in lags)


def test_the_longest_axis_is_one_at_least() -> None:
    assert lengths_module.longest(()) == 1
    assert lengths_module.longest((("m", 0),)) == 1
    assert lengths_module.longest((("m", 3), ("n", 2))) == 3


def test_scalars_are_any_numbers_up_to_a_hundred(known: dict[str, Subject]) -> None:
    parameter, *_ = known["summed"].kernel.parameters
    floats = FLOAT_OF(parameter)
    for low, high in ((-99.0, -50.0), (-50.0, -10.0), (10.0, 50.0), (50.0, 99.0)):

        def within(x: float, low: float = low, high: float = high) -> bool:
            return low <= x <= high

        assert within(find(floats, within))
    with pytest.raises(NoSuchExample):
        find(floats, lambda x: abs(x) > 100)


# Calls


def test_calls_are_drawn_that_a_kernel_takes(known: dict[str, Subject]) -> None:
    found: list[Drawn] = []
    given = fitting(known["summed"])
    # Which are drawn depends on the modules that are loaded: Hypothesis tries their constants.
    Effort(60, 1).hold("summed", given, found.append)
    assert len(found) >= 60
    assert all(given.suits(each.sizes) for each in found)
    assert {each.arrangement for each in found} == {*ARRANGEMENTS}
    assert {each.turn for each in found} == {0, 1, 2, 3, 4}
    assert {kind for each in found for kind, _ in each.kinds} == {*FLOATS}
    floats = {each.scalars[0] for each in found}
    assert 2.5 in floats
    assert floats & {1.0, 0.5, 2.0, 0.0, -2.5, 0.3, 1e-8, 1e-3, 100.0}
    signed = [each.scalars[1] for each in found]
    assert min(signed) < 0
    assert all(type(each) is int for each in signed)
    assert all(isinstance(each.scalars[2], tuple) for each in found)
    counts = [each.scalars[3] for each in found]
    assert min(counts) >= 0
    assert all(-(2**31) <= each < 2**31 for each in signed)


def test_a_way_without_lengths_has_no_calls(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengths_module, "_TRIES", 4)
    never = replace(reference_way(known["blocks"]), variant=Case("", (), when=NEVER))
    with pytest.raises(Unsatisfiable):
        Effort(3, 0).hold("blocks", Fitting(known["blocks"], never), nothing)


def drawn(sizes: tuple[tuple[str, int], ...], **changed: Any) -> Drawn:
    plain = Drawn(sizes, (), (("whole", "few"),) * 3, (1,) * 3, 1, "apart", 2)
    return replace(plain, **changed)


def test_inputs_differ_unless_they_are_to_be_one(known: dict[str, Subject]) -> None:
    given = fitting(known["called"])
    apart = drawn((("n", 50),)).arrays(given)
    assert [each.shape for each in apart] == [(50,), (50,)]
    assert not np.array_equal(apart[0], apart[1])
    one = drawn((("n", 50),), arrangement="the same").arrays(given)
    assert one[0] is one[1]
    made = given_of(drawn((("n", 50),)), given)
    assert (made.sizes, made.arrangement, made.turn) == ((("n", 50),), "apart", 2)
    assert all(map(np.array_equal, made.arrays, apart))


def test_inputs_that_can_be_one_are_only_read_and_alike(
    known: dict[str, Subject],
) -> None:
    def pairs(name: str, *lengths: int) -> list[tuple[int, int]]:
        given = fitting(known[name])
        arrays: list[Any] = [np.zeros(length, np.float32) for length in lengths]
        return twins(given, arrays)

    assert pairs("called", 4, 4) == [(0, 1)]
    assert pairs("called", 4, 5) == []
    assert pairs("alike", 4, 4, 4) == [(0, 1), (0, 2)]  # each with the first
    assert pairs("ordered", 4, 4, 4) == []  # the others are written
    assert pairs("gathered", 4, 4, 4) == []  # of other elements


def test_a_plain_call_repeats_a_few_whole_numbers(known: dict[str, Subject]) -> None:
    subject = known["summed"]
    plain = canned_call(fitting(subject))
    assert plain is not None
    assert dict(plain.sizes) == {"m": 4, "n": 4}
    assert plain.scalars == (2.5, 3, (1.0, 1.0), 1)
    given = call_at(fitting(subject), (("m", 3), ("n", 200)))
    x, p, b, h = given.arrays
    assert (x.shape, p.shape, b.shape, h.shape) == ((3, 200), (200,), (200,), (200,))
    flat = x.reshape(-1)
    assert {*flat.tolist()} == {-3, -2, -1, 0, 1, 2, 3}
    assert (flat[PERIOD:] == flat[: flat.size - PERIOD]).all()
    assert b.max() == 3
    assert b.min() == 0
    assert (b == np.abs(flat[:200])).all()
    assert {*p["count"].tolist()} == {-3, -2, -1, 0, 1, 2, 3}


def test_no_plain_call_is_made_where_no_lengths_suit(
    known: dict[str, Subject],
) -> None:
    subject = known["blocks"]
    way = replace(reference_way(subject), variant=Case("", (), when=NEVER))
    assert canned_call(Fitting(subject, way)) is None
    assert [*overlaps(Fitting(subject, way))] == []


def pairs_of(subject: Subject) -> set[tuple[str, str]]:
    names = [tensor.name for tensor in subject.runtime.tensors]
    given = [each.overlapping for each in overlaps(fitting(subject))]
    return {(names[each[0]], names[each[1]]) for each in given if each}


def test_tensors_that_may_not_be_one_are_passed_as_one(
    known: dict[str, Subject],
) -> None:
    assert pairs_of(known["ordered"]) == {
        *(("x", "b"), ("x", "a"), ("b", "a")),
        *((first, out) for first in ("x", "b", "a") for out in ("z", "y")),
    }
    assert pairs_of(known["called"]) == {("x", "z"), ("y", "z")}
    assert pairs_of(known["windowed"]) == set()
    assert pairs_of(known["blocks"]) == {("x", "s")}
    assert pairs_of(known["halves"]) == {("x", "z")}


# Ways


def dispatch(name: str) -> Dispatch:
    return Dispatch(name, (), ONE)


def stage(names: str, **cases: Sequence) -> Choice:
    """Return a choice of some stages: all cases but the last are guarded."""
    *guarded, last = (Case(name, body) for name, body in cases.items())
    when = compare("<", Symbol("n"), 8)
    return Choice((*(replace(c, when=when) for c in guarded), last), (*names,))


def by_lengths(*names: str) -> Choice:
    """Return a choice by lengths between dispatches."""
    *guarded, last = (Case(name, (dispatch(name),)) for name in names)
    when = divides(4, Symbol("n"))
    return Choice((*(replace(c, when=when) for c in guarded), last))


TREE: Sequence = (
    stage("a", one=(dispatch("a1"),), two=(by_lengths("a4", "a5"),)),
    stage(
        "bc",
        apart=(
            by_lengths("b4", "b5"),
            stage("c", c1=(dispatch("c1"),), c2=(dispatch("c2"),)),
        ),
        both=(by_lengths("bc4", "bc5"),),
    ),
)
"""Stages a, b and c: b runs with c, or c has a choice of its own."""

RUNS = {
    "a one": "a1 bc4 bc5",
    "a two a4": "a4 bc4 bc5",
    "a two a5": "a5 bc4 bc5",
    "b apart b4": "a4 a5 b4 c2",
    "b apart b5": "a4 a5 b5 c2",
    "c c1": "a4 a5 b4 b5 c1",
    "c c2": "a4 a5 b4 b5 c2",
    "b both bc4": "a4 a5 bc4",
    "b both bc5": "a4 a5 bc5",
}
"""The dispatches that each way leaves: all variants of the other stages' last cases."""


def test_a_way_forces_one_variant_and_leaves_the_rest_as_usual(
    known: dict[str, Subject],
) -> None:
    every = ways(replace(known["summed"].runtime, read_body=lambda: TREE))
    found = {
        str(way): " ".join(d.wgsl for d in dispatches_in(way.kernel.body))
        for way in every
    }
    assert found == RUNS
    for way in every:
        assert stages_of(way.kernel.body) == ("a", "b", "c")
        for choice in choices_in(way.kernel.body):
            assert [case.when for case in choice.cases] == [ALWAYS] or not choice.stages


def test_ways_take_the_lengths_of_their_variants(known: dict[str, Subject]) -> None:
    takes = {
        str(way): [n for n in (7, 8) if way.takes({"n": n})]
        for way in ways(replace(known["summed"].runtime, read_body=lambda: TREE))
    }
    assert {name for name, taken in takes.items() if taken == [8]} == {
        "a two a4",
        "b apart b4",
        "b both bc4",
    }
    assert all(taken == [7, 8] for name, taken in takes.items() if name[-1] != "4")


def test_a_strategy_in_several_choices_is_one_way(known: dict[str, Subject]) -> None:
    c = stage("c", c1=(dispatch("c1"),), c2=(dispatch("c2"),))
    tree = (stage("bc", b1=(dispatch("b1"), c), b2=(dispatch("b2"), c)),)
    every = ways(replace(known["summed"].runtime, read_body=lambda: tree))
    assert [*map(str, every)] == ["b b1", "c c1", "c c2", "b b2"]


def test_the_ways_of_a_kernel_have_all_its_dispatches(
    known: dict[str, Subject],
) -> None:
    for subject in known.values():
        kernel = subject.runtime
        forced = {d for way in ways(kernel) for d in dispatches_in(way.variant.body)}
        assert forced == {*dispatches_in(kernel.body)}


def test_a_way_takes_more_lengths_than_those_where_it_is_fast(
    known: dict[str, Subject],
) -> None:
    """But no empty axis where its strategy takes none."""
    m, n = Symbol("m"), Symbol("n")
    filled = compare(">", n, 0)
    for when in (filled, all_of(compare(">", m, 64), filled)):
        way = replace(reference_way(known["blocks"]), strategy=Case("gemm", (), when))
        assert way.takes({"m": 1, "n": 1})
        assert not way.takes({"m": 100, "n": 0})
    fast = replace(way, strategy=Case("gemm", (), compare(">", n, 1)))
    assert fast.takes({"m": 1, "n": 0})


def calls_drawn(subject: Subject) -> list[Drawn]:
    found: list[Drawn] = []
    Effort(15, 1).hold(subject.kernel.name, fitting(subject), found.append)
    return found


def test_scalars_that_decide_lengths_are_drawn_once(known: dict[str, Subject]) -> None:
    """Places of integers are below some length of their call."""
    found = calls_drawn(known["lagged"])
    for each in found:
        sizes = dict(each.sizes)
        assert each.scalars == (sizes["lag"],)
        assert {*each.bounds} <= {*sizes.values()}
    assert len({each.bounds for each in found}) > 2


def test_calls_without_lengths_are_drawn() -> None:
    text = "kernel f(x: f32[3], k: u32) -> y: f32[3] { y[i] = x[i] * f32(k); }"
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = found["a.kern"]
        drawn_calls = calls_drawn(subject)
        assert {(each.sizes, each.bounds) for each in drawn_calls} == {((), (1,))}


def test_nothing_is_gathered_from_an_empty_axis(known: dict[str, Subject]) -> None:
    """The kernel refuses such a call, unless it gathers nothing."""
    given = fitting(known["gathered"])
    assert given.lengths((("m", 1), ("n", 0))) is None
    assert given.lengths((("m", 0), ("n", 0))) is not None


def test_no_call_writes_beyond_an_axis(known: dict[str, Subject]) -> None:
    """Rows of `put` begin at a scalar."""
    given = fitting(known["put"])

    def is_taken(row: int) -> bool:
        sizes = {"a": 5, "b": 2, "n": 3, "row": row}
        return given.lengths(tuple(sizes.items())) is not None

    assert [is_taken(row) for row in (-1, 0, 2, 3)] == [False, True, True, False]
