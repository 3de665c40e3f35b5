"""Medians, spreads and efforts, by clocks whose times are known."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from kerngen.bench.case import BenchCase
from kerngen.bench.choose import named
from kerngen.bench.measure import (
    Clock,
    Clocks,
    Launch,
    SamplingLimits,
    WallClock,
    clock_of,
    measure,
    measure_in_turn,
    no_ramp,
)
from kerngen.bench.peers import find_peers
from kerngen.bench.ramp import ClockRamp, load_clock, ramp_of
from kerngen.bench.run import Budget, Contestant, on_context, on_peer, run
from kerngen.runtime import Context, OutOfMemoryError, f32
from kerngen_kernels import elementwise


class Known:
    """Says that each launch takes so many seconds, by the number of the sample."""

    def __init__(self, *seconds: float) -> None:
        self.seconds, self.asked = [*seconds], list[int]()

    def __call__(self, launches: int) -> float:
        self.asked.append(launches)
        return launches * self.seconds[(len(self.asked) - 1) % len(self.seconds)]


def test_the_median_of_all_samples_but_the_first_counts() -> None:
    clock = Known(9.0, 1e-3, *(float(n) * 1e-3 for n in range(1, 21)))
    timing = measure(clock, SamplingLimits(samples=20, seconds=10, warm_up=0))
    assert timing.median == pytest.approx(10.5e-3)
    assert timing.low == pytest.approx(5.25e-3)
    assert timing.high == pytest.approx(15.75e-3)
    assert timing.spread == pytest.approx(1.0)
    assert (timing.samples, timing.launches) == (20, 100)


@pytest.mark.parametrize(
    ("each", "launches"), [(1e-7, 100), (1e-3, 50), (0.5e-3, 100), (0.1, 1)]
)
def test_launches_to_a_sample_fit_the_effort(each: float, launches: int) -> None:
    clock = Known(each)
    timing = measure(clock, SamplingLimits(samples=20, seconds=1, warm_up=0))
    assert timing.median == pytest.approx(each)
    assert timing.launches == launches
    assert clock.asked == [1, 1, *[launches] * 20]


def test_launches_that_warm_up_come_first_and_do_not_count() -> None:
    clock = Known(1e-3)
    measure(clock, SamplingLimits(samples=3, launches=4, seconds=1, warm_up=0.01))
    assert clock.asked == [1, 1, 2, 4, 4, 4, 4, 4]


class Device:
    """A device whose load gets faster while it runs, by the seconds of a launch on end.

    A launch takes the time of a made-up clock, which `wait` advances.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.runs, self.seconds = 0.0, 0, list[float]()
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def __call__(self, launches: int) -> float:
        seconds = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        self.now += launches * seconds
        self.runs += 1
        return launches * seconds

    def ramp(self, ramp: ClockRamp, *seconds: float, after: float) -> int:
        """Return how often the load runs until the ramp is over."""
        self.now += after
        self.seconds, self.runs = [*seconds], 0
        ramp()
        return self.runs


def test_a_device_runs_until_its_clock_rate_is_as_high_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Device(monkeypatch)
    ramp = ClockRamp(device)
    slow, full = 5e-3, 1e-3
    first = device.ramp(ramp, *[slow] * 60, full, after=0)
    assert first == pytest.approx(60 + 0.4 / full, abs=5), "patience shows the highest"
    assert device.ramp(ramp, *[slow] * 50, full, after=2) == 51
    assert device.ramp(ramp, 1.04 * full, after=2) == 1
    assert device.ramp(ramp, 2 * full, after=2) == pytest.approx(0.4 / 2e-3, abs=2)
    assert (
        device.ramp(ramp, 2 * full, after=0.1) == 1
    ), "it is hot, and was a moment ago"
    assert device.ramp(ramp, *[slow] * 50, full, after=2) == 51, "the highest is known"


def test_a_slow_devices_load_is_launched_as_often_as_takes_some_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[int]()
    for each, launches in ((0.1, 1), (1e-3, 5), (1e-6, 16)):
        device = Device(monkeypatch)
        device.seconds = [each]

        def clock(count: int, device: Device = device) -> float:
            asked.append(count)
            return device(count)

        ClockRamp(clock)()
        assert asked[:2] == [1, 1]
        assert {*asked[2:]} == {launches}
        asked.clear()


def test_the_clock_rate_rises_once_all_kernels_are_compiled() -> None:
    order = list[str]()

    def clock(launches: int) -> float:
        order.append(f"{launches} launches")
        return launches * 1e-3

    effort = SamplingLimits(samples=3, launches=4, seconds=1, warm_up=0)
    measure_in_turn([clock, clock], effort, lambda: order.append("ramp"))
    compiled = ["1 launches"] * 2
    assert order == [*compiled, "ramp", *compiled, *["4 launches"] * 6]


def test_what_computes_on_the_host_needs_no_device() -> None:
    (case,) = named("add", ({"n": 64},), "software")

    @contextmanager
    def on_host(case: BenchCase) -> Generator[Clock]:
        yield WallClock(lambda turn: (case, turn), lambda: None)

    @contextmanager
    def on_device(case: BenchCase) -> Generator[Clock]:
        del case
        yield Clocks(*(Known(1e-3) for _ in range(3)))

    ramps = list[str]()
    contestants = {"host": Contestant(on_host), "device": Contestant(on_device)}
    effort = SamplingLimits(samples=1, seconds=0)
    run_of = run(
        [case], contestants, effort, Budget(60), lambda: ramps.append("device")
    )
    assert next(run_of).timings.keys() == contestants.keys()
    assert len(ramps) == 3, "before each of the clocks of the device"


