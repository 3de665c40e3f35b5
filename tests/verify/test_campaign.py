"""Campaigns: how ways share the time, and which calls belong to a seed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.plan.size import Symbol
from kerngen.plan.tree import Case, Dispatch
from kerngen.verify import campaign, large, verify
from kerngen.verify.calls.canned_calls import call_at
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import Campaign, blank_result
from kerngen.verify.effort import SPENT, Effort, StopError
from kerngen.verify.fault import LOST, Fault, WrongError
from kerngen.verify.large import MOST_GROUPS, check_large, large_sizes
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.result import Counterexample, Verdict, WayResult
from kerngen.verify.subjects import subjects
from kerngen.verify.trial import Given, Trial, refer
from kerngen.verify.ways import ways
from tests.compile import library_of
from tests.verify.patches import always, nothing, raising

SCALE = "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = 0.3 * x[i]; }"
GRADIENT = f"{SCALE}\nkernel scale_gradient = gradient of scale by x;"


def test_each_way_has_its_share_of_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[int] = []
    shared = Effort.shared

    def noted(self: Effort, ways: int) -> Effort:
        left.append(ways)
        return shared(self, ways)

    monkeypatch.setattr(Effort, "shared", noted)
    verify(SCALE, examples=1)
    assert left == [*range(len(left), 0, -1)]
    assert len(left) > 1


def test_a_seed_makes_other_calls_than_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Differences are taken by calls 6, 7 and 8 for seed 2 with three examples each."""
    seeds: list[int] = []

    def noted(_: object, seed: int) -> None:
        seeds.append(seed)

    monkeypatch.setattr("kerngen.verify.campaign._difference", noted)
    report = verify(GRADIENT, kernel="scale_gradient", seed=2, examples=3)
    assert seeds == [6, 7, 8]
    assert report["seed"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "kernel put(mut m: f32[a, b], x: f32[b], row: u32) { m[row, j] = 0.3 * x[j]; }",
        "kernel halve(x: f32[n]) -> y: f16[n] { y[i] = x[i] / 3.0; }",
        "kernel longer(x: vec3f[n], s: f32) -> y: vec3f[n] { y[i] = max(x[i], vec3f(s)); }",
    ],
)
def test_what_kernels_mean_is_known(text: str) -> None:
    """Each way is held, and most elements were compared."""
    report = verify(text, examples=3)
    for row in report["results"]:
        assert row["verdict"] == "held", row
        assert row["known"] >= 0.6 * row["elements"], row


# Parts of a campaign, without a device

SIZES = (("n", 300),)
X = np.arange(300, dtype=np.float32)
PRIVATE: Any = vars(Campaign)


def blank_of(subject: Subject, number: int = 0) -> tuple[WayResult, Trial]:
    way = ways(subject.runtime)[number]
    device: Any = SimpleNamespace(ctx=SimpleNamespace(max_tensor_bytes=1 << 30))
    result = blank_result("a.kern", subject, way)
    return result, Trial(device, Fitting(subject, way), result.tally)


@pytest.fixture
def large_call(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[WayResult, Campaign]]:
    """What makes a large call of `alike` that ends in some way."""
    monkeypatch.setattr(campaign, "large_sizes", always(SIZES))
    monkeypatch.setattr(campaign, "expected_seconds", always(20.0))

    def make(
        check: Callable[..., Any], soon: float = 60.0, why: str = ""
    ) -> tuple[WayResult, Campaign]:
        monkeypatch.setattr(campaign, "check_large", check)
        result, trial = blank_of(known["alike"])
        effort = Effort(3, 0, soon=time.monotonic() + soon)
        run = Campaign(trial.guarded, effort)
        found = PRIVATE["_large"](run, replace(result, why=why), trial, effort)
        again = PRIVATE["_large"](run, result, trial, effort)
        assert (again is result) == (soon >= 5.0)  # it is made once
        return found, run

    return make


