"""`kerngen tune`, end to end: what it writes is built, is used, and is right."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerngen.runtime import Context
from kerngen.tune import session, trial, write
from kerngen.tune.candidates import TuneCandidate
from kerngen.tune.trial import Outcome, TrialVerdict
from tests.cli.sample import PYPROJECT, SCALE, Run, edit

LAYER = """
kernel layer(w: f32[n, k], x: f32[k]) -> y: f32[n] {
    let z[i] = sum[p] w[i, p] * x[p];
    y[i] = z[i] * exp(0.0 - z[i] * z[i]);
}
"""

CUT = """
kernel cut(x: f32[n], z: f32[k]) -> y: f32[n - k - 1] { y[i] = x[i] + sum[p] z[p]; }
"""


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    edit(root / "pyproject.toml", PYPROJECT)
    edit(root / "dsl" / "nets" / "layer.kern", LAYER)
    edit(root / "dsl" / "scale.kern", SCALE)
    edit(root / "cut.kern", CUT)
    edit(
        root / "two.kern",
        SCALE.replace("scale", "one") + SCALE.replace("scale", "other"),
    )
    monkeypatch.chdir(root)
    return root


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Leave no module of a project behind: `reload()` would find it in later tests."""
    yield
    for name in [*sys.modules]:
        if name.partition(".")[0] == "kernels":
            del sys.modules[name]


def built(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the module of the layer from the project's output."""
    monkeypatch.setattr(sys, "path", [str(root / "gen"), *sys.path])
    invalidate_caches()
    return import_module("kernels.nets.layer")


def test_the_winners_are_built_used_and_right(
    layer: Path, kerngen: Run, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = trial.Trials.attempt

    def only_generic(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: Any
    ) -> Outcome:
        """Let nothing else win: which strategy is faster here is another question."""
        if candidate in {None, TuneCandidate("generic")}:
            return attempt(self, candidate, *rest)
        return Outcome(TrialVerdict.UNFIT)

    monkeypatch.setattr(trial.Trials, "attempt", only_generic)
    monkeypatch.setattr(session, "WORTH", 1e9)
    out = layer / "dsl" / "tuned.kern"
    arguments = ("tune", "layer", "--budget", "10", "--sizes", "n=64,k=64")
    said = kerngen(*arguments, "--out", out).stdout
    assert "tuned.kern: written" in said
    assert "timed" in said
    text = out.read_text("utf-8")
    assert ctx.adapter_name in text
    assert 'use "nets/layer.kern";' in text
    assert "when n >= 32 and n <= 128 and k >= 32 and k <= 128 {" in text
    kerngen("build")
    module = built(layer, monkeypatch)
    assert "{ generic }" in text
    near = ctx.choices(module.layer, n=64, k=64)
    far = ctx.choices(module.layer, n=1000, k=1000)
    assert near[0].strategy == "generic" != far[0].strategy
    rng = np.random.default_rng(0)
    w, x = rng.random((65, 66)) / 20, rng.random(66)
    y = module.layer(ctx.tensor(w.astype(np.float32)), ctx.tensor(x.astype("f4")))
    np.testing.assert_allclose(y.numpy(), module.layer_reference(w, x), rtol=1e-5)
    # What was tuned before is no rival of what is found now, and may even be broken;
    # what is asked for twice is tuned once.
    out.write_text(text.replace("{ generic }", "{ map tile(1) }"), encoding="utf-8")
    twice = ("--sizes", "k=64,n=64")
    again = kerngen(*arguments, *twice, "--out", out)
    assert "tuned.kern: written" in again.stdout
    assert out.read_text("utf-8").count("schedule layer") == text.count(
        "schedule layer"
    )
    kerngen("build")
    kerngen("fmt", "--check", out)
    # What is found at other sizes comes beside it, and other files are named.
    edit(layer / "dsl" / "older.kern", text)
    more = kerngen(*arguments[:-1], "n=64,k=512", "--out", out)
    assert "tuned.kern: written; 1 result of earlier runs kept" in more.stdout
    assert "'layer' has schedules in dsl/older.kern, dsl/tuned.kern:" in more.stderr
    assert out.read_text("utf-8").count("schedule layer") == 2 * text.count(
        "schedule layer"
    )
    kerngen("build")
    edit(out, f"{write.HEADING}\nschedule {{")
    assert "error[KG" in kerngen(*arguments, "--out", out, code=1).output
    out.write_bytes(write.HEADING.encode() + b"\xff")
    assert "error[KG0001]" in kerngen(*arguments, "--out", out, code=1).output


def test_without_out_the_schedules_are_printed(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: object
    ) -> Outcome:
        del self, rest
        if candidate == TuneCandidate("generic"):
            return Outcome(TrialVerdict.WRONG, why="1 of 64 elements are wrong")
        verdict = TrialVerdict.TIMED if candidate is None else TrialVerdict.UNFIT
        return Outcome(verdict, 1.0)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    said = kerngen("tune", "dsl/nets/layer.kern:layer", "--sizes", "n=8,k=8").stdout
    assert 'use "layer.kern";' in said
    assert "nothing was faster" in said
    assert "wrong: generic: 1 of 64 elements are wrong" in said
    assert not (layer / "dsl" / "tuned.kern").exists()


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("two.kern",), "Say which kernel: two.kern:one, two.kern:other.", 1),
        (("dsl/scale.kern", "--sizes", "k=8"), "--sizes has 'k', but scale has n.", 2),
        (("lair",), "There is no kernel 'lair'", 1),
        (("layer.w",), "has no stage 'w' to tune: it has", 1),
        (("layer", "--sizes", "n=8"), "--sizes lacks 'k'", 2),
        (
            ("layer", "--sizes", "n=8,k=4,q=3"),
            "--sizes has 'q', but layer has n, k.",
            2,
        ),
        (("layer", "--out", "tuned.kern"), "so no build of that folder uses", 2),
        (("layer", "--out", "dsl/none/tuned.kern"), "There is no folder 'dsl/none'", 2),
        (("layer", "--out", "dsl"), "'dsl' is a folder", 2),
        (("layer", "--out", "dsl/tuned.txt"), "is not a .kern file", 2),
        (("layer", "--out", "dsl/scale.kern"), "was not written by 'kerngen tune'", 1),
        (("cut.kern",), "cut (cut.kern:2): the length 'n - k - 1' is -1", 1),
        (("layer", "--sizes", "n=100000,k=100000"), "can't bind its tensors", 1),
    ],
)
@pytest.mark.usefixtures("layer")
def test_faults_of_the_user_are_messages(
    arguments: tuple[str, ...], message: str, code: int, kerngen: Run
) -> None:
    assert message in kerngen("tune", *arguments, code=code).output


