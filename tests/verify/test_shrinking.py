"""Calls that fail become short and plain."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from kerngen.verify.calls import shrink
from kerngen.verify.calls.canned_calls import call_at
from kerngen.verify.calls.shrink import plainer
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.subjects import subjects
from kerngen.verify.trial import Given
from tests.compile import library_of
from tests.verify.results import given_of


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


def test_a_tensor_without_axes_is_not_cut() -> None:
    text = "kernel f(x: f32[n], s: f32[]) -> y: f32[n] { y[i] = s * x[i]; }"
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = found["a.kern"]
        fitting = Fitting(subject, reference_way(subject))
        arrays = np.ones(9, np.float32), np.ones((), np.float32)
        given = Given((("n", 9),), arrays, ())
        plain = plainer(given, fitting, lambda each: bool(each.arrays[1].any()))
    assert [each.tolist() for each in plain.arrays] == [[0], 1]


def test_numbers_of_structs_become_0_one_by_one(known: dict[str, Subject]) -> None:
    fitting = Fitting(known["pairs"], reference_way(known["pairs"]))
    plain = call_at(fitting, (("n", 3),))
    pairs = plain.arrays[1].copy()
    pairs["near"], pairs["far"], pairs["count"] = 1.5, 2.5, 3

    def fails(candidate: Given) -> bool:
        tried = candidate.arrays[1]
        return len(tried) == 3 and tried["far"][1, 2] == 2.5 and tried["count"][2] == 3

    given = replace(plain, arrays=(plain.arrays[0], pairs))
    _, found = plainer(given, fitting, fails).arrays
    assert not found["near"].any()
    assert found["far"].tolist() == [[0, 0, 0], [0, 0, 2.5], [0, 0, 0]]
    assert found["count"].tolist() == [0, 0, 3]


def test_no_plainer_call_is_looked_for_after_a_while(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes a second here, and there are hundreds to try."""
    seconds = count(100)
    now = [next(seconds)]
    monkeypatch.setattr(time, "monotonic", lambda: now[-1])

    def fails(_: Given) -> bool:
        now.append(next(seconds))
        return False

    fitting = Fitting(known["called"], reference_way(known["called"]))
    given = given_of([range(1, 31), range(1, 31)])
    assert plainer(given, fitting, fails) is given
    assert 5 < len(now) < 15