@pytest.mark.parametrize(
    ("check", "soon", "why", "cut"),
    [
        (nothing, 60.0, "", False),
        (nothing, 3.0, SPENT, True),
        (nothing, 10.0, SPENT, True),  # it would take 20 seconds
        (raising(StopError(SPENT)), 60.0, SPENT, True),
        (raising(KeyboardInterrupt()), 60.0, "interrupted", True),
        (raising(gpu.LimitError("too large")), 60.0, "too large", False),
    ],
)
def test_a_large_call_is_made_or_the_reason_is_told(
    large_call: Callable[..., tuple[WayResult, Campaign]],
    check: Callable[..., Any],
    soon: float,
    why: str,
    cut: bool,
) -> None:
    found, run = large_call(check, soon)
    assert (found.verdict, found.cut) == (Verdict.HELD, cut)
    assert found.why == (f"but no large call: {why}" if why else "")
    assert found.large == (() if why else SIZES)
    assert run.interrupted == (why == "interrupted")
    before, _ = large_call(check, soon, "but not all: no f16")
    assert (before.why, before.cut) == ("but not all: no f16", cut)


def test_a_large_call_may_be_wrong(
    large_call: Callable[..., tuple[WayResult, Campaign]],
) -> None:
    found, _ = large_call(raising(WrongError(Fault("value", "it is wrong"))))
    assert found.verdict is Verdict.WRONG
    assert found.counterexample is not None
    assert found.counterexample.given.sizes == SIZES
    assert found.counterexample.fault.text == "it is wrong"


