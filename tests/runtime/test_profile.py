"""Profiles: what each dispatch took, as events, a table and a trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Context, Event, Profile, StateError, f32
from kerngen.runtime.calls.scalars import check_scalars
from kerngen.runtime.device import tracer
from kerngen.runtime.device.timing import TimestampSlots
from kerngen_kernels import elementwise, reduction
from tests.conftest import open_software_context
from tests.runtime.kernels import ACCUMULATE, internals, launch


def accumulate(ctx: Context, calls: int) -> Any:
    """Add `calls` times 1 to zeros, a dispatch each."""
    total, one = ctx.zeros(10, f32), ctx.vector(np.ones(10), f32)
    for _ in range(calls):
        launch(ACCUMULATE, total, one, factor=1.0)
    return total


def test_every_dispatch_is_an_event(ctx: Context) -> None:
    x = ctx.vector(np.ones(300_000), f32)
    elementwise.relu(x)
    start = perf_counter()
    with ctx.profile() as profile:
        total = reduction.sum(x)
        assert total.item() == 300_000
        elementwise.relu(x)
    took = perf_counter() - start
    elementwise.relu(x)
    first, second, third = profile.events
    assert [each.kernel for each in profile.events] == ["sum", "sum", "relu"]
    choice = ctx.choices(reduction.sum, n=300_000)[0]
    assert (first.shader, second.shader) == choice.shaders
    assert (first.stage, first.strategy) == (choice.stage, choice.strategy)
    assert first.call == second.call != third.call
    assert first.start == 0
    assert all(each.seconds > 0 for each in profile.events)
    for before, after in pairwise(profile.events):
        assert before.start + before.seconds <= after.start
    assert third.start + third.seconds <= took


def test_dispatches_share_a_pass_again_afterwards(ctx: Context) -> None:
    before = ctx.counters.snapshot()
    with ctx.profile():
        accumulate(ctx, 5)
    assert (ctx.counters - before).passes == 5
    total = accumulate(ctx, 5)
    assert (ctx.counters - before).passes == 6
    np.testing.assert_array_equal(total.numpy(), np.full(10, 5))


def test_many_dispatches_take_several_sets_of_queries(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one submission, and in several."""
    monkeypatch.setattr(tracer, "PASSES", 8)
    with ctx.profile() as profile:
        with ctx.batch():
            accumulate(ctx, 20)
        total = accumulate(ctx, 9)
        ctx.submit()
        accumulate(ctx, 3)
    assert len(profile.events) == 32
    starts = [each.start for each in profile.events]
    assert starts == sorted(starts)
    assert len({each.call for each in profile.events}) == 32
    np.testing.assert_array_equal(total.numpy(), np.full(10, 9))


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> list[TimestampSlots]:
    """Return a list of the sets of queries that profiles make from here on, of 8."""
    made: list[TimestampSlots] = []

    def make(device: Any, passes: int) -> TimestampSlots:
        made.append(TimestampSlots(device, passes))
        return made[-1]

    monkeypatch.setattr(tracer, "PASSES", 8)
    monkeypatch.setattr(tracer, "TimestampSlots", make)
    return made


def test_submissions_share_a_set_of_queries(
    ctx: Context, slots: list[TimestampSlots]
) -> None:
    with ctx.profile() as profile:
        for _ in range(10):
            accumulate(ctx, 2)
            ctx.submit()
    assert len(slots) == 3
    assert len(profile.events) == 20
    assert all(each.seconds > 0 for each in profile.events)
    for before, after in pairwise(profile.events):
        assert before.start + before.seconds <= after.start


def test_what_is_lost_leaves_a_gap_in_a_set(slots: list[TimestampSlots]) -> None:
    with open_software_context() as ctx, ctx.profile() as profile:
        accumulate(ctx, 1)
        ctx.submit()
        accumulate(ctx, 3)
        internals(ctx)._recorder.lose()
        accumulate(ctx, 2)
    assert len(slots) == 1
    assert [each.seconds > 0 for each in profile.events] == [True] * 3
    assert profile.events[-1].start < 60


@pytest.mark.parametrize("adapter", ["software", "reference"])
def test_a_context_closed_within_keeps_its_events(adapter: Any) -> None:
    with gpu.open(adapter=adapter) as ctx:
        with ctx.profile() as profile:
            x = ctx.vector(np.ones(1000), f32)
            elementwise.relu(x)
            ctx.submit()
            elementwise.relu(x)
            ctx.close()
        assert [each.kernel for each in profile.events] == ["relu", "relu"]
        assert all(each.seconds > 0 for each in profile.events)


def test_a_profile_submits_within_a_batch(ctx: Context) -> None:
    """At its end only, as `batch()` says; the rest of the batch goes on together."""
    with ctx.batch():
        before = ctx.counters.snapshot()
        with ctx.profile() as profile:
            accumulate(ctx, 3)
            assert (ctx.counters - before).submits == 0
        assert (ctx.counters - before).submits == 1
        accumulate(ctx, 3)
        assert (ctx.counters - before).submits == 1
    assert len(profile.events) == 3


