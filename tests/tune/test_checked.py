"""At which sizes results are checked, and what is found there."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from math import prod

import numpy as np
import pytest

from kerngen.bench.arguments import Sizes
from kerngen.bench.measure import SamplingLimits
from kerngen.compiler import Compiler
from kerngen.runtime import Context, ShapeError
from kerngen.runtime.calls.kernel import Kernel
from kerngen.syntax.library import Library
from kerngen.tune import bound
from kerngen.tune.candidates import TuneCandidate
from kerngen.tune.checked import STEPS, all_checked, checked_sizes, shortened
from kerngen.tune.trial import Trials, TrialVerdict, TunedKernel, Version


@pytest.mark.parametrize(
    ("sizes", "small"),
    [
        ({"m": 300, "n": 200}, {"m": 300, "n": 200}),
        ({"m": 4096, "k": 4096, "n": 4096}, {"m": 256, "k": 256, "n": 256}),
        ({"m": 4095, "k": 4097, "n": 4093}, {"m": 255, "k": 257, "n": 253}),
        ({"m": 1, "k": 16384, "n": 16384}, {"m": 1, "k": 4096, "n": 4096}),
        ({"n": 2**28}, {"n": 2**24}),
        ({"b": 255, "h": 255, "w": 255, "c": 64}, {"b": 63, "h": 63, "w": 63, "c": 64}),
        (
            dict.fromkeys("abcdefgh", 15),
            dict.fromkeys("abcde", 5) | dict.fromkeys("fgh", 15),
        ),
    ],
)
def test_small_sizes_leave_as_much_over(
    sizes: dict[str, int], small: dict[str, int]
) -> None:
    assert checked_sizes([*sizes], sizes) == small


def test_edges_and_split_axes_are_checked_too() -> None:
    sizes = {"m": 4096, "k": 4096, "n": 4096, "axis": 1}
    checked = all_checked(["m", "k", "n"], sizes)
    assert all(prod(each.values()) <= STEPS for each in checked)
    assert {"m": 64, "k": 4096, "n": 64, "axis": 1} in checked
    assert any(each["k"] == 4097 and each["m"] % 16 == 1 for each in checked)
    assert {"m": 255, "k": 255, "n": 255, "axis": 1} in checked
    alone = all_checked(["m", "n"], {"m": 1, "n": 64})
    assert alone == [{"m": 1, "n": n} for n in (64, 65, 63)]


NAME = "twice.kern"
SOURCE = "kernel twice(x: f32[n]) -> y: f32[n] { y[i] = x[i] + x[i]; }"


def trials_of_twice(ctx: Context, stack: ExitStack) -> Trials:
    """Return trials of the kernel, none made yet."""
    return trials_of(SOURCE, ctx, stack)


def trials_of(source: str, ctx: Context, stack: ExitStack) -> Trials:
    compiler = Compiler(Library.of_text(source, NAME), formatted=False)
    (kernel,) = compiler.module(NAME).kernels
    return Trials(ctx, TunedKernel(compiler, NAME, kernel), "y", stack)


def test_what_is_wrong_at_an_edge_is_wrong(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bound.run

    def faulty(
        ctx: Context,
        kernel: Kernel,
        arrays: list[bound.Array],
        scalars: tuple[object, ...],
    ) -> list[bound.Array]:
        (result,) = run(ctx, kernel, arrays, scalars)
        return [result + (np.arange(len(result)) >= 64)]

    with ExitStack() as stack:
        trials = trials_of_twice(ctx, stack)
        inputs = trials.inputs({"n": 64})
        attempt = trials.attempt(TuneCandidate("map"), {"n": 64}, inputs, 1.0)
        assert attempt.verdict is TrialVerdict.TIMED
        monkeypatch.setattr(bound, "run", faulty)
        attempt = trials.attempt(TuneCandidate("map"), {"n": 64}, inputs, 1.0)
        assert attempt.verdict is TrialVerdict.WRONG
        assert attempt.why == "1 of 65 elements are wrong at n = 65"


DIFFERENCE = """
fn half(a: f32) -> f32 { a / 2.0 }
kernel difference(x: f32[n]) -> y: f32[] {
    host count = f32(n);
    let mean = (sum[i] half(x[i])) / count;
    let squares = (sum[i] half(x[i]) * half(x[i])) / count;
    y = squares - mean * mean;
}
"""


@pytest.mark.parametrize(("off", "verdict"), [(3e-6, "timed"), (1e-3, "wrong")])
def test_where_generic_is_right_by_luck_accuracy_decides(
    off: float, verdict: str, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quotients may be off by 2.5 units of their last place, their difference is small."""

    def lucky(
        ctx: Context,
        kernel: Kernel,
        arrays: list[bound.Array],
        scalars: tuple[object, ...],
    ) -> list[bound.Array]:
        del ctx
        (exact,) = bound.reference(kernel, arrays, scalars)
        plain = trials.version(TuneCandidate("generic"))
        is_plain = isinstance(plain, Version) and plain.kernel is kernel
        return [np.asarray(exact + (0.0 if is_plain else off), np.float32)]

    with ExitStack() as stack:
        trials = trials_of(DIFFERENCE, ctx, stack)
        sizes = {"n": 63}
        inputs = trials.inputs(sizes)
        monkeypatch.setattr(bound, "run", lucky)
        assert trials.attempt(None, sizes, inputs, 1.0).verdict.value == verdict


