"""`kerngen tune`, end to end: what it writes is built, is used, and is right."""

from __future__ import annotations

import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerngen.runtime import Context
from kerngen.tune import session, trial, write
from kerngen.tune.candidates import Candidate
from kerngen.tune.trial import Outcome, Verdict
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


def built(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the module of the layer from the project's output."""
    monkeypatch.setattr(sys, "path", [str(root / "gen"), *sys.path])
    invalidate_caches()
    for name in [*sys.modules]:
        if name.partition(".")[0] == "kernels":
            monkeypatch.delitem(sys.modules, name)
    return import_module("kernels.nets.layer")


def test_the_winners_are_built_used_and_right(
    layer: Path, kerngen: Run, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = trial.Trials.attempt

    def only_generic(
        self: trial.Trials, candidate: Candidate | None, *rest: Any
    ) -> Outcome:
        """Let nothing else win: which strategy is faster here is another question."""
        if candidate in {None, Candidate("generic")}:
            return attempt(self, candidate, *rest)
        return Outcome(Verdict.UNFIT)

    monkeypatch.setattr(trial.Trials, "attempt", only_generic)
    monkeypatch.setattr(session, "WORTH", 1e9)
    out = layer / "dsl" / "tuned.kern"
    arguments = ("tune", "layer", "--budget", "10", "--shapes", "n=64,k=64")
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
    out.write_text(text + text.splitlines()[-1], encoding="utf-8")
    twice = ("--shapes", "k=64,n=64,other=1")
    again = kerngen(*arguments, *twice, "--out", out)
    assert "tuned.kern: written" in again.stdout
    assert out.read_text("utf-8").count("schedule layer") == text.count(
        "schedule layer"
    )
    kerngen("build")


def test_without_out_the_schedules_are_printed(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(
        self: trial.Trials, candidate: Candidate | None, *rest: object
    ) -> Outcome:
        del self, rest
        if candidate == Candidate("generic"):
            return Outcome(Verdict.WRONG, why="1 of 64 elements are wrong")
        verdict = Verdict.TIMED if candidate is None else Verdict.UNFIT
        return Outcome(verdict, 1.0)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    said = kerngen("tune", "dsl/nets/layer.kern:layer", "--shapes", "n=8,k=8").stdout
    assert 'use "layer.kern";' in said
    assert "nothing was faster" in said
    assert "wrong: generic: 1 of 64 elements are wrong" in said
    assert not (layer / "dsl" / "tuned.kern").exists()


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("two.kern",), "Say which kernel, as FILE.kern:kernel: one, other.", 1),
        (("dsl/scale.kern", "--shapes", "k=8"), "--shapes lacks 'n'", 2),
        (("lair",), "There is no kernel 'lair'", 1),
        (("layer.w",), "has no stage 'w' to tune: it has", 1),
        (("layer", "--shapes", "n=8"), "--shapes lacks 'k'", 2),
        (("layer", "--out", "tuned.kern"), "so no build of it counts", 2),
        (("layer", "--out", "dsl/none/tuned.kern"), "there is no folder", 2),
        (("layer", "--out", "dsl/tuned.txt"), "is not a .kern file", 2),
        (("layer", "--out", "dsl/scale.kern"), "was not written by 'kerngen tune'", 1),
        (("cut.kern",), "cut (cut.kern:2): the length 'n - k - 1' is -1", 1),
        (("layer", "--shapes", "n=100000,k=100000"), "can't bind its tensors", 1),
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
        self: trial.Trials, candidate: Candidate | None, *rest: object
    ) -> Outcome:
        del self, rest
        fit = candidate in {None, Candidate("generic")}
        return Outcome(Verdict.TIMED if fit else Verdict.UNFIT, 1.0)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    monkeypatch.setattr(session, "WORTH", 1e9)
    monkeypatch.setattr(write, "_range", unbounded)
    arguments = ("tune", "scale", "--shapes", "n=64", "--shapes", "n=99")
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
        self: trial.Trials, candidate: Candidate | None, *rest: object
    ) -> Outcome:
        del rest
        reduced = self.stage == "top" and candidate == Candidate("reduce")
        fit = candidate is None or (apart and reduced)
        return Outcome(Verdict.TIMED if fit else Verdict.UNFIT, 1.0)

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    monkeypatch.setattr(session, "WORTH", 1e9)
    edit(layer / "dsl" / "shift.kern", SHIFT)
    said = kerngen("tune", "shift", "--shapes", "m=20,n=8", "--budget", "2").stdout
    assert ("schedule shift.top when" in said) == apart
    assert ("shift.y, m = 20, n = 8" in said) == apart


def test_a_present_schedule_that_is_wrong_is_named(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(
        self: trial.Trials, candidate: Candidate | None, *rest: object
    ) -> Outcome:
        del self, candidate, rest
        return Outcome(Verdict.WRONG, why="1 of 64 elements are wrong at n = 64")

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    edit(layer / "dsl" / "scale.kern", f"{SCALE}schedule scale {{ generic }}\n")
    said = kerngen("tune", "scale", "--shapes", "n=64", code=1).output
    assert "'scale.y' has now, generic, is wrong: 1 of 64 elements" in said


@pytest.mark.parametrize("tried", [0, 1, 2, 4])
def test_an_interrupt_shows_what_is_found_so_far(
    layer: Path, kerngen: Run, monkeypatch: pytest.MonkeyPatch, tried: int
) -> None:
    made: list[Candidate | None] = []

    def attempt(
        self: trial.Trials, candidate: Candidate | None, *rest: object
    ) -> Outcome:
        del self, rest
        if len(made) == tried:
            raise KeyboardInterrupt
        made.append(candidate)
        return Outcome(Verdict.TIMED, 4e-3 / len(made))

    monkeypatch.setattr(trial.Trials, "attempt", attempt)
    out = layer / "dsl" / "tuned.kern"
    said = kerngen("tune", "scale", "--shapes", "n=64", "--out", out, code=130).output
    assert "interrupted: the best so far; no schedules are written." in said
    assert ("n=64" in said) == (tried > 0)
    assert (f"{tried} timed" in said) == (tried > 0)
    assert ("4.00x" in said) == (tried == 4)
    assert not out.exists()
