"""Gradients that are not finite: no step is taken, and the user is told."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen.train import NonFiniteError, Trainer

from .networks import initial, loss_of, poison, take_step


@pytest.fixture
def trainer(ctx: gpu.Context) -> Trainer:
    """A trainer that has taken two good steps."""
    trainer = Trainer(ctx, initial())
    take_step(trainer)
    take_step(trainer)
    return trainer


def contents(trainer: Trainer) -> list[NDArray[np.float32]]:
    return [
        tensor.numpy()
        for group in (trainer.tensors, trainer.m, trainer.v)
        for tensor in group.values()
    ]


def assert_unchanged(trainer: Trainer, before: list[NDArray[np.float32]]) -> None:
    for array, other in zip(contents(trainer), before, strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("clipped", [False, True])
def test_a_bad_step_is_not_taken_and_the_next_read_says_so(
    trainer: Trainer, value: float, clipped: bool
) -> None:
    before = contents(trainer)
    poison(trainer, "out.bias", value)
    if clipped:
        trainer.clip_gradients(1.0)
    trainer.adamw_step(lr=0.1)
    assert trainer.step_count == 3
    with pytest.raises(NonFiniteError, match=r"Step 3: .*after step 2\.") as caught:
        trainer.tensors["out.weight"].numpy()
    assert "'out.bias'" in str(caught.value)
    assert trainer.step_count == 2
    assert_unchanged(trainer, before)


def test_steps_after_a_bad_one_wait_for_the_user(trainer: Trainer) -> None:
    before = contents(trainer)
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    take_step(trainer)
    take_step(trainer)
    with pytest.raises(NonFiniteError, match="Steps 3 to 5 were not taken"):
        loss_of(trainer, 0).item()
    assert trainer.step_count == 2
    assert_unchanged(trainer, before)


def test_training_goes_on_as_if_the_bad_step_had_not_been(
    trainer: Trainer, ctx: gpu.Context
) -> None:
    other = Trainer(ctx, initial())
    for _ in range(4):
        take_step(other)
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    with pytest.raises(NonFiniteError):
        trainer.check()
    for _ in range(2):
        take_step(trainer)
    assert_unchanged(trainer, contents(other))


def test_a_clip_by_a_norm_of_nan_leaves_nothing_behind(either: gpu.Context) -> None:
    """Neither in the gradients, which are written anew, nor in the gaps between them."""
    trainer, other = (Trainer(either, initial()) for _ in range(2))
    poison(trainer)
    trainer.clip_gradients(1.0)
    trainer.adamw_step(lr=0.1)
    with pytest.raises(NonFiniteError, match=r"not finite: 'out\.bias' \(1\)\."):
        trainer.check()
    take_step(trainer)
    take_step(other)
    assert_unchanged(trainer, contents(other))


def test_any_read_of_the_context_tells(trainer: Trainer, ctx: gpu.Context) -> None:
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    other = ctx.vector([1.0], f32)
    with pytest.raises(NonFiniteError):
        asyncio.run(other.read_async())
    assert other.item() == 1.0


def test_no_checkpoint_is_written_of_a_bad_step(
    trainer: Trainer, tmp_path: Path
) -> None:
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    with pytest.raises(NonFiniteError):
        trainer.save(tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []
    trainer.save(tmp_path / "x.safetensors")
    trainer.load(tmp_path / "x.safetensors")
    assert trainer.step_count == 2


def test_one_look_is_enough(trainer: Trainer, ctx: gpu.Context) -> None:
    trainer.check()
    before = ctx.counters.snapshot()
    trainer.check()
    assert (ctx.counters - before).readbacks == 0


def test_two_trainers_of_a_context_tell_both(ctx: gpu.Context) -> None:
    trainers = [Trainer(ctx, initial()) for _ in range(2)]
    for trainer in trainers:
        poison(trainer)
        trainer.adamw_step(lr=0.1)
    for _ in trainers:
        with pytest.raises(NonFiniteError):
            ctx.zeros(1, f32).numpy()
    ctx.zeros(1, f32).numpy()
    assert [trainer.step_count for trainer in trainers] == [0, 0]


def test_only_gradients_of_the_step_count(trainer: Trainer) -> None:
    poison(trainer, "out.bias")
    trainer.adamw_step(lr=0.1, parameters=["hidden.weight"])
    trainer.check()
    assert trainer.step_count == 3


def test_an_error_at_once_if_asked_for(trainer: Trainer, ctx: gpu.Context) -> None:
    trainer.backward(loss_of(trainer, 0))
    poison(trainer, "hidden.bias", np.inf)
    before = ctx.counters.snapshot()
    with pytest.raises(
        NonFiniteError, match=r"before step 3: .* inf.*'hidden\.bias' \(1\)"
    ):
        trainer.clip_gradients(1.0, error_if_nonfinite=True)
    assert trainer.step_count == 2
    assert np.isfinite(trainer.gradients["out.weight"].numpy()).all()
    trainer.backward(loss_of(trainer, 0))
    before = ctx.counters.snapshot()
    trainer.clip_gradients(1.0, error_if_nonfinite=True)
    assert (ctx.counters - before).readbacks == 1


def test_a_clip_does_not_vouch_for_what_comes_after(trainer: Trainer) -> None:
    before = contents(trainer)
    trainer.clip_gradients(1.0, error_if_nonfinite=True)
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    with pytest.raises(NonFiniteError, match=r"'out\.bias' \(1\)"):
        trainer.check()
    assert_unchanged(trainer, before)


def test_a_clip_of_all_does_not_speak_for_some(trainer: Trainer) -> None:
    poison(trainer, "out.bias")
    trainer.clip_gradients(1e9)
    trainer.gradients["out.weight"].clear()
    trainer.adamw_step(lr=0.1, parameters=["out.weight"])
    trainer.check()
    assert trainer.step_count == 3


def test_gradients_that_are_gone_are_not_named(trainer: Trainer) -> None:
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    trainer.backward(loss_of(trainer, 0))
    with pytest.raises(NonFiniteError, match="Other gradients have replaced them"):
        trainer.check()


def test_waiting_for_the_norm_is_one_readback_a_step(
    trainer: Trainer, ctx: gpu.Context
) -> None:
    trainer.check()
    before = ctx.counters.snapshot()
    for _ in range(3):
        trainer.backward(loss_of(trainer, 0))
        trainer.clip_gradients(1.0, error_if_nonfinite=True)
        trainer.adamw_step(lr=0.1)
    assert (ctx.counters - before).readbacks == 3


def test_other_threads_read_without_being_told(
    trainer: Trainer, ctx: gpu.Context
) -> None:
    x = ctx.vector([1.0], f32)
    poison(trainer)
    trainer.adamw_step(lr=0.1)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(x.numpy).result() == [1.0]
    with pytest.raises(NonFiniteError, match="Step 3"):
        x.numpy()


def test_an_interrupt_while_the_device_is_asked(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(trainer)
    trainer.adamw_step(lr=0.1)

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_findings", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer.check()
    monkeypatch.undo()
    with pytest.raises(NonFiniteError, match="Step 3"):
        trainer.state()
    assert trainer.state()["step"] == 2


def test_a_norm_that_overflows(trainer: Trainer) -> None:
    poison(trainer, "out.bias", 3e38)
    trainer.adamw_step(lr=0.1)
    with pytest.raises(NonFiniteError, match="but the sum of their squares is not"):
        trainer.check()