def unbounded(*shapes: object) -> tuple[str, ...]:
    """Bound nothing."""
    del shapes
    return ()


def test_what_no_build_would_take_is_not_written(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: object
    ) -> Outcome:
        del self, rest
        fit = candidate in {None, TuneCandidate("generic")}
        return Outcome(TrialVerdict.TIMED if fit else TrialVerdict.UNFIT, 1.0)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    monkeypatch.setattr(session, "WORTH", 1e9)
    monkeypatch.setattr(write, "_range", unbounded)
    arguments = ("tune", "scale", "--sizes", "n=64", "--sizes", "n=99")
    said = kerngen(*arguments, "--out", "dsl/tuned.kern", code=1).output
    assert "KG0610" in said
    assert "schedule scale {" in said
    assert not (layer / "dsl" / "tuned.kern").exists()


SHIFT = """
kernel shift(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    y[i, j] = x[i, j] - top[i];
}
"""


@pytest.mark.parametrize("apart", [False, True])
def test_stages_that_run_with_earlier_ones_are_left_alone(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch, *, apart: bool
) -> None:
    """Only a maximum that runs apart leaves the rest to be tuned."""

    def attempt(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: object
    ) -> Outcome:
        del rest
        reduced = self.stage == "top" and candidate == TuneCandidate("reduce")
        fit = candidate is None or (apart and reduced)
        return Outcome(TrialVerdict.TIMED if fit else TrialVerdict.UNFIT, 1.0)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    monkeypatch.setattr(session, "WORTH", 1e9)
    edit(layer / "dsl" / "shift.kern", SHIFT)
    said = kerngen("tune", "shift", "--sizes", "m=20,n=8", "--budget", "2").stdout
    assert ("schedule shift.top when" in said) == apart
    assert ("shift.y, m = 20, n = 8" in said) == apart


