"""Every kernel of some files, every way that it may run, held to its meaning."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, final

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Unsatisfiable

from kerngen.ir.nodes import Role
from kerngen.runtime import (
    FeatureError,
    LimitError,
    OutOfMemoryError,
    UniformRangeError,
    ValidationError,
)
from kerngen.runtime.kernel import Schedule, Variant
from kerngen.verify.draw import Drawn, calls
from kerngen.verify.fault import Fault, Tally, WrongError
from kerngen.verify.guarded import Guarded
from kerngen.verify.meaning import Subject
from kerngen.verify.shrink import plainer
from kerngen.verify.sizes import Fitting
from kerngen.verify.trial import Given, Trial
from kerngen.verify.ways import Way, ways

REFERENCE: Final = "NumPy reference"
_UNCHECKED: Final[tuple[HealthCheck, ...]] = (
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.too_slow,
    HealthCheck.large_base_example,
)
"""What hypothesis would warn of: calls that kernels refuse, and slow adapters."""


class Verdict(Enum):
    """What became of one way to run a kernel."""

    HELD = "held"
    WRONG = "wrong"
    NOT_RUN = "not run"
    UNCALLED = "no call found"


@final
@dataclass(frozen=True)
class Counterexample:
    """The plainest call found that goes wrong, and how."""

    given: Given
    fault: Fault


@final
@dataclass(frozen=True)
class Result:
    """What was found of one way to run a kernel; `why` says why it was not run."""

    file: str
    kernel: str
    stage: str
    strategy: str
    variant: str
    verdict: Verdict
    tally: Tally
    why: str = ""
    counterexample: Counterexample | None = None
    subject: Subject | None = None
    way: Way | None = None

    @property
    def schedule(self) -> str:
        """Stage, strategy and variant."""
        return " ".join(filter(None, (self.stage, self.strategy, self.variant)))


@final
class BudgetSpent(BaseException):
    """There is no time left: it ends hypothesis's run from within."""


@final
@dataclass(frozen=True)
class Effort:
    """How many calls of each way are made up, from which seed, and until when."""

    examples: int
    seed: int
    deadline: float = field(default=float("inf"))

    def check(self) -> None:
        """Stop if there is no time left."""
        if time.monotonic() > self.deadline:
            raise BudgetSpent

    def hold(self, what: str, fitting: Fitting, check: Callable[[Drawn], None]) -> None:
        """Let hypothesis make calls up; it raises what the plainest failing one raises."""

        @hypothesis.seed(zlib.crc32(f"{self.seed} {what}".encode()))
        @hypothesis.settings(
            max_examples=self.examples,
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=_UNCHECKED,
            verbosity=Verbosity.quiet,
            print_blob=False,
        )
        @hypothesis.given(calls(fitting))
        def hold(drawn: Drawn) -> None:
            check(drawn)

        hold()


@final
@dataclass(frozen=True)
class Campaign:
    """Holds kernels to their meaning on one adapter."""

    guarded: Guarded
    effort: Effort

    def results(self, file: str, subject: Subject, only: str = "") -> Iterator[Result]:
        """Yield what is found of each way to run a kernel, `only` some schedules."""
        for way in ways(subject.runtime):
            blank = Result(
                file,
                subject.kernel.name,
                way.name,
                way.schedule.strategy,
                way.variant.name,
                Verdict.HELD,
                Tally(),
                subject=subject,
                way=way,
            )
            if only in blank.schedule:
                yield self._result(blank, way)
        plain = reference_way(subject)
        blank = Result(
            file,
            subject.kernel.name,
            "",
            REFERENCE,
            "",
            Verdict.HELD,
            Tally(),
            subject=subject,
            way=plain,
        )
        if only in blank.schedule:
            yield self._result(blank, plain, is_reference=True)

    def _result(self, blank: Result, way: Way, *, is_reference: bool = False) -> Result:
        assert blank.subject is not None
        fitting = Fitting(blank.subject, way)
        trial = Trial(self.guarded, fitting, Tally())
        run = trial.refer if is_reference else trial.check
        failed: list[Given] = []

        def check(drawn: Drawn) -> None:
            self.effort.check()
            given = given_of(drawn, fitting)
            try:
                run(given)
            except UniformRangeError:
                hypothesis.reject()
            except (WrongError, ValidationError, ArithmeticError, TypeError):
                failed.append(given)
                raise

        what = f"{blank.kernel} {blank.schedule}"
        try:
            self.effort.hold(what, fitting, check)
        except BudgetSpent:
            why = "" if trial.tally.cases else "the budget was spent"
            verdict = Verdict.HELD if trial.tally.cases else Verdict.NOT_RUN
            return replace(blank, verdict=verdict, tally=trial.tally, why=why)
        except Unsatisfiable:
            return replace(blank, verdict=Verdict.UNCALLED, why="no lengths suit it")
        except (LimitError, FeatureError, OutOfMemoryError) as error:
            return replace(blank, verdict=Verdict.NOT_RUN, why=str(error))
        except (WrongError, ValidationError) as error:
            found = self._plainest(run, fitting, failed[-1], fault_of(error))
            return replace(
                blank, verdict=Verdict.WRONG, tally=trial.tally, counterexample=found
            )
        if not trial.tally.cases:
            return replace(blank, verdict=Verdict.UNCALLED, why="no lengths suit it")
        return replace(blank, tally=trial.tally)

    def _plainest(
        self, run: Callable[[Given], None], fitting: Fitting, given: Given, fault: Fault
    ) -> Counterexample:
        """Return the call with plainer numbers that go wrong in the same way."""
        faults = {0: fault}

        def fails(candidate: Given) -> bool:
            try:
                run(candidate)
            except (WrongError, ValidationError) as error:
                found = fault_of(error)
                if found.kind == fault.kind:
                    faults[0] = found
                    return True
            except UniformRangeError:
                pass
            return False

        tensors = fitting.subject.kernel.tensors
        memories = [t.memory for t in tensors if t.role is not Role.OUTPUT]
        return Counterexample(plainer(given, memories, fails), faults[0])


def fault_of(error: Exception) -> Fault:
    """Return what an error says."""
    if isinstance(error, WrongError):
        return error.fault
    return Fault("refused", str(error))


def given_of(drawn: Drawn, fitting: Fitting) -> Given:
    """Return a call with its arguments made."""
    return Given(
        drawn.sizes,
        tuple(drawn.arrays(fitting)),
        drawn.scalars,
        drawn.arrangement,
        drawn.turn,
    )


def reference_way(subject: Subject) -> Way:
    """Return a way that takes any lengths; it stands for the reference."""
    return Way(subject.runtime, 0, Schedule(REFERENCE, ()), Variant("", ()))
