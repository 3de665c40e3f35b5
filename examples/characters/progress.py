"""What is shown of a run: a bar on a terminal, lines in a pipe."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


def in_bits(nats: float) -> str:
    """Return a loss for a person."""
    return f"{nats:.3f} nats ({nats / math.log(2):.3f} bits) per character"


@final
class Display:
    """Shows steps as they are done; `seconds` is how long they took so far."""

    def __init__(self, bar: Progress, first: int, steps: int, characters: int) -> None:
        """Start the clock after step `first`; a step learns from so many characters."""
        self._bar = bar
        self._first, self._steps = first, steps
        self._characters = characters
        self._start = time.perf_counter()
        self._task = bar.add_task("", total=steps, completed=first)

    @property
    def seconds(self) -> float:
        """How long it took so far."""
        return time.perf_counter() - self._start

    def speed(self, step: int) -> str:
        """Return characters per second so far."""
        rate = (step - self._first) * self._characters / self.seconds
        return f"{rate:,.0f} characters/s"

    def show_loss(self, step: int, loss: float) -> None:
        """Move the bar on."""
        self._bar.update(
            self._task,
            completed=step,
            description=f"loss {loss:.3f}, {self.speed(step)}",
        )

    def show_validation(self, step: int, loss: float) -> None:
        """Print a line that stays, above the bar if there is one."""
        line = f"step {step:4} of {self._steps}: validation loss {in_bits(loss)}"
        if step > self._first:
            line += f", {self.speed(step)}"
        self._bar.console.print(line, highlight=False, soft_wrap=True)


@contextmanager
def display(first: int, steps: int, characters: int) -> Generator[Display, None, None]:
    """Show steps from `first` to `steps`."""
    console = Console()
    columns = (
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield Display(bar, first, steps, characters)
