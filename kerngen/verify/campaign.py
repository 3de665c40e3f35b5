"""Verify every kernel of some files, in every way that it can be run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final

import hypothesis
from hypothesis.errors import Flaky, Unsatisfiable

from kerngen.plan.tree import Case
from kerngen.runtime import FeatureError, UniformRangeError
from kerngen.verify.calls.canned_calls import call_at, overlaps
from kerngen.verify.calls.draw import Drawn
from kerngen.verify.calls.shrink import plainer
from kerngen.verify.calls.sizes import Fitting, Sizes
from kerngen.verify.differences import InnerProducts, products
from kerngen.verify.effort import SPENT, Effort, StopError, limited
from kerngen.verify.fault import LOST, Fault, WrongError
from kerngen.verify.guarded import PATTERNS, Guarded
from kerngen.verify.hazard_scan import hazards_of
from kerngen.verify.large import check_large, expected_seconds, large_sizes
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.result import (
    DIFFERENCES,
    OVERLAPS,
    REFERENCE,
    Counterexample,
    Verdict,
    WayResult,
)
from kerngen.verify.trial import UNAVAILABLE, Given, Trial
from kerngen.verify.ways import Way, ways

Run: TypeAlias = Callable[[Given], None]

_LARGE_SECONDS: Final = 5.0
"""Seconds that must be left of a way's share of the budget for its large call."""
_PLAINER_SECONDS: Final = 10.0
"""Seconds after the first failure in which hypothesis may look for a simpler one."""
_INTERRUPTED: Final = "interrupted"
_REFUSED: Final = 20
"""Calls that an adapter may refuse, before it accepts any, until a way is given up."""


def _ignore(name: str) -> None:
    """Ignore a step's name: the default of `watch`."""
    del name