def test_a_profile_of_the_reference_waits_for_other_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that has begun is in it, and its thread meets no profile half ended."""
    began = Signal()

    def slow(*arguments: Any) -> None:
        began.set()
        sleep(0.1)
        check_scalars(*arguments)

    monkeypatch.setattr("kerngen.runtime.numpy_backend.backend.check_scalars", slow)
    with gpu.open(adapter="reference") as ctx:
        x = ctx.vector(np.ones(10), f32)
        thread = Thread(target=elementwise.relu, args=(x,), daemon=True)
        with ctx.profile() as profile:
            thread.start()
            assert began.wait(60)
        thread.join(60)
    assert [each.kernel for each in profile.events] == ["relu"]


def test_a_full_set_of_queries_is_within_the_limits(ctx: Context) -> None:
    with ctx.profile() as profile:
        accumulate(ctx, tracer.PASSES + 1)
    assert len(profile.events) == tracer.PASSES + 1


def test_what_an_error_loses_has_no_events() -> None:
    with open_software_context() as ctx:
        with ctx.profile() as profile:
            accumulate(ctx, 2)
            ctx.submit()
            accumulate(ctx, 3)
            internals(ctx)._recorder.lose()
            accumulate(ctx, 4)
        assert len(profile.events) == 6


@pytest.mark.parametrize("adapter", ["software", "reference"])
def test_blocks_do_not_nest(adapter: Any) -> None:
    with gpu.open(adapter=adapter) as ctx:
        with ctx.profile() as profile:
            for block in (ctx.profile, ctx.timed):
                with pytest.raises(StateError, match="within a profile"):
                    block().__enter__()
            with pytest.raises(StateError, match="not ended"):
                _ = profile.events
            assert "open" in repr(profile)
        with ctx.timed(), pytest.raises(StateError, match="needs a profile"):
            ctx.profile().__enter__()
        assert profile.events == ()
        assert profile.table().splitlines()[-1].split() == ["total", "0", "0.00", "us"]


def test_the_reference_is_timed_call_by_call() -> None:
    with gpu.open(adapter="reference") as ctx:
        x = ctx.vector(np.ones(100_000), f32)
        with ctx.profile() as profile:
            reduction.sum(x)
            elementwise.relu(x)
    first, second = profile.events
    assert [first.kernel, second.kernel] == ["sum", "relu"]
    assert {first.strategy, second.strategy} == {"reference"}
    assert 0 <= first.start < first.start + first.seconds <= second.start


def made(events: tuple[Event, ...]) -> Profile:
    """A profile with events of our own."""
    profile = Profile("an adapter")
    profile.finish(events)
    return profile


EVENTS = (
    Event("sum", "s", "reduce", "sum.parts", 7, 0.0, 3e-4),
    Event("sum", "s", "reduce", "sum.join", 7, 3e-4, 1e-6),
    Event("relu", "y", "map", "relu.map", 8, 0.0004, 1.5),
    Event("sum", "s", "reduce", "sum.parts", 9, 2.0, 5e-4),
    Event("sum", "s", "reduce", "sum.join", 9, 2.0005, 3e-6),
)
TABLE = """\
kernel  shader     calls   total    mean  share
relu    relu.map       1  1.50 s  1.50 s  99.9%
sum     sum.parts      2  800 us  400 us   0.1%
sum     sum.join       2  4.00 us  2.00 us   0.0%
total                  3  1.50 s"""


def test_the_table() -> None:
    rows = [line.split() for line in made(EVENTS).table().splitlines()]
    assert rows == [line.split() for line in TABLE.splitlines()]
    assert {len(line) for line in made(EVENTS).table().splitlines()[:-1]} == {49}


def read(profile: Profile, folder: Path) -> tuple[list[Any], list[Any]]:
    """A saved trace: what names things, and what took time."""
    file = folder / "trace.json"
    profile.save(file)
    entries = json.loads(file.read_text("utf-8"))["traceEvents"]
    assert {each["ph"] for each in entries} <= {"M", "X"}
    return (
        [each for each in entries if each["ph"] == "M"],
        [each for each in entries if each["ph"] == "X"],
    )


def test_the_trace(tmp_path: Path) -> None:
    names, slices = read(made(EVENTS), tmp_path)
    lanes = {
        each["tid"]: each["args"]["name"]
        for each in names
        if each["name"] == "thread_name"
    }
    assert names[0]["args"] == {"name": "an adapter"}
    by_lane = {
        lane: [each for each in slices if each["tid"] == number]
        for number, lane in lanes.items()
    }
    assert [each["name"] for each in by_lane["kernels"]] == ["sum", "relu", "sum"]
    assert [each["name"] for each in by_lane["shaders"]] == [e.shader for e in EVENTS]
    assert by_lane["kernels"][0]["dur"] == 301
    assert by_lane["shaders"][2]["ts"] == 400
    assert by_lane["shaders"][2]["dur"] == 1_500_000


LANES: tuple[Callable[[Any], bool], ...] = (
    lambda each: each["tid"] == 1,
    lambda each: each["tid"] == 2,
)


def test_slices_of_a_lane_follow_each_other(ctx: Context, tmp_path: Path) -> None:
    """Perfetto drops slices that overlap without one holding the other."""
    x = ctx.vector(np.ones(300_000), f32)
    with ctx.profile() as profile:
        for _ in range(20):
            reduction.sum(x)
    _, slices = read(profile, tmp_path)
    for lane, count in zip(LANES, (20, 40), strict=True):
        own = [each for each in slices if lane(each)]
        assert len(own) == count
        for before, after in pairwise(own):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-9
