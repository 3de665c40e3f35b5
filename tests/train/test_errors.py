"""Errors in the middle of a step: nothing is half done without a word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32
from kerngen.runtime.device.recorder import Recorder
from kerngen.train import TornStateError, Trainer
from kerngen_kernels import clip, elementwise, optim

from .networks import initial, loss_of, lost, take_step


@pytest.fixture
def fresh() -> Iterator[gpu.Context]:
    """A context of one test's own."""
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 1024}
    with gpu.open(adapter="software", limits=limits) as ctx:
        yield ctx


def test_a_device_that_is_lost_in_a_step(tmp_path: Path) -> None:
    ctx = gpu.open(adapter="software")
    trainer = Trainer(ctx, initial())
    take_step(trainer)
    trainer.save(tmp_path / "saved")
    device = ctx.device
    trainer.backward(loss_of(trainer, 1))
    device.destroy()
    with pytest.raises(
        gpu.DeviceLost, match=r"adamw_step, after 1 steps: .* load a checkpoint"
    ):
        trainer.adamw_step(lr=0.1)
    for call in (trainer.state, trainer.gradient_norm):
        with pytest.raises(gpu.DeviceLost, match="load a checkpoint"):
            call()
    with gpu.open(adapter="software") as other:
        again = Trainer(other, initial())
        again.load(tmp_path / "saved")
        assert again.step_count == 1


def test_a_step_that_stops_halfway(
    fresh: gpu.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(fresh, {"a": np.ones(200), "b": np.ones(200)})
    state = trainer.state()
    real, calls = optim.adamw_unless, count(1)

    def fail_at_the_second(*tensors: Any, **scalars: Any) -> None:
        if next(calls) == 2:
            raise KeyboardInterrupt
        real(*tensors, **scalars)

    monkeypatch.setattr(optim, "adamw_unless", fail_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        trainer.adamw_step(lr=0.1)
    monkeypatch.undo()
    for call in (trainer.state, lambda: trainer.adamw_step(lr=0.1)):
        with pytest.raises(
            TornStateError, match=r"step 1 reached some .* Load a state"
        ):
            call()
    trainer.load_state(state)
    trainer.adamw_step(lr=0.1)
    assert trainer.step_count == 1


def test_an_interrupt_right_after_an_update_was_recorded(
    fresh: gpu.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(fresh, {"a": np.ones(8)})
    real = optim.adamw_unless

    def interrupted(*tensors: Any, **scalars: Any) -> None:
        real(*tensors, **scalars)
        raise KeyboardInterrupt

    monkeypatch.setattr(optim, "adamw_unless", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.adamw_step(lr=0.1)
    with pytest.raises(TornStateError, match="step 1 reached some"):
        trainer.state()


def test_a_clip_that_is_interrupted(
    fresh: gpu.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(fresh, {"a": np.ones(200), "b": np.ones(200)})
    real, calls = clip.clip_by_norm, count(1)

    def interrupted(*tensors: Any, **scalars: Any) -> None:
        if next(calls) == 2:
            raise KeyboardInterrupt
        real(*tensors, **scalars)

    monkeypatch.setattr(clip, "clip_by_norm", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.clip_gradients(1.0)
    monkeypatch.undo()
    with pytest.raises(TornStateError, match=r"a clip was interrupted.*clear them"):
        trainer.adamw_step(lr=0.1)
    trainer.clear_gradients()
    trainer.adamw_step(lr=0.1)
    assert trainer.step_count == 1


def test_gradients_that_are_lost_make_no_step(fresh: gpu.Context) -> None:
    trainer = Trainer(fresh, initial())
    take_step(trainer)
    with lost(fresh):
        trainer.backward(loss_of(trainer, 1))
        trainer.clip_gradients(1.0)
    with pytest.raises(TornStateError, match=r"lost with an error.* to no single loss"):
        trainer.adamw_step(lr=0.1)
    trainer.backward(loss_of(trainer, 1))
    trainer.adamw_step(lr=0.1)
    assert trainer.state()["step"] == 2


def test_a_loss_that_is_lost_makes_no_gradients(fresh: gpu.Context) -> None:
    trainer = Trainer(fresh, initial())
    take_step(trainer)
    with lost(fresh):
        loss = loss_of(trainer, 1)
    with pytest.raises(nn.GraphError, match="overwritten or lost"):
        trainer.backward(loss)
    trainer.backward(loss_of(trainer, 1))
    trainer.adamw_step(lr=0.1)


def test_a_state_restores_whatever_was_lost(fresh: gpu.Context) -> None:
    """The scalars that a trainer begins with are staged where their buffers are in use."""
    with lost(fresh):
        for value in (-5.0, 7.0):
            elementwise.neg(fresh.vector([value] * 4, f32))
        trainer = Trainer(fresh, initial())
    with pytest.raises(TornStateError, match="lost with an error"):
        trainer.state()
    good = Trainer(fresh, initial())
    trainer.load_state(good.state())
    for _ in range(2):
        take_step(trainer)
        take_step(good)
    for name, array in good.state().items():
        np.testing.assert_array_equal(trainer.state()[name], array)


def test_an_interrupted_submission_counts_as_lost(
    fresh: gpu.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(fresh, initial())
    take_step(trainer)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fresh.device.queue, "submit", interrupt)
        with pytest.raises(KeyboardInterrupt), fresh.batch():
            take_step(trainer)
    with pytest.raises(TornStateError, match="lost with an error"):
        trainer.state()


def test_an_interrupted_dispatch_is_not_taken_for_whole(
    fresh: gpu.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer(fresh, initial())
    take_step(trainer)

    def interrupt(_: Recorder) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "open_pass", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trainer.backward(loss_of(trainer, 1))
    trainer.backward(loss_of(trainer, 1))
    trainer.adamw_step(lr=0.1)
    assert trainer.state()["step"] == 2


def test_a_reset_that_is_lost(fresh: gpu.Context) -> None:
    trainer = Trainer(fresh, initial())
    take_step(trainer)
    with lost(fresh):
        trainer.reset()
    with pytest.raises(TornStateError, match="lost with an error"):
        trainer.adamw_step(lr=0.1)


def test_a_step_that_is_lost_with_other_work(fresh: gpu.Context) -> None:
    """Another kernel of the same recording fails, and takes the step along."""
    trainer = Trainer(fresh, {"a": np.ones(8)})
    state = trainer.state()
    doomed = fresh.vector([1.0], f32)
    buffer = doomed.buffer
    elementwise.neg(doomed)
    buffer.destroy()
    with pytest.raises(gpu.Error):
        trainer.adamw_step(lr=0.1)
    with pytest.raises(TornStateError, match="lost with an error"):
        trainer.state()
    trainer.load_state(state)
    assert trainer.step_count == 0


def test_work_that_is_lost_after_a_step_does_no_harm(fresh: gpu.Context) -> None:
    trainer = Trainer(fresh, {"a": np.ones(8)})
    trainer.adamw_step(lr=0.1)
    with lost(fresh):
        pass
    assert trainer.state()["step"] == 1


def test_a_parameter_above_the_limit_is_named(fresh: gpu.Context) -> None:
    with pytest.raises(
        gpu.LimitError, match="'b' of shape \\(300,\\) takes 1200 bytes"
    ):
        Trainer(fresh, {"a": np.ones(3), "b": np.ones(300)})


def test_a_closed_context(fresh: gpu.Context) -> None:
    trainer = Trainer(fresh, initial())
    fresh.close()
    with pytest.raises(gpu.ContextError, match="closed"):
        trainer.adamw_step(lr=0.1)