def test_the_load_runs_and_a_processor_needs_none(ctx: Context) -> None:
    assert load_clock(ctx)(1) > 0
    assert ramp_of(ctx) is no_ramp


def test_three_samples_are_taken_whatever_it_costs() -> None:
    assert measure(Known(1.0), SamplingLimits(samples=20, seconds=0)).samples == 3


def test_samples_are_taken_in_turn() -> None:
    """So what slows the machine down slows both."""
    load, order = iter([1.0] * 6 + [float(n) for n in range(1, 19)]), list[str]()

    def clock(name: str, seconds: float) -> Clock:
        def ask(launches: int) -> float:
            order.append(name)
            return launches * seconds * next(load)

        return ask

    clocks = [clock("one", 1.0), clock("double", 2.0)]
    one, double = measure_in_turn(
        clocks, SamplingLimits(samples=9, launches=1, seconds=60, warm_up=0)
    )
    assert order[-6:] == ["one", "double"] * 3
    assert (one.samples, double.samples) == (9, 9)
    assert double.median / one.median == pytest.approx(2, rel=0.15)


def test_the_hosts_clock_waits_for_the_last_launch_or_for_each() -> None:
    done: list[str] = []

    def launch(turn: int) -> None:
        done.append(str(turn))

    def wait() -> None:
        done.append("wait")

    assert WallClock(launch, wait)(3) >= 0
    assert done == ["wait", "0", "1", "2", "wait"]
    done.clear()
    WallClock(launch, wait, reads=True)(2)
    assert done == ["wait", "0", "wait", "1", "wait"]


def test_a_budget_is_divided_among_what_is_left() -> None:
    budget = Budget(100)
    assert budget.effort(SamplingLimits(seconds=10), 10).seconds == pytest.approx(
        5, rel=0.1
    )
    assert budget.effort(SamplingLimits(seconds=1), 10).seconds == 1
    assert Budget(0).left <= 0


def test_the_device_times_all_launches_of_a_sample(ctx: Context) -> None:
    x, turns = ctx.zeros((2**16,), f32), list[int]()

    def launch(turn: int) -> None:
        turns.append(turn)
        elementwise.add(x, x)

    clock = clock_of(ctx, launch)
    assert 0 < min(clock(1) for _ in range(5)) < clock(60)
    assert turns == [*range(65)]


class Broken:
    """A library that fails in the middle of its work."""

    name, version = "broken", "1"

    @contextmanager
    def clock(self, case: BenchCase) -> Generator[Clock | None]:
        def fail(launches: int) -> float:
            raise RuntimeError(f"no memory for {case.name} x {launches}")

        yield fail


def test_what_fails_is_noted_and_the_rest_goes_on(ctx: Context) -> None:
    cases = [*named("add", ({"n": 64}, {"n": 128}), "software")]
    contestants = {"broken": on_peer(Broken()), "ours": on_context(ctx)}
    results = [*run(cases, contestants, SamplingLimits(samples=1), Budget(60))]
    assert [result.case.sizes["n"] for result in results] == [64, 128]
    for result in results:
        assert result.notes == {"broken": "RuntimeError: no memory for add x 1"}
        assert result.timings.keys() == {"ours"}


def test_bugs_of_ours_are_raised(ctx: Context) -> None:
    def broken(ctx: Context) -> Launch:
        raise RuntimeError(f"a bug, on {ctx}")

    (case,) = named("add", ({"n": 64},), "software")
    contestants = {"ours": on_context(ctx)}
    with pytest.raises(RuntimeError, match="a bug"):
        next(
            run(
                [replace(case, prepare=broken)],
                contestants,
                SamplingLimits(),
                Budget(60),
            )
        )


def test_a_library_that_does_not_start_is_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def make(kind: str) -> Broken:
        raise KeyError(kind)

    monkeypatch.setattr("kerngen.bench.peers.numpy.make", make)
    found, absent = find_peers(["numpy"], "gpu")
    assert found == []
    assert absent == {"numpy": "it does not start (KeyError: 'gpu')"}


def test_contexts_are_timed_in_turn_and_fail_alone() -> None:
    (case,) = named("add", ({"n": 64},), "software")
    order: list[str] = []

    def contestant(name: str, most: int) -> Contestant:
        @contextmanager
        def contest(case: BenchCase) -> Generator[Clock]:
            def clock(launches: int) -> float:
                order.append(name)
                if len(order) > most:
                    raise OutOfMemoryError(f"{name}: {case.name}")
                return launches * 1.0

            yield clock

        return Contestant(contest, in_turn=True)

    several = {"one": contestant("one", 1000), "two": contestant("two", 1000)}
    effort = SamplingLimits(samples=2, launches=1)
    (result,) = run([case], several, effort, Budget(60))
    assert order == ["one", "two"] * 4
    assert result.timings.keys() == several.keys()
    order.clear()
    several["two"] = contestant("two", 3)
    (result,) = run([case], several, effort, Budget(60))
    assert result.timings.keys() == {"one"}
    assert result.notes == {"two": "two: add"}