def test_a_present_schedule_that_is_wrong_is_named(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: object
    ) -> Outcome:
        del self, candidate, rest
        return Outcome(TrialVerdict.WRONG, why="1 of 64 elements are wrong at n = 64.")

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    edit(layer / "dsl" / "scale.kern", f"{SCALE}schedule scale {{ generic }}\n")
    said = kerngen("tune", "scale", "--sizes", "n=64", code=1).output
    assert "'scale.y' has now, generic, is wrong: 1 of 64 elements are " in said
    assert said.endswith(" at n = 64.\n")


@pytest.mark.parametrize("tried", [0, 1, 2, 4])
def test_an_interrupt_shows_what_is_found_so_far(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch, tried: int
) -> None:
    made: list[TuneCandidate | None] = []

    def attempt(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: object
    ) -> Outcome:
        del self, rest
        if len(made) == tried:
            raise KeyboardInterrupt
        made.append(candidate)
        return Outcome(TrialVerdict.TIMED, 4e-3 / len(made))

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    out = layer / "dsl" / "tuned.kern"
    said = kerngen("tune", "scale", "--sizes", "n=64", "--out", out, code=130).output
    assert "interrupted: the best so far; no schedules are written." in said
    assert ("n=64" in said) == (tried > 0)
    assert (f"{tried} timed" in said) == (tried > 0)
    assert ("4.00x" in said) == (tried == 4)
    assert not out.exists()


def quick(
    self: trial.Trials, candidate: TuneCandidate | None, *rest: object
) -> Outcome:
    """Time nothing: what there is counts as a second, and nothing else fits."""
    del self, rest
    return Outcome(TrialVerdict.TIMED if candidate is None else TrialVerdict.UNFIT, 1.0)


EARLIER = f"""{write.HEADING}
//!
//! Date: Monday

use "scale.kern";
use "lost.kern";

// twice, n = 64: 1 ms, before 2 ms.
schedule twice when n == 64 {{ generic }}

// scale, n = 512: 1 ms, before 2 ms.
schedule scale when n == 512 {{ generic }}

// all, n = 9: by hand.
schedule s*.y when n == 9 {{ generic }}

// all, n = 8: by hand.
schedule twice, t*.y when n == 8 {{ generic }}
"""


def test_what_is_kept_of_kernels_that_are_gone_is_dropped_and_said(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial.Trials, "attempt", quick)
    edit(layer / "dsl" / "tuned.kern", EARLIER)
    arguments = ("tune", "scale", "--sizes", "n=64", "--out", "dsl/tuned.kern")
    said = kerngen(*arguments).stdout
    assert "schedules of kernels that are gone were dropped: 't*', 'twice'." in said
    assert "2 results of earlier runs kept" in said
    text = (layer / "dsl" / "tuned.kern").read_text("utf-8")
    assert "schedule scale when n == 512" in text
    assert "schedule s*.y when n == 9" in text
    assert "twice" not in text
    assert "lost.kern" not in text
    kerngen("build")


def test_what_is_kept_is_checked_before_anything_is_tried(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(*_: object) -> Outcome:
        raise AssertionError("the budget is spent")

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    edit(layer / "dsl" / "tuned.kern", EARLIER.replace("{ generic", "{ genetic"))
    arguments = ("tune", "scale", "--sizes", "n=64", "--out", "dsl/tuned.kern")
    said = kerngen(*arguments, code=1).output
    assert "KG0602" in said
    assert "dsl/tuned.kern:12:" in said


def test_what_is_saved_meanwhile_stays(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = layer / "dsl" / "tuned.kern"
    edit(out, EARLIER)

    def attempt(
        self: trial.Trials, candidate: TuneCandidate | None, *rest: object
    ) -> Outcome:
        edit(out, "// mine\n")
        return quick(self, candidate, *rest)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    said = kerngen("tune", "scale", "--sizes", "n=64", "--out", out, code=1).output
    assert "It was saved meanwhile, and stays as it is" in said
    assert "nothing was faster" in said
    assert out.read_text("utf-8") == "// mine\n"
