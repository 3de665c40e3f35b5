"""Captured steps: the same bits as the calls that they are made of, and the same care."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import Context, f32, u32
from kerngen.train import CapturedStep, NonFiniteError, TornStateError, Trainer

from .networks import BATCH, CLASSES, INPUTS, initial, lost


class Learner:
    """A trainer with a batch that is overwritten, and one step of it."""

    def __init__(self, ctx: Context) -> None:
        self.trainer = Trainer(ctx, initial())
        self.x = ctx.zeros((BATCH, INPUTS), f32)
        self.labels = ctx.zeros(BATCH, u32)
        self.loss = self.norm = ctx.zeros((), f32)

    def load(self, step: int) -> None:
        rng = np.random.default_rng(step)
        self.x.copy_from(rng.normal(size=(BATCH, INPUTS)))
        self.labels.copy_from(rng.integers(0, CLASSES, BATCH))

    def take(self, rate: float) -> None:
        p = self.trainer.parameters
        hidden = nn.gelu(nn.linear(self.x, p["hidden.weight"], p["hidden.bias"]))
        logits = nn.linear(hidden, p["out.weight"], p["out.bias"])
        loss = nn.cross_entropy(logits, self.labels)
        self.trainer.backward(loss)
        self.loss, self.norm = loss.tensor, self.trainer.clip_gradients(1.0)
        self.trainer.adamw_step(lr=rate)

    def capture(self) -> CapturedStep:
        with self.trainer.capture() as step:
            self.take(step.scalar("lr", 0.01))
        return step


def check_equal(a: dict[str, NDArray[Any]], b: dict[str, NDArray[Any]]) -> None:
    assert a.keys() == b.keys()
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name])


def test_captured_steps_leave_the_bits_of_steps(either: Context) -> None:
    plain, captured = Learner(either), Learner(either)
    captured.load(0)
    plain.load(0)
    plain.take(0.02)
    captured.take(0.02)  # a capture may begin at any step
    step = captured.capture()
    assert captured.trainer.step_count == 1
    for number in range(1, 5):
        for learner in (plain, captured):
            learner.load(number)
        plain.take(0.02 / number)
        step.replay(lr=0.02 / number)
        assert captured.loss.item() == plain.loss.item()
        assert captured.norm.item() == plain.norm.item()
    assert captured.trainer.step_count == plain.trainer.step_count == 5
    check_equal(captured.trainer.state(), plain.trainer.state())
    plain.take(0.1)
    captured.take(0.1)  # the calls themselves go on as well
    step.replay(times=2, lr=0.1)
    plain.take(0.1)
    plain.take(0.1)
    check_equal(captured.trainer.state(), plain.trainer.state())


def test_a_capture_takes_no_step(either: Context) -> None:
    learner = Learner(either)
    before = learner.trainer.state()
    learner.capture()
    check_equal(learner.trainer.state(), before)
    learner.load(1)
    learner.take(0.1)  # not by the norm of the capture, which was never computed
    other = Learner(either)
    other.load(1)
    other.take(0.1)
    check_equal(learner.trainer.state(), other.trainer.state())


def test_a_captured_step_that_is_not_finite_is_not_taken(ctx: Context) -> None:
    learner = Learner(ctx)
    step = learner.capture()
    learner.load(1)
    step.replay()
    before = learner.trainer.state()
    learner.x.copy_from(np.full((BATCH, INPUTS), np.nan))
    step.replay()
    learner.load(2)
    step.replay(times=2)
    with pytest.raises(NonFiniteError, match=r"Step 2: .* Steps 2 to 4 were not taken"):
        learner.loss.item()
    check_equal(learner.trainer.state(), before)
    step.replay()
    assert learner.trainer.step_count == 2
    assert np.isfinite(learner.loss.item())


def test_a_captured_step_that_was_lost_tears_the_state(ctx: Context) -> None:
    learner = Learner(ctx)
    learner.load(1)
    step = learner.capture()
    step.replay()
    ctx.submit()
    state = learner.trainer.state()
    with lost(ctx):
        step.replay()
    for _ in range(2):
        with pytest.raises(TornStateError, match="recorded work was lost"):
            step.replay()
    learner.trainer.load_state(state)
    step.replay()
    assert learner.trainer.step_count == 2


def test_settings_by_name_that_are_equal_for_now(either: Context) -> None:
    """Two scalars of one value are two settings: a replay may change one of them."""
    trainer = Trainer(either, {"a": np.ones(3), "b": np.ones(3)}, optimizer="sgd")
    for gradient in trainer.gradients.values():
        gradient.copy_from(np.ones(3))
    with trainer.capture() as step:
        rates = {name: step.scalar(f"rate_{name}", 0.5) for name in ("a", "b")}
        trainer.sgd_step(lr=rates)
    step.replay(rate_b=0.25)
    assert [tensor.numpy()[0] for tensor in trainer.tensors.values()] == [0.5, 0.75]


def test_what_makes_no_captured_step(either: Context) -> None:
    learner = Learner(either)
    trainer = learner.trainer

    def twice(step: CapturedStep) -> None:
        assert step.number == 1
        trainer.adamw_step(lr=0.1)
        trainer.adamw_step(lr=0.1)

    with (
        pytest.raises(gpu.StateError, match="has one update"),
        trainer.capture() as step,
    ):
        twice(step)
    with pytest.raises(gpu.StateError, match="takes no step"), trainer.capture():
        trainer.clip_gradients(1.0)
    with pytest.raises(gpu.StateError, match="reset: a capture"), trainer.capture():
        trainer.reset()
    with pytest.raises(gpu.StateError, match=r"Use trainer\.capture"), either.capture():
        trainer.adamw_step(lr=0.1)
    with pytest.raises(gpu.StateError, match="a read"), trainer.capture():
        trainer.clip_gradients(1.0, error_if_nonfinite=True)
    assert trainer.step_count == 0
    learner.load(1)
    learner.take(0.1)
    assert np.isfinite(learner.loss.item())


def test_settings_are_checked_at_each_replay(either: Context) -> None:
    learner = Learner(either)
    step = learner.capture()
    learner.load(1)
    with pytest.raises(gpu.UniformRangeError, match=r"lr is -1\.0"):
        step.replay(lr=-1.0)
    with pytest.raises(gpu.UnknownNameError, match="'rate'"):
        step.replay(rate=0.1)
    assert learner.trainer.step_count == 0
    step.close()
    with pytest.raises(gpu.StateError, match="was closed"):
        step.replay()
    assert learner.trainer.step_count == 0


def test_gradients_from_elsewhere(either: Context) -> None:
    """A block without `backward` steps by the gradients that there are by then."""
    plain, captured = (Trainer(either, {"a": np.ones(3)}) for _ in range(2))
    with captured.capture() as step:
        captured.adamw_step(lr=0.1)
    for value in (1.0, -3.0):
        for trainer in (plain, captured):
            trainer.gradients["a"].copy_from(np.full(3, value))
        plain.adamw_step(lr=0.1)
        step.replay()
    check_equal(captured.state(), plain.state())
