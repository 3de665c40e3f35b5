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
from kerngen.verify.guarded import PATTERNS, Guarded
from kerngen.verify.large import check_large, large_call
from kerngen.verify.meaning import Subject
from kerngen.verify.overlaps import overlaps
from kerngen.verify.shrink import plainer
from kerngen.verify.sizes import Fitting, Sizes
from kerngen.verify.trial import Given, Trial
from kerngen.verify.ways import Way, ways

REFERENCE: Final = "NumPy reference"
OVERLAPS: Final = "overlaps refused"
_LARGE_SECONDS: Final = 5.0
"""What must be left of a budget for a large call."""
_UNAVAILABLE: Final = (LimitError, FeatureError, OutOfMemoryError)
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
    """What was found of one way to run a kernel; `why` says why it was not run.

    `large` are the lengths of a call with more workgroups than one dimension holds.
    """

    file: str
    kernel: str
    stage: str
    strategy: str
    variant: str
    verdict: Verdict
    tally: Tally
    subject: Subject
    why: str = ""
    counterexample: Counterexample | None = None
    large: Sizes = ()

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
    """How many calls of each way are made up, from which seed, and until when.

    A way that has been called at all ends `soon`, so that there is time for the others.
    """

    examples: int
    seed: int
    deadline: float = float("inf")
    soon: float = float("inf")

    def shared(self, left: int) -> Effort:
        """Return what one way may take, if so many are left."""
        now = time.monotonic()
        return replace(self, soon=now + (self.deadline - now) / max(left, 1))

    def check(self, tally: Tally) -> None:
        """Stop if there is no time left."""
        now = time.monotonic()
        if now > self.deadline or (tally.cases and now > self.soon):
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
@dataclass
class Campaign:
    """Holds kernels to their meaning on one adapter; `left` ways are to share the time.

    How workgroups fold depends on the schedule, little on the kernel: so there is one
    large call for each strategy and variant.
    """

    guarded: Guarded
    effort: Effort
    left: int
    folded: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def results(self, file: str, subject: Subject, only: str = "") -> Iterator[Result]:
        """Yield what is found of each way to run a kernel, `only` some schedules."""
        for way in ways(subject.runtime):
            blank = self._blank(file, subject, way)
            if only in blank.schedule:
                yield self._large(self._result(blank, way), way)
        plain = reference_way(subject)
        blank = self._blank(file, subject, plain)
        if only in blank.schedule:
            yield self._result(blank, plain, is_reference=True)
        if not only:
            yield from self._overlaps(replace(blank, strategy=OVERLAPS), plain)

    def _blank(self, file: str, subject: Subject, way: Way) -> Result:
        is_way = bool(way.schedule.variants)
        return Result(
            file,
            subject.kernel.name,
            way.name if is_way else "",
            way.schedule.strategy,
            way.variant.name,
            Verdict.HELD,
            Tally(),
            subject,
        )

    def _result(self, blank: Result, way: Way, *, is_reference: bool = False) -> Result:
        """Hold one way to calls that are made up."""
        fitting = Fitting(blank.subject, way)
        trial = Trial(self.guarded, fitting, blank.tally)
        run = trial.refer if is_reference else trial.check
        effort = self.effort.shared(self.left)
        self.left -= 1
        failed: list[Given] = []

        def check(drawn: Drawn) -> None:
            effort.check(trial.tally)
            given = given_of(drawn, fitting)
            try:
                run(given)
            except UniformRangeError:
                hypothesis.reject()
            except (WrongError, ValidationError):
                failed.append(given)
                raise

        try:
            effort.hold(f"{blank.kernel} {blank.schedule}", fitting, check)
        except BudgetSpent:
            if blank.tally.cases:
                return blank
            return replace(blank, verdict=Verdict.NOT_RUN, why="the budget was spent")
        except Unsatisfiable:
            pass
        except _UNAVAILABLE as error:
            return replace(blank, verdict=Verdict.NOT_RUN, why=str(error))
        except (WrongError, ValidationError) as error:
            found = self._plainest(run, fitting, failed[-1], fault_of(error))
            return replace(blank, verdict=Verdict.WRONG, counterexample=found)
        if not blank.tally.cases:
            return replace(blank, verdict=Verdict.UNCALLED, why="no lengths suit it")
        return blank

    def _large(self, result: Result, way: Way) -> Result:
        """Make a large call too, if none by such a schedule was made yet."""
        kind = way.schedule.strategy, way.variant.name
        late = (
            time.monotonic() > self.effort.shared(self.left + 1).soon - _LARGE_SECONDS
        )
        if kind in self.folded or result.verdict is not Verdict.HELD or late:
            return result
        trial = Trial(self.guarded, Fitting(result.subject, way), result.tally)
        given = large_call(trial)
        if given is None:
            return result
        self.folded.add(kind)
        try:
            check_large(trial, given)
        except _UNAVAILABLE as error:
            return replace(result, why=f"but no large call: {error}")
        except (WrongError, ValidationError) as error:
            found = Counterexample(given, fault_of(error))
            return replace(result, verdict=Verdict.WRONG, counterexample=found)
        return replace(result, large=given.sizes)

    def _overlaps(self, blank: Result, way: Way) -> Iterator[Result]:
        """Pass tensors twice that may not be."""
        blank = replace(blank, tally=Tally())
        first = ways(blank.subject.runtime)[0]
        trial = Trial(self.guarded, Fitting(blank.subject, first), blank.tally)
        for given in overlaps(Fitting(blank.subject, way)):
            try:
                trial.run(given, PATTERNS[0])
            except _UNAVAILABLE as error:
                yield replace(blank, verdict=Verdict.NOT_RUN, why=str(error))
                return
            except WrongError as error:
                found = Counterexample(given, fault_of(error))
                yield replace(blank, verdict=Verdict.WRONG, counterexample=found)
                return
            blank.tally.cases += 1
        if blank.tally.cases:
            yield blank

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

        return Counterexample(plainer(given, fitting, fails), faults[0])


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