def test_a_large_call_is_held_to_elements_computed_where_they_are_read(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is what all elements read: the sum `s` of `weighted`."""
    _, trial = blank_of(known["weighted"])
    given = call_at(trial.fitting, (("m", 2000), ("n", 3)))
    right = refer(trial.fitting.kernel, given)
    assert [each.shape for each in right] == [(), (2000,)]
    monkeypatch.setattr(Trial, "run", always(right))
    check_large(trial, given)
    assert (trial.tally.cases, trial.tally.elements) == (1, 1 + 4 + 400)
    monkeypatch.setattr(Trial, "run", always([right[0], right[1] + np.eye(2000)[1999]]))
    with pytest.raises(WrongError, match=r"^y\[1999\] is ") as raised:
        check_large(trial, given)
    assert raised.value.fault.place == (1999,)
    monkeypatch.setattr(Trial, "run", always([right[0] + 1, right[1]]))
    with pytest.raises(WrongError, match=r"^s is 4.0, not 3"):
        check_large(trial, given)
    assert trial.tally.cases == 1


def test_every_variant_has_a_large_call(
    known: dict[str, Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those for multiples of 4 the length is a multiple of 4."""
    monkeypatch.setattr(large, "MOST_ELEMENTS", 1 << 28)
    found = {
        result.variant: dict(large_sizes(trial) or ())
        for result, trial in map(blank_of, [known["named"]] * 2, range(2))
    }
    assert found.keys() == {"aligned", "edge"}
    assert all(each["n"] > MOST_GROUPS * 64 for each in found.values()), found
    assert found["aligned"]["n"] % 4 == 0


def test_the_largest_of_several_dispatches_counts() -> None:
    """Its workgroups are those that are folded."""
    body = tuple(Dispatch(name, (), Symbol(name)) for name in ("few", "many", "one"))
    variant = Case("", body)
    lengths = {"few": 5, "many": 70_000, "one": 1}
    fitting: Any = SimpleNamespace(
        lengths=always(lengths), way=SimpleNamespace(variant=variant)
    )
    assert vars(large)["_groups"](fitting, SIZES) == 70_000


def test_the_simplest_call_with_a_fault_of_the_same_kind_is_returned(
    known: dict[str, Subject],
) -> None:
    result, trial = blank_of(known["called"], 1)
    given = Given(SIZES, (X, X), ())
    plainest = partial(
        PRIVATE["_plainest"],
        Campaign(trial.guarded, Effort(3, 0)),
        fitting=trial.fitting,
    )

    def run(candidate: Given) -> None:
        if len(candidate.arrays[0]) < 9:
            raise WrongError(Fault("outside", "it wrote"))
        if len(candidate.arrays[0]) < 10:
            raise gpu.LimitError("too short")
        raise WrongError(Fault("value", f"{len(candidate.arrays[0])} are wrong"))

    first = Counterexample(given, Fault("value", "300 are wrong"))
    found = plainest(run=run, found=first, unsteady=False)
    assert (found.given.sizes, found.fault.text) == ((("n", 10),), "10 are wrong")
    assert plainest(run=run, found=first, unsteady=True) == replace(
        first, unsteady=True
    )
    lost = Counterexample(given, Fault(LOST, "it is lost"))
    assert plainest(run=run, found=lost, unsteady=False) == lost
    assert result.tally.cases == 0


def test_ctrl_c_ends_the_search_for_a_simpler_call(known: dict[str, Subject]) -> None:
    _, trial = blank_of(known["called"])
    given = Given(SIZES, (X, X), ())
    first = Counterexample(given, Fault("value", "it is wrong"))
    run = Campaign(trial.guarded, Effort(3, 0))
    stop = raising(KeyboardInterrupt())
    found = PRIVATE["_plainest"](run, stop, trial.fitting, first, unsteady=False)
    assert found is first
    assert run.interrupted
    # Nothing more is tried then.
    assert PRIVATE["_plainest"](run, nothing, trial.fitting, first, unsteady=False) == (
        first
    )


@pytest.mark.parametrize(
    ("end", "why"), [(StopError(SPENT), SPENT), (KeyboardInterrupt(), "interrupted")]
)
def test_differences_that_are_cut_off_are_told(
    known: dict[str, Subject],
    monkeypatch: pytest.MonkeyPatch,
    end: BaseException,
    why: str,
) -> None:
    monkeypatch.setattr(campaign, "_difference", raising(end))
    blank, trial = blank_of(known["alike"])
    run = Campaign(trial.guarded, Effort(3, 0))
    found = PRIVATE["_differences"](run, blank, run.effort)
    assert (found.why, found.cut) == (f"but not all: {why}", True)
    assert run.interrupted == (why == "interrupted")
    monkeypatch.setattr(campaign, "_difference", nothing)
    found = PRIVATE["_differences"](run, blank, run.effort)
    assert (found.verdict, found.why) == (Verdict.UNCALLED, "no call is smooth")


def test_all_calls_of_a_way_that_the_adapter_takes_are_told(
    known: dict[str, Subject],
) -> None:
    """Some may be too large for it, all of them, or none."""
    for most, verdict, why in (
        (np.inf, Verdict.HELD, ""),
        (8, Verdict.HELD, "but not all: too large"),
        (-1, Verdict.NOT_RUN, "too large"),
    ):
        blank, trial = blank_of(known["alike"])

        def run(given: Given, most: float = most, trial: Trial = trial) -> None:
            if len(given.arrays[0]) > most:
                raise gpu.LimitError("too large")
            trial.tally.cases += 1

        whole = Campaign(trial.guarded, Effort(10, 0))
        found = PRIVATE["_held"](whole, blank, trial, run, whole.effort)
        assert (found.verdict, found.why, found.cut) == (verdict, why, False)


def test_gradients_are_known_beside_all_that_their_file_uses() -> None:
    """One may be of a kernel in a file that is used by a file that it uses."""
    texts = {
        "a.kern": "kernel one(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }",
        "b.kern": 'use "a.kern";\n'
        "kernel two(x: f32[n]) -> y: f32[n] { y[i] = 3.0 * x[i]; }",
        "c.kern": 'use "b.kern";\nuse "a.kern";\n'
        "kernel one_gradient = gradient of one by x;\n"
        "kernel two_gradient = gradient of two by x;",
    }
    with subjects(library_of(texts), ["c.kern"]) as found:
        of = {
            x.kernel.name: x.forward and x.forward.kernel.name for x in found["c.kern"]
        }
    assert of == {"one_gradient": "one", "two_gradient": "two"}


def test_a_gradient_is_of_the_kernel_in_its_own_file() -> None:
    """Another file may have one of the same name."""
    texts = {
        f"{name}.kern": SCALE.replace("0.3", factor)
        + "\nkernel scale_gradient = gradient of scale by x;"
        for name, factor in (("a", "0.3"), ("b", "0.5"))
    }
    with subjects(library_of(texts), [*texts]) as found:
        for scale, gradient in found.values():
            assert gradient.forward is scale