@final
@dataclass
class Campaign:
    """Verifies kernels on one adapter.

    There is one large call for each strategy and variant, not for each kernel: it tests
    how workgroups beyond 65,535 are folded into a second dimension, which depends on the
    schedule alone. `folded` has those strategies and variants that had theirs.

    `only` is a text that the names of ways must contain. `watch` is called with
    'kernel schedule' before each way. After Ctrl-C, results so far are yielded, and
    `interrupted` is set.
    """

    guarded: Guarded
    effort: Effort
    only: str = ""
    watch: Callable[[str], None] = _ignore
    interrupted: bool = False
    folded: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def results(self, chosen: Sequence[tuple[str, Subject]]) -> Iterator[WayResult]:
        """Yield the result for each way to run the chosen kernels."""
        planned = self.planned(chosen)
        for number, (blank, way) in enumerate(planned):
            self.watch(f"{blank.kernel} {blank.schedule}")
            effort = self.effort.shared(len(planned) - number)
            yield from self._found(blank, way, effort)
            if self.interrupted:
                return
            self.guarded.renew()

    def planned(
        self, chosen: Sequence[tuple[str, Subject]]
    ) -> list[tuple[WayResult, Way]]:
        """Return the ways to run, with a blank result for each."""
        return [
            (blank, way)
            for file, subject in chosen
            for way in (*ways(subject.runtime), reference_way(subject))
            if self.only in (blank := blank_result(file, subject, way)).schedule
        ]

    def _found(self, blank: WayResult, way: Way, effort: Effort) -> Iterator[WayResult]:
        """Yield the result of one way, then those of checks that a kernel has once.

        Such checks are made beside the reference: hazards, overlaps and differences.
        """
        fitting = Fitting(blank.subject, way)
        if blank.on_device:
            trial = Trial(self.guarded, fitting, blank.tally)
            result = self._held(blank, trial, trial.check, effort)
            yield self._large(result, trial, effort)
            return
        trial = Trial(self.guarded, fitting, blank.tally)
        result = self._held(blank, trial, trial.refer, effort)
        yield replace(result, hazards=hazards_of(fitting))
        if not self.only and not self.interrupted:
            yield from self._overlaps(blank, fitting)
            if blank.subject.forward:
                yield self._differences(blank, effort)

    def _held(
        self, blank: WayResult, trial: Trial, run: Run, effort: Effort
    ) -> WayResult:
        """Run random calls in one way, and return the result with its verdict."""
        calls = Calls(trial, run, effort)
        unsteady, cut = False, ""
        try:
            effort.hold(f"{blank.kernel} {blank.schedule}", trial.fitting, calls.check)
        except Flaky:
            unsteady = True
        except KeyboardInterrupt:
            self.interrupted, cut = True, _INTERRUPTED
        except StopError as stop:
            cut = stop.why
        except (Unsatisfiable, WrongError):
            pass
        if calls.failed:
            found = self._plainest(run, trial.fitting, calls.failed[-1], unsteady)
            return replace(blank, verdict=Verdict.WRONG, counterexample=found)
        why = "; ".join(filter(None, (calls.missing, cut)))
        blank = replace(blank, cut=bool(cut))
        if blank.tally.cases:
            return replace(blank, why=why and f"but not all: {why}")
        if why:
            return replace(blank, verdict=Verdict.NOT_RUN, why=why)
        return replace(blank, verdict=Verdict.UNCALLED, why="no lengths suit it")

    def _large(self, result: WayResult, trial: Trial, effort: Effort) -> WayResult:
        """Make the large call of a strategy and variant, if that was not made yet."""
        kind = result.strategy, result.variant
        held = result.verdict is Verdict.HELD and not self.interrupted
        sizes = large_sizes(trial) if held and kind not in self.folded else None
        if sizes is None:
            return result
        if time.monotonic() > effort.soon - _LARGE_SECONDS:
            return _not_large(result, SPENT, cut=True)
        self.folded.add(kind)
        given = call_at(trial.fitting, sizes)
        try:
            with limited(effort.soon):
                effort.leave(expected_seconds(trial, sizes))
                check_large(trial, given)
        except StopError:
            return _not_large(result, SPENT, cut=True)
        except KeyboardInterrupt:
            self.interrupted = True
            return _not_large(result, _INTERRUPTED, cut=True)
        except UNAVAILABLE as error:
            return _not_large(result, str(error))
        except WrongError as error:
            found = Counterexample(given, error.fault)
            return replace(result, verdict=Verdict.WRONG, counterexample=found)
        return replace(result, large=given.sizes)

    def _overlaps(self, blank: WayResult, fitting: Fitting) -> Iterator[WayResult]:
        """Pass one tensor as two arguments, one of them written: it must be refused."""
        subject = blank.subject
        blank = WayResult(blank.file, blank.kernel, "", OVERLAPS, "", subject)
        first = Fitting(subject, ways(subject.runtime)[0])
        trial = Trial(self.guarded, first, blank.tally)
        for given in overlaps(fitting):
            try:
                trial.run(given, PATTERNS[0])
            except UNAVAILABLE as error:
                yield replace(blank, verdict=Verdict.NOT_RUN, why=str(error))
                return
            except WrongError as error:
                found = Counterexample(given, error.fault)
                yield replace(blank, verdict=Verdict.WRONG, counterexample=found)
                return
            blank.tally.cases += 1
        if blank.tally.cases:
            yield blank

    def _differences(self, blank: WayResult, effort: Effort) -> WayResult:
        """Compare a gradient with finite differences of the kernel that it is of."""
        blank = WayResult(blank.file, blank.kernel, "", DIFFERENCES, "", blank.subject)
        # Seeds of `--seed 0` are 0 to 19, those of `--seed 1` 20 to 39: processes with
        # other seeds make other calls.
        first = effort.seed * effort.examples
        try:
            for seed in range(first, first + effort.examples):
                effort.check(blank.tally.cases)
                found = _difference(blank, seed)
                if found is not None:
                    return replace(blank, verdict=Verdict.WRONG, counterexample=found)
        except KeyboardInterrupt:
            self.interrupted = True
            return replace(blank, why=f"but not all: {_INTERRUPTED}", cut=True)
        except StopError as stop:
            return replace(blank, why=f"but not all: {stop.why}", cut=True)
        if blank.tally.cases:
            return blank
        return replace(blank, verdict=Verdict.UNCALLED, why="no call is smooth")

    def _plainest(
        self, run: Run, fitting: Fitting, found: Counterexample, unsteady: bool
    ) -> Counterexample:
        """Return the simplest call found whose fault is of the same kind.

        A fault that varies, or that lost the device, is returned as it is.
        """
        if unsteady or self.interrupted or found.fault.kind == LOST:
            return replace(found, unsteady=unsteady)
        best = [found]

        def fails(candidate: Given) -> bool:
            try:
                run(candidate)
            except WrongError as error:
                if error.fault.kind == found.fault.kind:
                    best.append(Counterexample(candidate, error.fault))
                    return True
            except (UniformRangeError, *UNAVAILABLE):
                pass
            return False

        try:
            plainer(found.given, fitting, fails)
        except KeyboardInterrupt:
            self.interrupted = True
        return best[-1]


