"""Training: captured steps, and the losses that are read between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, final

import numpy as np

from examples.characters.data import (
    Ids,
    load_documents,
    parts,
    training_batch,
    validation_batches,
)
from examples.characters.training import share_of_rate
from examples.qwen3.errors import ModelError
from examples.qwen3.lora.adapters import Lora
from examples.qwen3.lora.network import Network
from examples.qwen3.model import Model
from examples.qwen3.text import Tokenizer
from kerngen import nn
from kerngen.runtime import f32, u32
from kerngen.train import CapturedStep, Trainer
from kerngen_kernels import elementwise

MAX_NORM = 1.0
VALIDATION_BATCHES = 4


@final
@dataclass(frozen=True)
class Settings:
    """What a run is determined by, besides the text."""

    lora: Lora = field(default_factory=Lora)
    model: str = ""
    """A digest of the model's weights."""
    context: int = 128
    batch: int = 4
    steps: int = 200
    warmup: int = 10
    learning_rate: float = 2e-4
    seed: int = 0


@final
@dataclass(frozen=True)
class Tokens:
    """What to train with and what to validate with, nine to one, as ids."""

    train: Ids
    validation: Ids

    @property
    def digest(self) -> str:
        """A hash of all of it."""
        return sha256(bytes(self.train) + bytes(self.validation)).hexdigest()[:16]


def docstring_tokens(tokenizer: Tokenizer, characters: int) -> Tokens:
    """Return about so many characters of the standard library's docstrings."""
    train, validation = parts(load_documents(characters))
    return Tokens(_ids(tokenizer, train), _ids(tokenizer, validation))


def text_tokens(tokenizer: Tokenizer, text: str) -> Tokens:
    """Return a text; its last tenth is what to validate with."""
    ids = _ids(tokenizer, text)
    split = len(ids) * 9 // 10
    return Tokens(ids[:split], ids[split:])


def _ids(tokenizer: Tokenizer, text: str) -> Ids:
    return np.array(tokenizer.encode(text), np.uint32)


@final
class Training:
    """The pairs of a model in training."""

    def __init__(self, model: Model, tokens: Tokens, settings: Settings) -> None:
        """Begin with drawn pairs.

        Raises:
            ModelError: If the text has too few tokens, or ids beyond the vocabulary, or the
                model can't be trained.
        """
        _check(tokens, settings.context, model.config.vocabulary)
        self.ctx = ctx = model.ctx
        self.tokens = tokens
        self.settings = settings
        self.network = Network(model, settings.lora, settings.context)
        self.trainer = Trainer(ctx, settings.lora.initial(model.config, settings.seed))
        shape = settings.batch, settings.context
        self._given, self._following = ctx.zeros(shape, u32), ctx.zeros(shape, u32)
        self._sum = ctx.zeros(1, f32)
        self._summed = 0
        self._step: CapturedStep | None = None

    @property
    def step(self) -> int:
        """How many steps are taken."""
        return self.trainer.step_count

    @property
    def unread(self) -> int:
        """Of how many steps the loss was not read yet; a checkpoint has nothing of it."""
        return self._summed

    @property
    def record(self) -> dict[str, Any]:
        """What the run is determined by, for the record beside its checkpoint."""
        flat = asdict(self.settings)
        lora = flat.pop("lora")
        lora["targets"] = " ".join(lora["targets"])
        return {**lora, **flat, "text": self.tokens.digest}

    def take_step(self) -> None:
        """Record a step and submit it: forward, backward, clip, update.

        All steps have the same shapes: the first one is captured, and taken again with
        other batches and rates.
        """
        given, number = self.settings, self.step + 1
        batch = training_batch(
            self.tokens.train, given.batch, given.context, given.seed, number
        )
        self._given.copy_from(batch.given)
        self._following.copy_from(batch.following)
        if self._step is None:
            self._step = self._capture()
        share = share_of_rate(number, given.steps, given.warmup)
        self._step.replay(lr=given.learning_rate * share)
        self._summed += 1
        self.ctx.submit()

    def _capture(self) -> CapturedStep:
        trainer = self.trainer
        with trainer.capture() as step:
            logits = self.network.logits(trainer.parameters, self._given)
            loss = nn.cross_entropy(logits, self._following)
            trainer.backward(loss)
            elementwise.axpy(loss.tensor.reshape(1), self._sum, alpha=1.0)
            trainer.clip_gradients(MAX_NORM)
            trainer.adamw_step(
                lr=step.scalar("lr", self.settings.learning_rate), weight_decay=0.0
            )
        return step

    def read_loss(self) -> float:
        """Wait, and return the mean loss of the steps since the last call, in nats.

        Raises:
            NonFiniteError: If a step was not taken since its gradients were not finite.
        """
        mean = float(self._sum.numpy()[0]) / self._summed
        self._sum.copy_from([0.0])
        self._summed = 0
        return mean

    def validate(self) -> float:
        """Wait, and return the mean loss on text that is not trained with, in nats."""
        given = self.settings
        batches = validation_batches(
            self.tokens.validation, given.batch, given.context, VALIDATION_BATCHES
        )
        losses = [
            nn.cross_entropy(
                self.network.logits(
                    self.trainer.tensors, self.ctx.tensor(batch.given, u32)
                ),
                batch.following,
            ).item()
            for batch in batches
        ]
        return float(np.mean(losses))


def _check(tokens: Tokens, context: int, vocabulary: int) -> None:
    for name in ("train", "validation"):
        ids: Ids = getattr(tokens, name)
        if len(ids) <= context:
            raise ModelError(
                f"The text is too little for rows of {context} tokens: its part "
                f"{name!r} has {len(ids)}. Give more text, or a smaller --context."
            )
        if int(ids.max()) >= vocabulary:
            raise ModelError(
                f"The tokenizer gives the id {ids.max()}; the vocabulary has {vocabulary}."
            )
