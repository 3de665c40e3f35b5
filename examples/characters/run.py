"""A run: steps, and what is read, shown and saved between them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import final

from examples.characters.options import Options
from examples.characters.progress import Display, display
from examples.characters.record import Curve, load_record, record_path, save_record
from examples.characters.training import Training

READ_EVERY = 10
"""Steps between two reads of the loss, which wait for the device."""


@contextmanager
def interrupts() -> Generator[Callable[[], bool], None, None]:
    """Note Ctrl-C instead of raising at once, so that a step is finished first.

    Yields what tells whether there was one.  A second one raises, as ever.
    """
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)


@final
class Run:
    """A training, the losses so far, and its files."""

    def __init__(self, training: Training, options: Options) -> None:
        """Begin anew, or go on from the checkpoint.

        Raises:
            CheckpointError: If the checkpoint is damaged, or of another network.
            RecordError: If its record is, or is of other settings.
            OSError: If one can't be read.
        """
        self.training = training
        self.options = options
        self.curve = Curve()
        if options.checkpoint is not None and self._resumes(options.checkpoint):
            self._resume(options.checkpoint)

    @property
    def step(self) -> int:
        """How many steps are taken."""
        return self.training.trainer.step_count

    @property
    def is_done(self) -> bool:
        """Whether no step is missing."""
        return self.step >= self.options.settings.steps

    def _resumes(self, checkpoint: Path) -> bool:
        """Whether to go on: processes that were started again do if they can."""
        return self.options.resume or (self.options.distributed and checkpoint.exists())

    @property
    def is_first(self) -> bool:
        """Whether this process writes files: of several, the first one."""
        ranks = self.training.ranks
        return ranks is None or ranks.rank == 0

    def _resume(self, checkpoint: Path) -> None:
        self.training.trainer.load(checkpoint)
        curve = load_record(record_path(checkpoint), self.training.record)
        self.curve = curve.until(self.step)

    def save(self) -> None:
        """Wait, and write record and checkpoint, if there are to be any.

        The record may be ahead of the checkpoint, should the run be killed between the
        two: what it knows of later steps is left out when the run is resumed.
        """
        checkpoint, given = self.options.checkpoint, self.options.settings
        if checkpoint is None:
            return
        if self.is_first:
            save_record(record_path(checkpoint), self.training.record, self.curve)
        if self.is_first or given.sharded:  # whose moments are gathered from all
            self.training.trainer.save(checkpoint)

    def _interrupts(self) -> AbstractContextManager[Callable[[], bool]]:
        """Return what notes Ctrl-C: of several processes, none stops by itself."""
        if self.training.ranks is None:
            return interrupts()
        return nullcontext(lambda: False)

    def finish(self) -> None:
        """Take the steps that are missing, up to a Ctrl-C, and save.

        Raises:
            NonFiniteError: If the gradients of a step were not finite.
        """
        first, steps = self.step, self.options.settings.steps
        with (
            self._interrupts() as interrupted,
            display(first, steps, self.training.characters_per_step) as shown,
        ):
            if not self.curve.validation:
                self._validate(shown)
            while not (self.is_done or interrupted()):
                self.training.take_step()
                self._look(shown)
            if self.training.unread:
                self._read(shown)
            if self.step > first:
                self.save()

    def _look(self, shown: Display) -> None:
        """Read, show and save what is due after a step."""
        saves = self.step % self.options.save_every == 0
        if self.is_done or saves or self.step % READ_EVERY == 0:
            self._read(shown)
        if self.is_done or self.step % self.options.validate_every == 0:
            self._validate(shown)
        if not self.is_done and saves:
            self.save()

    def _read(self, shown: Display) -> None:
        loss = self.training.read_loss()
        self.curve.train.append((self.step, loss))
        shown.show_loss(self.step, loss)

    def _validate(self, shown: Display) -> None:
        loss = self.training.validate()
        self.curve.validation.append((self.step, loss))
        shown.show_validation(self.step, loss)
