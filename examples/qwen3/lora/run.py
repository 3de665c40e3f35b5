"""A run: steps, and what is read, printed and saved between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from examples.characters.record import Curve, load_record, record_path, save_record
from examples.characters.run import interrupts
from examples.qwen3.lora.training import Training

READ_EVERY = 10
"""Steps between two reads of the loss, which wait for the device."""


@final
@dataclass(frozen=True)
class Files:
    """Where the state of a run is kept, and how often."""

    checkpoint: Path | None = None
    resume: bool = False
    save_every: int = 50
    validate_every: int = 20


@final
class Run:
    """A training, the losses so far, and its files."""

    def __init__(
        self, training: Training, files: Files, show: Callable[[str], object] = print
    ) -> None:
        """Begin anew, or go on from the checkpoint.

        Raises:
            CheckpointError: If the checkpoint is damaged, or of other pairs.
            RecordError: If its record is, or is of other settings.
            OSError: If one can't be read.
        """
        self.training = training
        self.curve = Curve()
        self._files = files
        self._show = show
        if files.resume and files.checkpoint is not None:
            training.trainer.load(files.checkpoint)
            record = record_path(files.checkpoint)
            self.curve = load_record(record, training.record).until(training.step)

    @property
    def is_done(self) -> bool:
        """Whether no step is missing."""
        return self.training.step >= self.training.settings.steps

    def finish(self) -> None:
        """Take the steps that are missing, up to a Ctrl-C, and save.

        Raises:
            NonFiniteError: If the gradients of a step were not finite.
        """
        first = self.training.step
        with interrupts() as interrupted:
            if not self.curve.validation:
                self._validate()
            while not (self.is_done or interrupted()):
                self.training.take_step()
                self._look()
            if self.training.unread:
                self._read()
            if self.training.step > first:
                self.save()

    def save(self) -> None:
        """Wait, and write record and checkpoint, if there are to be any.

        The record may be ahead of the checkpoint, should the run be killed between the
        two: what it has of later steps is left out when the run is resumed.
        """
        checkpoint = self._files.checkpoint
        if checkpoint is not None:
            save_record(record_path(checkpoint), self.training.record, self.curve)
            self.training.trainer.save(checkpoint)

    def _look(self) -> None:
        """Read, print and save what is due after a step."""
        step = self.training.step
        saves = step % self._files.save_every == 0
        if self.is_done or saves or step % READ_EVERY == 0:
            self._read()
        if self.is_done or step % self._files.validate_every == 0:
            self._validate()
        if saves and not self.is_done:
            self.save()

    def _read(self) -> None:
        self.curve.train.append((self.training.step, self.training.read_loss()))

    def _validate(self) -> None:
        step, loss = self.training.step, self.training.validate()
        self.curve.validation.append((step, loss))
        steps = self.training.settings.steps
        self._show(
            f"step {step:4} of {steps}: validation loss {loss:.4f} nats per token"
        )
