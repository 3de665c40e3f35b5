"""The search, on times that are made up; and what the file says of its winners."""

from __future__ import annotations

import time
from dataclasses import replace

from kerngen.compiler import compile_text
from kerngen.ir.strategies import OPTIONS
from kerngen.schedule.program import ScheduledStage
from kerngen.tune.candidates import TuneCandidate, groups, named, variations
from kerngen.tune.search import Search
from kerngen.tune.trial import Outcome, TrialVerdict
from kerngen.tune.write import Winner, line_of, write_lines

BEST = TuneCandidate("gemm", (("tile", (64, 64, 16)), ("micro", (4, 4)), ("pad", (2,))))


def attempt(candidate: TuneCandidate | None, best: float) -> Outcome:
    """Be the faster, the more options are as in BEST; some faults are in the way."""
    del best
    if candidate is None or candidate.strategy in {"generic", "gemv"}:
        return Outcome(TrialVerdict.TIMED, 8.0)
    if candidate.strategy != "gemm":
        return Outcome(TrialVerdict.UNFIT, why="it does not fit")
    given = dict(candidate.options)
    if given.get("lanes") == (1, 32):
        return Outcome(TrialVerdict.WRONG, why="4 of 9 elements are wrong")
    same = sum(given.get(name) == value for name, value in BEST.options)
    return Outcome(TrialVerdict.TIMED, 6.0 - same)


def test_options_are_varied_one_at_a_time_or_together() -> None:
    assert next(groups("gemv")) == ("rows",)
    assert next(groups("gemm")) == ("tile", "micro")
    varied = [*variations(TuneCandidate("gemm"), ("tile", "micro"))]
    tried = OPTIONS["gemm"]
    assert len({*varied}) == len(tried["tile"].tried) * len(tried["micro"].tried)
    assert varied[0].text == "gemm tile(128, 128, 16) micro(8, 16)"
    assert varied[0].having({"pad": (0,)}).having({"tile": (32, 32, 32)}).text == (
        "gemm tile(32, 32, 32) micro(8, 16) pad(0)"
    )


def test_schedules_are_known_by_their_names() -> None:
    label = "gemm_tile64x64x16_micro4x4_pad0"
    assert named(label).text == "gemm tile(64, 64, 16) micro(4, 4) pad(0)"
    assert named("rows").text == "rows"
    assert named("gemv_rows4_2").text == "gemv rows(4)"


def test_the_search_finds_the_best() -> None:
    search = Search(attempt, time.monotonic() + 60)
    for _ in search.run(map(TuneCandidate, OPTIONS)):
        pass
    assert search.best is not None
    assert {*BEST.options} <= {*search.best.options}
    assert search.seconds == 3.0
    assert search.fastest(1) == [search.best]
    unfit = OPTIONS.keys() - {"gemm", "gemv", "generic"}
    assert search.verdicts[TrialVerdict.UNFIT] == len(unfit)  # none of their variations
    assert search.verdicts[TrialVerdict.WRONG] > 0
    assert None in search.found


def test_the_search_ends_in_time() -> None:
    search = Search(attempt, time.monotonic())
    assert len([*search.run(map(TuneCandidate, OPTIONS))]) == 1
    assert search.best is None


SOURCE = "kernel product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum[p] a[i, p] * b[p, j]; }"


def scheduled(memory: int = 0, invocations: int = 64) -> ScheduledStage:
    """Return a schedule whose shader needs this of the adapter."""
    (program,) = compile_text(SOURCE, "product.kern").programs
    schedule = program.stages[0].schedules[-1]
    shader = replace(
        schedule.variants[0].shaders[0],
        workgroup_bytes=memory,
        workgroup_size=invocations,
    )
    variant = replace(schedule.variants[0], shaders=(shader,))
    return replace(schedule, variants=(variant,))


