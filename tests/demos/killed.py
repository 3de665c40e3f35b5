"""The characters example, of which a rank kills itself: `STEP RANK`, then its arguments.

Processes that were started again live on, as torchrun counts in TORCHELASTIC_RESTART_COUNT.
"""

from __future__ import annotations

import os
import signal
import sys

from examples.characters.__main__ import main
from examples.characters.training import Training


def take_step(self: Training) -> None:
    """Take a step, or die."""
    died = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    if not died and os.environ["RANK"] == RANK and self.trainer.step_count == int(STEP):
        os.kill(os.getpid(), signal.SIGKILL)
    BEFORE(self)


if __name__ == "__main__":
    _, STEP, RANK, *arguments = sys.argv
    BEFORE = Training.take_step
    Training.take_step = take_step  # type: ignore[method-assign]
    sys.exit(main(arguments))