@final
@dataclass
class Calls:
    """The calls made in one way: failures, and reasons why others could not be made.

    `missing` is the adapter's last reason to refuse a call, and `refused` their number.
    """

    trial: Trial
    run: Run
    effort: Effort
    failed: list[Counterexample] = field(default_factory=list[Counterexample])
    missing: str = ""
    refused: int = 0
    _until: float = float("inf")

    def check(self, drawn: Drawn) -> None:
        """Make a call; raise WrongError if its results are wrong."""
        # After a failure, hypothesis calls this with ever simpler calls, up to `_until`.
        if time.monotonic() > self._until:
            raise StopError
        if not self.failed:
            self.effort.check(self.trial.tally.cases)
        given = given_of(drawn, self.trial.fitting)
        try:
            self.run(given)
        except UniformRangeError:
            hypothesis.reject()
        except UNAVAILABLE as error:
            self.missing = str(error)
            self.refused += 1
            # A missing feature is missing for all calls; a limit may be for large ones.
            in_vain = not self.trial.tally.cases and self.refused >= _REFUSED
            if in_vain or isinstance(error, FeatureError):
                raise StopError from None
            hypothesis.reject()
        except WrongError as error:
            self._until = min(self._until, time.monotonic() + _PLAINER_SECONDS)
            self.failed.append(Counterexample(given, error.fault))
            if error.fault.kind == LOST:
                raise StopError from None
            raise


def _difference(blank: WayResult, seed: int) -> Counterexample | None:
    """Compare a gradient with differences at a call; count it, or return the failure."""
    tally = blank.tally
    sizes: Sizes = ()
    found: list[InnerProducts] = []
    try:
        sizes, found = products(blank.subject, seed)
    except Exception as error:  # noqa: BLE001 - the fault is in what a user runs
        text = f"the reference raises {type(error).__name__}: {error}"
        return Counterexample(Given(sizes, (), (), turn=seed), Fault("raised", text))
    for each in found:
        if not each.is_held:
            return Counterexample(Given(sizes, (), (), turn=seed), each.fault)
        tally.worst = max(tally.worst, each.share)
    tally.cases += bool(found)
    tally.elements += len(found)
    tally.known += len(found)
    return None


def blank_result(file: str, subject: Subject, way: Way) -> WayResult:
    """Return a result that is to be filled in after the way was run."""
    names = way.stage, way.strategy.name, way.variant.name
    return WayResult(file, subject.kernel.name, *names, subject)


def _not_large(result: WayResult, why: str, *, cut: bool = False) -> WayResult:
    """Return a result with the reason why no large call was made, unless it has a reason."""
    said = result.why or f"but no large call: {why}"
    return replace(result, why=said, cut=result.cut or cut)


def given_of(drawn: Drawn, fitting: Fitting) -> Given:
    """Return a drawn call with its arguments made."""
    return Given(
        drawn.sizes,
        tuple(drawn.arrays(fitting)),
        drawn.scalars,
        drawn.arrangement,
        drawn.turn,
    )


def reference_way(subject: Subject) -> Way:
    """Return the way to run a kernel that is its NumPy reference."""
    return Way(subject.runtime, "", Case(REFERENCE, ()), Case("", ()))
