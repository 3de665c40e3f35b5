"""Schedules under guards: each can be chosen, and whatever the guards say, one is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations, product

import pytest

from kerngen.compiler import compile_text
from kerngen.ir.sizes import Condition
from kerngen.schedule.program import (
    EVERYWHERE,
    KernelProgram,
    ScheduledCase,
    StageChoice,
    cases_in,
)

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
WIDE = ("rows_lanes1024_subgroups1 when", "rows_lanes512 when")
LARGE = "gemm tile(256, 128, 16) micro(8, 8)"
NAMED = "gemm_tile256x128x16_micro8x8"
FOUR = "gemv_rows4_columns4_lanes64x4 when"
EIGHT = "gemv_rows8_columns8_lanes32x4 when"
TILES = [
    "gemm_tile8x128x4_micro8x4 when",
    "generic_neighbours4 when",
    "gemm_tile16x128x8_micro8x4 when",
    "gemm_tile128x16x8_micro4x4 when",
    "gemm_tile128x32x16_micro8x4 when",
    "gemm_tile32x128x16_micro4x8 when",
    "gemm_tile32x32x32_micro4x4_stream528 when",
    "gemm_tile32x32x64_micro4x4_stream528_slices2 when",
    "gemm_tile64x64x16_micro8x8_stream528 when",
    "gemm_tile64x64x32_micro8x8_stream528_slices2 when",
    "gemm_tile128x64x16_micro8x8_stream396 when",
    "gemm_stream264",
]
SHORT = "schedule f when m < 8 { rows }"
SCHEDULES: Mapping[str, tuple[str, dict[str, list[str]]]] = {
    "a guard holds everywhere or nowhere": (
        f"{SOFTMAX} schedule f when n < 8 {{ generic }}",
        {
            "top": ["generic when", "reduce when", *WIDE, "rows"],
            "total": ["generic when", "reduce"],
            "y": ["generic when", "map"],
        },
    ),
    "a stage that was left alone leaves the others together": (
        f"{SOFTMAX} schedule f.top when n > 4096 {{ generic }}",
        {
            "top": ["generic when", "reduce when", *WIDE, "rows"],
            "total": ["reduce when", *WIDE, "rows"],
            "y": ["map"],
        },
    ),
    "stages that are reached by two ways": (
        f"{SOFTMAX} schedule f when n < 8 {{ rows }} schedule f when m < 8 {{ generic }}",
        {
            "top": ["rows when", "generic when", "reduce when", *WIDE, "rows"],
            "total": ["generic when", "reduce"],
            "y": ["generic when", "map"],
        },
    ),
    "a long vector goes stage by stage": (
        VECTOR,
        {"top": ["reduce when", *WIDE, "rows"], "total": ["reduce"], "y": ["map"]},
    ),
    "what always runs together": (
        f"{SOFTMAX} schedule f {{ rows }}",
        {"top": ["rows"], "total": [], "y": []},
    ),
    "the compiler's own choice, asked for": (
        f"{PRODUCT} schedule f when m == 1 or n == 1 {{ gemv }}",
        {"c": ["gemv when", "rows when", FOUR, EIGHT, *TILES]},
    ),
    "the compiler's own choice, asked for under another guard": (
        f"{PRODUCT} schedule f when n == 1 {{ gemv }}",
        {"c": ["gemv when", "rows when", "gemv when", FOUR, EIGHT, *TILES]},
    ),
    "a guard that follows from one before it": (
        f"{PRODUCT} schedule f when m <= 8 {{ generic }} schedule f when m <= 4 {{ rows }}",
        {"c": ["generic when", "rows when", "gemv when", FOUR, EIGHT, *TILES]},
    ),
    "one strategy may run more stages or fewer": (
        f"{SOFTMAX} {SHORT} schedule f.total when n < 8 {{ generic }}",
        {
            "top": ["rows when", "reduce when", WIDE[0], "rows_2"],
            "total": ["generic when", "reduce when", *WIDE, "rows"],
            "y": ["map"],
        },
    ),
    "nothing stands behind what always runs": (
        f"{PRODUCT} schedule f {{ generic }}",
        {"c": ["generic"]},
    ),
    "an adapter may be too small": (
        f"{PRODUCT} schedule f when m > 8 {{ {LARGE} }} schedule f {{ {LARGE} }}",
        {"c": [f"{NAMED} when", NAMED, "rows when", "gemv when", FOUR, EIGHT, *TILES]},
    ),
}


@cache
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
def test_every_case_is_some_outcomes_choice(name: str) -> None:
    program = program_of(SCHEDULES[name][0])
    chosen = {
        id(case)
        for large, outcome in outcomes(program)
        for case in run(program.choices, large=large, outcome=outcome)
    }
    assert chosen == {id(case) for case in cases_in(program.choices)}


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_tree_chooses_as_the_lists_of_the_stages_do(name: str) -> None:
    """Stage by stage: the first schedule that applies, then the first stage it leaves."""
    program = program_of(SCHEDULES[name][0])
    names = [stage.name for stage in program.stages]
    for large, outcome in outcomes(program):
        listed: list[str] = []
        at = 0
        while at < len(names):
            schedule = next(
                s
                for s in program.stages[at].schedules
                if (large or s.needs.within(EVERYWHERE))
                and (not s.guard or outcome[s.guard])
            )
            assert schedule.stages == (*names[at : at + len(schedule.stages)],)
            listed.append(schedule.label)
            at += len(schedule.stages)
        cases = run(program.choices, large=large, outcome=outcome)
        assert [case.schedule.label for case in cases] == listed


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_case_computes_the_stages_of_its_choice(name: str) -> None:
    def check(choices: Iterable[StageChoice]) -> tuple[str, ...]:
        for choice in choices:
            for case in choice.cases:
                computed = (*case.schedule.stages, *check(case.rest))
                assert computed == choice.stages
            if choice.otherwise:
                assert check(choice.otherwise) == choice.stages
        return tuple(stage for choice in choices for stage in choice.stages)

    program = program_of(SCHEDULES[name][0])
    assert check(program.choices) == tuple(s.name for s in program.stages)


def test_choices_nest_until_their_cases_meet() -> None:
    """A stage that every case leaves for another is a choice behind them, not in each."""
    text = "schedule f.total when n < 8 { generic }"
    top, rest = program_of(f"{SOFTMAX} {text}").choices
    assert top.stages == ("top",)
    assert not any(case.rest for case in top.cases)
    assert rest.stages == ("total", "y")
    assert [[x.stages for x in case.rest] for case in rest.cases] == [
        [("y",)],
        [("y",)],
        [],
        [],
        [],
    ]


@pytest.mark.nightly
def test_many_stages_make_a_tree_of_few_cases() -> None:
    """Each way to run 60 stages together is one case, and one goes stage by stage."""
    lets = "\n".join(
        f"let s{k}[i] = sum[j] x[i, j] * s{k - 1}[i];" for k in range(1, 60)
    )
    text = f"""kernel f(x: f32[m, n]) -> y: f32[m, n] {{
        let s0[i] = max[j] x[i, j]; {lets} y[i, j] = x[i, j] - s59[i];
    }} schedule f when n < 8 {{ generic }} schedule f when m < 8 {{ rows lanes(64) }}"""
    program = program_of(text)
    assert len(program.stages) == 61
    assert len([*cases_in(program.choices)]) < 61 * 8


def test_shaders_are_shared_by_schedules_that_differ_in_their_guard() -> None:
    text, _ = SCHEDULES["the compiler's own choice, asked for under another guard"]
    (stage,) = program_of(text).stages
    first, second = (s for s in stage.schedules if s.label == "gemv")
    assert first.variants == second.variants
    assert (first.guard, first.reason) != (second.guard, second.reason)


def outcomes(program: KernelProgram) -> Iterator[tuple[bool, Mapping[Condition, bool]]]:
    """Whether the adapter is large, and outcomes of the guards: a few hold, or a few don't.

    A stage runs the first schedule that applies, and there are three stages: with up to three
    guards that hold, each schedule of each stage is chosen beside each of the others.
    """
    guards = dict.fromkeys(c.guard for c in cases_in(program.choices) if c.guard)
    unlike = (
        (few, holds)
        for count in range(4)
        for few in combinations(guards, count)
        for holds in (True, False)
    )
    for large, (few, holds) in product((False, True), unlike):
        yield large, {guard: (guard in few) is holds for guard in guards}


def run(
    choices: Iterable[StageChoice], *, large: bool, outcome: Mapping[Condition, bool]
) -> Iterator[ScheduledCase]:
    """Choose as the runtime does."""
    for choice in choices:
        applying = (
            c
            for c in choice.cases
            if (large or c.schedule.needs.within(EVERYWHERE))
            and (c.guard is None or outcome[c.guard])
        )
        case = next(applying, None)
        rest = case.rest if case else choice.otherwise
        assert case or rest
        yield from (case,) if case else ()
        yield from run(rest, large=large, outcome=outcome)