def test_guards_hold_around_what_was_tuned() -> None:
    plain, large = scheduled(), scheduled(33000, 512)
    winners = [
        Winner("c", {"m": 1, "n": 4096}, TuneCandidate("gemv"), plain, 2e-3, 1e-3),
        Winner("c", {"m": 16, "n": 4096}, None, plain, 2e-3, 2e-3),
        Winner("c", {"m": 1024, "n": 4096}, BEST, large, 4e-3, 1e-3),
    ]
    written = write_lines(
        [*map(line_of, winners)],
        kernel="product",
        used="product.kern",
        whole=True,
        about={"On": "it"},
    )
    assert written.text == TUNED


TUNED = """//! Schedules found by 'kerngen tune'.
//!
//! On: it

use "product.kern";

// product, m = 1, n = 4096: 1 ms, before 2 ms.
schedule product when m == 1 and n >= 2048 and n <= 8192 { gemv }

// product, m = 16, n = 4096: 2 ms; nothing was faster.

// product, m = 1024, n = 4096: 1 ms, before 4 ms.
schedule product when
    m >= 512
    and m <= 2048
    and n >= 2048
    and n <= 8192
    and adapter.workgroup_bytes >= 33000
    and adapter.invocations >= 512
{
    gemm tile(64, 64, 16) micro(4, 4) pad(2)
}
"""


def test_what_earlier_runs_found_of_other_sizes_and_kernels_stays() -> None:
    """Only what is found anew is replaced; nothing else of the file is lost."""
    plain = scheduled()

    def written(kernel: str, m: int, date: str, present: str) -> str:
        winner = Winner("c", {"m": m}, TuneCandidate("gemv"), plain, 2e-3, 1e-3)
        about = {"Adapter": "One", "Date": date}
        return write_lines(
            [line_of(winner)],
            kernel=kernel,
            used=f"{kernel}.kern",
            whole=True,
            about=about,
            present=present,
        ).text

    first = written("product", 16, "Monday", "")
    assert "Kept" not in first
    text = written("product", 64, "Tuesday", first)
    text = written("other", 16, "Wednesday", text)
    again = written("product", 16, "Thursday", text)
    assert again.count("// product, m = 16: ") == 1
    for line in (
        *("//! Date: Thursday", "//! Kept from Wednesday: One"),
        *("//! Kept from Monday: One", 'use "product.kern";', 'use "other.kern";'),
        *("// product, m = 64: 1 ms, before 2 ms.", "// other, m = 16: 1 ms, be"),
    ):
        assert line in again, line
    places = [again.index(f"// {at}:") for at in ("product, m = 16", "other, m = 16")]
    assert places == sorted(places)
    mine = again.replace("\n\n// other", "\n\n// My own remark.\n\n// other")
    assert "// My own remark.\n" in written("product", 16, "Friday", mine)


def test_cells_meet_at_the_mean_and_end_at_a_factor_of_two() -> None:
    plain = scheduled()
    winners = [
        Winner("c", {"m": m, "n": 15}, TuneCandidate("gemv"), plain, 2e-3, 1e-3)
        for m in (100, 200, 2000)
    ]
    text = write_lines(
        [*map(line_of, winners)],
        kernel="product",
        used="product.kern",
        whole=True,
        about={},
    ).text
    assert "when m >= 50 and m <= 141 and n == 15 " in text
    assert "when m >= 142 and m <= 400 and n == 15 " in text
    assert "when m >= 1000 and m <= 4000 and n == 15 " in text


def test_a_name_is_no_need_and_without_dims_there_are_no_sizes() -> None:
    source = SOURCE.replace("product", "subgroup_product")
    (program,) = compile_text(source, "product.kern").programs
    schedule = program.stages[0].schedules[-1]
    winner = Winner("c", {}, TuneCandidate("gemv"), schedule, 2e-3, 1e-3)
    left = replace(winner, candidate=None)
    text = write_lines(
        [line_of(winner), line_of(left)],
        kernel="product",
        used="product.kern",
        whole=True,
        about={},
    ).text
    assert "// product: 1 ms, before 2 ms.\nschedule product { gemv }\n" in text
    assert "// product: 2 ms; nothing was faster.\n" in text