def test_an_axis_beyond_what_a_loop_may_turn(ctx: Context) -> None:
    """llvmpipe stops loops after 65,500 turns: `generic` is run at shorter axes there."""
    total = "kernel total(x: f32[n]) -> y: f32[] { y = sum[i] x[i]; }"
    with ExitStack() as stack:
        trials = trials_of(total, ctx, stack)
        sizes = {"n": 70_000}
        outcome = trials.attempt(None, sizes, trials.inputs(sizes), 1.0)
        assert (outcome.verdict, outcome.why) == (TrialVerdict.TIMED, "")


def test_a_recurrence_is_held_to_its_present_schedules(ctx: Context) -> None:
    """`generic` fits no recurrence."""
    text = """kernel recur(x: f32[n], a: f32[n]) -> y: f32[n] {
        let h[t] = if t > 0 { a[t] * h[t - 1] + x[t] } else { x[t] };
        y[t] = h[t];
    }"""
    with ExitStack() as stack:
        trials = trials_of(text, ctx, stack)
        sizes = {"n": 1000}
        outcome = trials.attempt(None, sizes, trials.inputs(sizes), 1.0)
        assert (outcome.verdict, outcome.why) == (TrialVerdict.TIMED, "")


def test_shorter_axes_leave_the_same_over() -> None:
    seen: list[Sizes] = [{"m": 3, "n": 70_000}]
    while shorter := shortened(("m", "n"), seen[-1]):
        assert shorter["m"] == 3
        assert shorter["n"] % 256 == 70_000 % 256
        assert seen[-1]["n"] / 3 < shorter["n"] < seen[-1]["n"]
        seen.append(shorter)
    assert seen[-1]["n"] < 512


def test_only_what_may_win_is_kept(ctx: Context) -> None:
    def loaded() -> set[str]:
        return {name for name in sys.modules if name.endswith(".twice")}

    before = loaded()
    with ExitStack() as stack:
        trials = trials_of_twice(ctx, stack)
        inputs = trials.inputs({"n": 64})
        plain, fast = TuneCandidate("generic"), TuneCandidate("map")
        for candidate in (None, plain, fast):
            trials.attempt(candidate, {"n": 64}, inputs, 1.0)
        assert len(loaded() - before) == 3
        trials.keep([fast])
        assert len(loaded() - before) == 3
        times = trials.time([None, fast], {"n": 64}, inputs, SamplingLimits(3, 2, 0.01))
        assert len(times) == 2
        assert all(each > 0 for each in times)
        trials.keep([])
        assert len(loaded() - before) == 2
    assert loaded() == before


def test_what_can_be_checked_nowhere_is_an_error(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise ShapeError(str(len(given)))

    monkeypatch.setattr(bound, "whole_numbers", refuse)
    with ExitStack() as stack:
        trials = trials_of_twice(ctx, stack)
        inputs = trials.inputs({"n": 64})
        with pytest.raises(ShapeError, match="no sizes near n = 64"):
            trials.attempt(None, {"n": 64}, inputs, 1.0)
