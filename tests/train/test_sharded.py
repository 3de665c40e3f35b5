"""Sharded trainers: each rank keeps a part of the moments, and none of the results differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import f32, u32
from kerngen.train import (
    ExchangeError,
    NonFiniteError,
    ProcessGroup,
    TornStateError,
    Trainer,
)
from kerngen.train.checkpoint import read_checkpoint
from kerngen.train.optimizers import Name

from .networks import BATCH, INPUTS, initial
from .ranks import Arrays, Engine, batch_of, check_alike, loss_by, loss_of

State = dict[str, Any]


def take_step(trainer: Trainer, engine: Engine, rank: int) -> float:
    """Take a step of AdamW with settings by name, and return the norm."""
    trainer.backward(loss_of(trainer, trainer.step_count, rank, engine.size))
    trainer.exchange(engine.reduce_scatter(rank))
    norm = trainer.clip_gradients(1.0).item()
    decay = {name: 0.1 * name.endswith("weight") for name in trainer.tensors}
    trainer.adamw_step(lr=1e-2, weight_decay=decay)
    return norm


def train(
    size: int, steps: int, load: Path | None = None, save: Path | None = None
) -> list[tuple[list[float], State]]:
    """The norms and the state of each rank, of a sharded trainer if there are several."""
    engine = Engine(size)

    def run(rank: int) -> tuple[list[float], State]:
        with gpu.open(adapter="reference") as ctx:
            group = engine.group(rank)
            trainer = Trainer(ctx, initial(), group=group, sharded=size > 1)
            if load is not None:
                trainer.load(load)
            norms = [take_step(trainer, engine, rank) for _ in range(steps)]
            if save is not None:
                trainer.save(save)
            return norms, trainer.state()

    return engine.run(run)


def test_ranks_train_as_one_process() -> None:
    (norms, alone), *_ = train(1, 50)
    ranks = train(2, 50)
    check_alike([state for _, state in ranks])
    np.testing.assert_allclose(ranks[0][0], norms, rtol=2e-6)
    assert ranks[0][0] == ranks[1][0]
    check_alike([alone, ranks[0][1]], within=1e-5)


def test_checkpoints_know_nothing_of_the_number_of_ranks(tmp_path: Path) -> None:
    """To the bit: the state of 2 ranks is loaded by 4 and by 1, which give it back."""
    file, again = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    (_, saved), _ = train(2, 3, save=file)
    for size in (4, 1):
        check_alike([saved, *(state for _, state in train(size, 0, file, again))])
        one, two = read_checkpoint(again), read_checkpoint(file)
        assert {n: a.tobytes() for n, a in one.items()} == {
            n: a.tobytes() for n, a in two.items()
        }
    # And 2 ranks that are stopped after 3 steps go on as 2 that never were.
    check_alike([train(2, 2, load=file)[0][1], train(2, 5)[0][1]])


@pytest.mark.parametrize("optimizer", ["adamw", "lion"])
def test_what_a_rank_keeps_reads_and_writes(optimizer: Name) -> None:
    engine = Engine(2)

    def run(rank: int) -> tuple[int, int, int]:
        with gpu.open(adapter="reference") as ctx:
            trainer = Trainer(
                ctx,
                {"a": np.ones(1000), "b": np.ones(24)},
                optimizer=optimizer,
                group=engine.group(rank),
                sharded=True,
            )
            assert trainer.layout.segments == (1152,)  # 1024 + 64, in two equal parts
            kept = sum(
                segment.nbytes
                for name, arena in vars(trainer)["_arenas"].items()
                for segment in arena.segments
                if name != "parameters"
            )
            before = ctx.counters.snapshot()
            trainer.exchange(engine.reduce_scatter(rank))
            trainer.clip_gradients(1.0)
            step = trainer.adamw_step if optimizer == "adamw" else trainer.lion_step
            step(lr=0.1)
            done = ctx.counters - before
            with pytest.raises(gpu.StateError, match="each rank of a sharded trainer"):
                trainer.m["a"].numpy()
            return kept, done.readbacks, done.uploads

    # Gradients and the part of the parameters; the part of the gradients, the total and
    # the parameters.
    moments = {"adamw": 2, "lion": 1}[optimizer]
    assert engine.run(run) == [(576 * 4 * moments, 2, 3)] * 2


def test_steps_that_are_refused() -> None:
    """A NaN on one rank, an overflow that no rank sees alone, and no exchange at all."""
    engine = Engine(2)

    def run(rank: int) -> tuple[list[str], State]:
        with gpu.open(adapter="reference") as ctx:
            trainer = Trainer(
                ctx,
                {"a": np.ones(64), "b": np.ones(64)},
                group=engine.group(rank),
                sharded=True,
            )
            told: list[str] = []
            for values in ({"b": np.nan}, {"a": 8e18, "b": 8e18}):
                trainer.clear_gradients()
                for name, value in values.items():
                    if rank == 1 or np.isfinite(value):
                        trainer.gradients[name].copy_from(np.full(64, value))
                with pytest.raises(NonFiniteError) as caught:
                    trainer.exchange(engine.reduce_scatter(rank))
                told.append(str(caught.value))
            trainer.clear_gradients()
            with pytest.raises(gpu.StateError, match="Call it after backward"):
                trainer.clip_gradients(1.0)
            with pytest.raises(gpu.StateError, match="Call it after backward"):
                trainer.adamw_step(lr=0.1)
            trainer.exchange(engine.reduce_scatter(rank))
            trainer.adamw_step(lr=0.1)
            return told, trainer.state()

    (told, state), (others, other) = engine.run(run)
    assert told == others
    assert "gradients are not finite on rank 1, of 'b'" in told[0]
    assert "squares of the exchanged gradients add up to" in told[1]
    check_alike([state, other])
    assert state["step"] == 1


def test_a_captured_step_waits_for_gradients_and_for_parameters() -> None:
    """The bits are those of the calls, and calls after the update see all of it."""
    engine = Engine(2)

    def run(rank: int) -> State:
        with gpu.open(adapter="reference") as ctx:
            group = engine.group(rank)
            trainer = Trainer(ctx, initial(), group=group, sharded=True)
            x, labels = ctx.zeros((BATCH // 2, INPUTS), f32), ctx.zeros(BATCH // 2, u32)
            weight = trainer.tensors["out.weight"]
            seen = ctx.zeros(weight.shape, f32)
            decay = {name: 0.1 * name.endswith("weight") for name in trainer.tensors}
            with trainer.capture() as step:
                trainer.backward(loss_by(trainer, x, labels))
                trainer.exchange(engine.reduce_scatter(rank))
                trainer.clip_gradients(1.0)
                trainer.adamw_step(lr=step.scalar("lr", 0.5), weight_decay=decay)
                seen.copy_from(weight)
            before = ctx.counters.snapshot()
            for number in range(4):
                rows = batch_of(number, rank, 2)
                x.copy_from(rows[0])
                labels.copy_from(rows[1])
                step.replay(lr=1e-2)
            assert (ctx.counters - before).readbacks == 4 * 2
            np.testing.assert_array_equal(seen.numpy(), weight.numpy())
            if rank:
                x.copy_from(np.full(x.shape, np.nan))
            with pytest.raises(NonFiniteError, match=r"before step 5: .* rank 1"):
                step.replay()
            return trainer.state()

    check_alike([train(2, 4)[0][1], *engine.run(run)])


def test_a_captured_update_without_its_exchange_is_refused() -> None:
    """Its norm would be that of an exchange before the capture."""
    engine = Engine(2)

    def run(rank: int) -> None:
        with gpu.open(adapter="reference") as ctx:
            group = engine.group(rank)
            trainer = Trainer(ctx, {"a": np.ones(64)}, group=group, sharded=True)
            trainer.exchange(engine.reduce_scatter(rank))
            with (
                pytest.raises(gpu.StateError, match="no norm before exchange"),
                trainer.capture(),
            ):
                trainer.adamw_step(lr=0.1)

    engine.run(run)


def test_a_gather_that_fails_tears_the_state(ctx: gpu.Context) -> None:
    """No rank goes on from parameters of which it has updated its part alone."""

    def sums(arrays: Arrays) -> None:
        for array in arrays:
            if array.size < 64:  # the other rank says what this one does
                rows = array.reshape(2, -1)
                rows[1] = rows[0]

    def gone(_: Arrays) -> None:
        raise RuntimeError("connection closed by peer")

    trainer = Trainer(
        ctx, {"a": np.ones(3)}, group=ProcessGroup(0, 2, sums, gone), sharded=True
    )
    trainer.gradients["a"].copy_from(np.ones(3))
    trainer.exchange(lambda _: None)
    with pytest.raises(
        ExchangeError, match="adamw_step, step 1 on rank 0 of 2: 'gone'"
    ):
        trainer.adamw_step(lr=0.1)
    with pytest.raises(TornStateError, match="step 1 reached some of the parameters"):
        trainer.clip_gradients(1.0)


def test_a_checkpoint_that_can_not_be_written(tmp_path: Path) -> None:
    engine = Engine(2)

    def run(rank: int) -> str:
        with gpu.open(adapter="reference") as ctx:
            group = engine.group(rank)
            trainer = Trainer(ctx, {"a": np.ones(3)}, group=group, sharded=True)
            with pytest.raises((OSError, ExchangeError)) as caught:
                trainer.save(tmp_path)  # a folder
            return type(caught.value).__name__

    assert engine.run(run) == ["OSError", "ExchangeError"]


def test_a_group_that_can_not_gather(ctx: gpu.Context) -> None:
    group = ProcessGroup(0, 2, lambda _: None)
    with pytest.raises(gpu.ArgumentError, match="sharded needs a group"):
        Trainer(ctx, {"a": np.ones(3)}, group=group, sharded=True)
