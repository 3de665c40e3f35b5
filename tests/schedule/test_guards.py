"""Schedules under guards: each can be chosen, and whatever the guards say, one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import pytest

from kerngen.compiler import compile_text
from kerngen.ir.nodes import Expr
from kerngen.schedule.program import KernelProgram, ScheduledStage

SOFTMAX = """kernel f(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    let total[i] = sum[j] exp(x[i, j] - top[i]);
    y[i, j] = exp(x[i, j] - top[i]) / total[i];
}
"""
VECTOR = """kernel f(x: f32[n]) -> y: f32[n] {
    let top = max[j] x[j];
    let total = sum[j] exp(x[j] - top);
    y[i] = exp(x[i] - top) / total;
}
"""
PRODUCT = """kernel f(a: f32[m, k], b: f32[n, k]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[j, p];
}
"""
WIDE = "rows_lanes1024_subgroups1 when"
LARGE = "gemm tile(256, 128, 16) micro(8, 8)"
NAMED = "gemm_tile256x128x16_micro8x8"
SMALL = "gemm_tile32x64x16_micro8x4 when"
SHORT = "schedule f when m < 8 { rows }"
SCHEDULES: Mapping[str, tuple[str, dict[str, list[str]]]] = {
    "a guard holds everywhere or nowhere": (
        f"{SOFTMAX} schedule f when n < 8 {{ generic }}",
        {
            "top": ["generic when", "reduce when", WIDE, "rows"],
            "total": ["generic when", "reduce"],
            "y": ["generic when", "map"],
        },
    ),
    "a stage that was left alone leaves the others together": (
        f"{SOFTMAX} schedule f.top when n > 4096 {{ generic }}",
        {
            "top": ["generic when", "reduce when", WIDE, "rows"],
            "total": ["reduce when", WIDE, "rows"],
            "y": ["map"],
        },
    ),
    "stages that are reached by two ways": (
        f"{SOFTMAX} schedule f when n < 8 {{ rows }} schedule f when m < 8 {{ generic }}",
        {
            "top": ["rows when", "generic when", "reduce when", WIDE, "rows"],
            "total": ["generic when", "reduce"],
            "y": ["generic when", "map"],
        },
    ),
    "a long vector goes stage by stage": (
        VECTOR,
        {"top": ["reduce when", WIDE, "rows"], "total": ["reduce"], "y": ["map"]},
    ),
    "what always runs together": (
        f"{SOFTMAX} schedule f {{ rows }}",
        {"top": ["rows"], "total": [], "y": []},
    ),
    "the compiler's own choice, asked for": (
        f"{PRODUCT} schedule f when m == 1 {{ gemv }}",
        {"c": ["gemv when", SMALL, "gemm"]},
    ),
    "the compiler's own choice, asked for under another guard": (
        f"{PRODUCT} schedule f when n == 1 {{ gemv }}",
        {"c": ["gemv when", "gemv when", SMALL, "gemm"]},
    ),
    "one strategy may run more stages or fewer": (
        f"{SOFTMAX} {SHORT} schedule f.total when n < 8 {{ generic }}",
        {
            "top": ["rows when", "reduce when", WIDE, "rows_2"],
            "total": ["generic when", "reduce when", WIDE, "rows"],
            "y": ["map"],
        },
    ),
    "nothing stands behind what always runs": (
        f"{PRODUCT} schedule f {{ generic }}",
        {"c": ["generic"]},
    ),
    "an adapter may be too small": (
        f"{PRODUCT} schedule f when m > 8 {{ {LARGE} }} schedule f {{ {LARGE} }}",
        {"c": [f"{NAMED} when", NAMED, "gemv when", SMALL, "gemm"]},
    ),
}


def program_of(text: str) -> KernelProgram:
    (program,) = compile_text(text, "f.kern").programs
    return program


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_that_can_be_chosen_are_kept(name: str) -> None:
    text, expected = SCHEDULES[name]
    found = {
        stage.name: [s.label + " when" * bool(s.guard) for s in stage.schedules]
        for stage in program_of(text).stages
    }
    assert found == expected


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_is_some_outcomes_choice(name: str) -> None:
    program = program_of(SCHEDULES[name][0])
    everything = {id(s) for stage in program.stages for s in stage.schedules}
    chosen = {
        id(schedule)
        for large, outcome in outcomes(program)
        for schedule in run(program, large=large, outcome=outcome)
    }
    assert chosen == everything


def test_shaders_are_shared_by_schedules_that_differ_in_their_guard() -> None:
    text, _ = SCHEDULES["the compiler's own choice, asked for under another guard"]
    first, second, *_ = program_of(text).stages[0].schedules
    assert first.variants == second.variants
    assert (first.guard, first.reason) != (second.guard, second.reason)


def outcomes(program: KernelProgram) -> Iterator[tuple[bool, Mapping[Expr, bool]]]:
    """Whether the adapter is large, and every outcome of the guards."""
    schedules = [s for stage in program.stages for s in stage.schedules]
    guards = dict.fromkeys(s.guard for s in schedules if s.guard)
    for large, *values in product((False, True), repeat=1 + len(guards)):
        yield large, dict(zip(guards, values, strict=True))


def run(
    program: KernelProgram, *, large: bool, outcome: Mapping[Expr, bool]
) -> Iterator[ScheduledStage]:
    """Choose as the runtime does."""
    at = 0
    while at < len(program.stages):
        schedule = next(
            s
            for s in program.stages[at].schedules
            if (large or s.runs_everywhere) and (s.guard is None or outcome[s.guard])
        )
        yield schedule
        at += schedule.covers
