"""The result for one way to run a kernel: a verdict, and its details."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, final

from kerngen.verify.calls.sizes import Sizes
from kerngen.verify.fault import Fault, Tally
from kerngen.verify.hazards import Hazard
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.trial import Given

REFERENCE: Final = "NumPy reference"
OVERLAPS: Final = "overlaps refused"
DIFFERENCES: Final = "differences"


class Verdict(Enum):
    """The outcome for one way to run a kernel."""

    HELD = "held"
    WRONG = "wrong"
    NOT_RUN = "not run"
    UNCALLED = "no call found"


@final
@dataclass(frozen=True)
class Counterexample:
    """The simplest failing call; `unsteady` if it does not fail each time."""

    given: Given
    fault: Fault
    unsteady: bool = False


@final
@dataclass(frozen=True)
class WayResult:
    """The result for one way to run a kernel; `why` is the reason if it was not run.

    `cut` is set if the budget or Ctrl-C ended it early. `large` are the lengths of the
    call with workgroups in two dimensions. `hazards` are operations where ordinary
    numbers left f32's range.
    """

    file: str
    kernel: str
    stage: str
    strategy: str
    variant: str
    subject: Subject
    verdict: Verdict = Verdict.HELD
    tally: Tally = field(default_factory=Tally)
    why: str = ""
    cut: bool = False
    counterexample: Counterexample | None = None
    large: Sizes = ()
    hazards: tuple[Hazard, ...] = ()

    @property
    def schedule(self) -> str:
        """The name of the way: stage, strategy and variant."""
        return " ".join(filter(None, (self.stage, self.strategy, self.variant)))

    @property
    def is_way(self) -> bool:
        """Whether it is for a way to run the kernel, not for another check."""
        return self.strategy not in {OVERLAPS, DIFFERENCES}

    @property
    def on_device(self) -> bool:
        """Whether the way runs on an adapter, not in NumPy."""
        return self.is_way and self.strategy != REFERENCE
