"""Training: steps that wait for nothing, and the losses that are read between them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from examples.characters.data import Text, training_batch, validation_batches
from examples.characters.distributed import Ranks
from examples.characters.model import Sizes, scores
from kerngen import nn
from kerngen.runtime import Context, f32, u32
from kerngen.train import CapturedStep, Trainer
from kerngen_kernels import elementwise

MAX_NORM = 1.0
BETAS = (0.9, 0.99)
WEIGHT_DECAY = 0.1
LAST_RATE = 0.1
"""What the learning rate decays to, as a part of the highest."""

VALIDATION_BATCHES = 8


@final
@dataclass(frozen=True)
class Settings:
    """What a run is determined by, besides the text."""

    sizes: Sizes
    batch: int
    steps: int
    warmup: int
    learning_rate: float
    seed: int
    sharded: bool = False

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, from 1: it rises, then falls as a cosine."""
        return self.learning_rate * share_of_rate(step, self.steps, self.warmup)


def share_of_rate(step: int, steps: int, warmup: int) -> float:
    """Return the share of the highest rate at a step, from 1 to `steps`."""
    if step <= warmup:
        return step / warmup
    way = (step - warmup) / max(1, steps - warmup)
    fall = 0.5 * (1 + math.cos(math.pi * min(way, 1)))
    return LAST_RATE + (1 - LAST_RATE) * fall


@final
class Training:
    """A network in training.

    `readbacks` counts the times that a step waited for the device: it stays 0.
    """

    def __init__(
        self, ctx: Context, text: Text, settings: Settings, ranks: Ranks | None = None
    ) -> None:
        """Begin with drawn parameters, as one of several `ranks` or alone."""
        self.ctx = ctx
        self.text = text
        self.settings = settings
        self.ranks = ranks
        self.trainer = Trainer(
            ctx,
            settings.sizes.initial(settings.seed),
            group=ranks.group if ranks else None,
            sharded=settings.sharded,
        )
        self._rows = slice(None)
        if ranks is not None:
            self._rows = slice(ranks.rank, None, ranks.group.size)
        self.readbacks = 0
        self._sum = ctx.zeros(1, f32)
        self._summed = 0
        length = settings.sizes.context
        shape = len(range(settings.batch)[self._rows]), length
        self._given, self._following = ctx.zeros(shape, u32), ctx.zeros(shape, u32)
        self._places = ctx.vector(np.arange(length), u32)
        self._step: CapturedStep | None = None

    @property
    def record(self) -> dict[str, Any]:
        """What the run is determined by, for the record beside its checkpoint."""
        flat = asdict(self.settings)
        return {**flat.pop("sizes"), **flat, "text": self.text.digest}

    @property
    def characters_per_step(self) -> int:
        """How many characters a step learns from."""
        return self.settings.batch * self.settings.sizes.context

    def take_step(self) -> None:
        """Record a step and submit it: forward, backward, clip, update.

        All steps have the same shapes, so that the first one is captured, and taken again
        with other batches and rates: in Python that takes a quarter of the time.
        """
        before = self.ctx.counters.snapshot()
        given, step = self.settings, self.trainer.step_count + 1
        batch = training_batch(
            self.text.train,
            given.batch,
            given.sizes.context,
            given.seed,
            step,
            self._rows,
        )
        self._given.copy_from(batch.given)
        self._following.copy_from(batch.following)
        if self._step is None:
            self._step = self._capture()
        self._step.replay(lr=given.rate(step))
        self._summed += 1
        self.ctx.submit()
        self.readbacks += (self.ctx.counters - before).readbacks

    def _capture(self) -> CapturedStep:
        trainer, ranks, given = self.trainer, self.ranks, self.settings
        with trainer.capture() as step:
            guesses = scores(trainer.parameters, given.sizes, self._given, self._places)
            loss = nn.cross_entropy(guesses, self._following)
            trainer.backward(loss)
            elementwise.axpy(loss.tensor.reshape(1), self._sum, alpha=1.0)
            if ranks is not None:
                trainer.exchange(ranks.reduce_scatter if given.sharded else ranks.mean)
            trainer.clip_gradients(MAX_NORM)
            trainer.adamw_step(
                lr=step.scalar("lr", given.learning_rate),
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=WEIGHT_DECAY,
            )
        return step

    @property
    def unread(self) -> int:
        """Of how many steps the loss was not read yet; a checkpoint knows nothing of it."""
        return self._summed

    def read_loss(self) -> float:
        """Wait, and return the mean loss of the steps since the last call, in nats.

        Raises:
            NonFiniteError: If a step was not taken since its gradients were not finite.
        """
        mean = float(self._sum.numpy()[0]) / self._summed
        if self.ranks is not None:
            mean = self.ranks.mean_of(mean)
        self._sum.copy_from([0.0])
        self._summed = 0
        return mean

    def validate(self) -> float:
        """Wait, and return the mean loss on text that is not trained with, in nats."""
        given = self.settings
        total = self.ctx.zeros(1, f32)
        batches = validation_batches(
            self.text.validation, given.batch, given.sizes.context, VALIDATION_BATCHES
        )
        for batch in batches:
            guesses = scores(self.trainer.tensors, given.sizes, batch.given)
            loss = nn.cross_entropy(guesses, batch.following)
            elementwise.axpy(loss.tensor.reshape(1), total, alpha=1 / len(batches))
        return float(total.numpy()[0])
