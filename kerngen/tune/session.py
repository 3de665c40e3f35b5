"""A tuning session: the stages of a kernel, tuned one after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from kerngen.bench.arguments import Sizes, own_sizes
from kerngen.bench.measure import SamplingLimits
from kerngen.bench.ramp import ramp_of
from kerngen.ir.strategies import OPTIONS
from kerngen.runtime import Context, ShapeError
from kerngen.tune.candidates import TuneCandidate
from kerngen.tune.search import Search
from kerngen.tune.trial import Inputs, Outcome, Trials, TrialVerdict, TunedKernel, fits
from kerngen.tune.write import Winner

WORTH: Final = 0.98
"""A candidate wins only if it takes less than this part of the present schedule's time."""
_FINALISTS: Final = 3
"""The candidates that are timed again, in turn with the present schedule."""
_OF_SEARCH: Final = 0.85
"""The part of the time for the search; the rest is for the finalists."""


@final
class PresentError(Exception):
    """Raised if the present schedule of a stage is wrong or can't run."""


@final
class InterruptError(Exception):
    """Raised at Ctrl-C; `found` has the results so far."""

    def __init__(self, found: list[Found]) -> None:
        """Keep the results so far."""
        super().__init__("interrupted")
        self.found = found


Watch: TypeAlias = Callable[[str, Sizes, Search], None]
"""A function that is called after each trial with the stage, the sizes and the search."""


@final
@dataclass(frozen=True, slots=True)
class Found:
    """The winner of a stage at some sizes, and statistics of the search."""

    winner: Winner
    verdicts: Counter[TrialVerdict]
    wrong: tuple[tuple[TuneCandidate, str], ...]


def tunable_stages(subject: TunedKernel) -> tuple[str, ...]:
    """Return the stages that have schedules of their own."""
    (program,) = subject.compiled("", None).programs
    return tuple(stage.name for stage in program.stages if stage.schedules)


def tune(
    ctx: Context,
    subject: TunedKernel,
    stages: Sequence[str],
    shapes: Sequence[Sizes],
    budget: float,
    watch: Watch,
) -> list[Found]:
    """Return the winners for each of the shapes and stages.

    A stage is tuned with the winners of the stages before it. It is not tuned where it runs
    together with one of them; then it gets no schedule at other shapes either, which would
    split the two here.

    Raises ShapeError if the adapter can't bind a shape's tensors, KeyError if a dim is
    missing, PresentError if a present schedule can't be timed, and InterruptError with the
    results so far at Ctrl-C.
    """
    end = time.monotonic() + budget
    left = len(stages) * len(shapes)
    found: list[Found] = []
    covered: set[str] = set()
    ramp = ramp_of(ctx)
    for sizes in shapes:
        so_far = subject
        for stage in stages:
            share = max(end - time.monotonic(), 0.0) / left
            left -= 1
            with ExitStack() as stack:
                trials = Trials(ctx, so_far, stage, stack, ramp)
                try:
                    one = _tune_one(trials, sizes, share, watch)
                except InterruptError as interrupted:
                    raise InterruptError([*found, *interrupted.found]) from None
                except KeyboardInterrupt:
                    raise InterruptError(found) from None
            if one is None:
                covered.add(stage)
                continue
            found.append(one)
            if one.winner.candidate is not None:
                so_far = so_far.having(stage, one.winner.candidate)
    return [_alone(each) if each.winner.stage in covered else each for each in found]


def _alone(found: Found) -> Found:
    """Return the results of a stage without its winner, as if nothing was faster."""
    winner = replace(found.winner, candidate=None, after=found.winner.before)
    return replace(found, winner=winner)


def _tune_one(
    trials: Trials, sizes: Sizes, seconds: float, watch: Watch
) -> Found | None:
    try:
        return _search(trials, sizes, seconds, watch)
    finally:
        trials.ctx.trim()


def _search(trials: Trials, sizes: Sizes, seconds: float, watch: Watch) -> Found | None:
    """Search for a stage's winner; None if the stage runs together with an earlier one."""
    end = time.monotonic() + _OF_SEARCH * seconds
    kernel = trials.now.kernel
    own = own_sizes(kernel, sizes)
    # First all strategies and their variations, then the finalists once more.
    if not fits(trials.ctx, kernel, own):
        raise ShapeError(
            f"{kernel.name}: the adapter can't bind its tensors at {dict(own)}: tune it "
            f"at smaller sizes."
        )
    present = trials.present(own)
    if present is None:
        return None
    inputs = trials.inputs(own)
    each = (1 - _OF_SEARCH) * seconds / (_FINALISTS + 1)
    search = Search(
        lambda candidate, best: _attempt(trials, candidate, own, inputs, best),
        end,
    )
    try:
        for _ in search.run([present, *map(TuneCandidate, _strategies())]):
            trials.keep(search.fastest(_FINALISTS + 1))
            watch(trials.stage, own, search)
        effort = SamplingLimits(samples=11, seconds=min(each / 2, 0.5))
        others = [c for c in search.fastest(_FINALISTS + 1) if c != present]
        winner = _final(trials, own, inputs, others[:_FINALISTS], effort)
    except KeyboardInterrupt:
        raise InterruptError(_so_far(trials.stage, own, search)) from None
    return _found(winner, search)


def _found(winner: Winner, search: Search) -> Found:
    wrong = tuple(
        (candidate, outcome.why)
        for candidate, outcome in search.found.items()
        if outcome.verdict is TrialVerdict.WRONG and candidate is not None
    )
    return Found(winner, search.verdicts, wrong)


def _so_far(stage: str, sizes: Sizes, search: Search) -> list[Found]:
    """Return the best so far of an interrupted search; nothing before the first time."""
    if None not in search.found:
        return []
    before = search.found[None].seconds
    winner = Winner(stage, sizes, search.best, None, before, search.seconds)
    return [_found(winner, search)]


def _attempt(
    trials: Trials,
    candidate: TuneCandidate | None,
    sizes: Sizes,
    inputs: Inputs,
    best: float,
) -> Outcome:
    """Try a candidate; raise PresentError if the present schedule is wrong or fails."""
    outcome = trials.attempt(candidate, sizes, inputs, best)
    if candidate is None and outcome.verdict is not TrialVerdict.TIMED:
        present = trials.present(sizes)
        schedule = present.text if present else "none"
        reason = outcome.why.rstrip(".")
        why = f"{outcome.verdict.value}{reason and f': {reason}'}"
        raise PresentError(
            f"The schedule that '{trials.subject.kernel.name}.{trials.stage}' has now, "
            f"{schedule}, is {why}."
        )
    return outcome


def _strategies() -> Iterable[str]:
    """Return the strategies, the plainest one last."""
    return sorted(OPTIONS, key=lambda name: name == "generic")


def _final(
    trials: Trials,
    sizes: Sizes,
    inputs: Inputs,
    finalists: Sequence[TuneCandidate],
    effort: SamplingLimits,
) -> Winner:
    """Return the best of the finalists, timed in turn with the present schedule."""
    before, *after = trials.time([None, *finalists], sizes, inputs, effort)
    times = dict(zip(finalists, after, strict=True))
    best = min(times, key=lambda each: times[each], default=None)
    if best is None or times[best] > WORTH * before:
        return Winner(trials.stage, sizes, None, None, before, before)
    scheduled = trials.known(best).scheduled
    return Winner(trials.stage, sizes, best, scheduled, before, times[best])
