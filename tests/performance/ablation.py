"""What each technique is worth: schedules with one option changed, and with checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict, final

from kerngen.bench.arguments import Sizes
from kerngen.bench.measure import (
    Clock,
    Ramp,
    SamplingLimits,
    Timing,
    measure_in_turn,
)
from kerngen.bench.ramp import ramp_of
from kerngen.bench.run import Budget
from kerngen.bench.session import open_contexts
from kerngen.cli.project import select
from kerngen.cli.settings import Project
from kerngen.compiler import Compiler
from kerngen.ir.strategies import OPTIONS
from kerngen.runtime import Context, Error
from kerngen.tune.candidates import TuneCandidate
from kerngen.tune.session import tunable_stages
from kerngen.tune.trial import Trials, TunedKernel, Version

DSL: Final = Path(__file__).parent.parent.parent / "dsl"

Change = Mapping[str, tuple[int, ...]] | str
"""Other values of options, or another strategy altogether."""


@final
@dataclass(frozen=True, slots=True)
class Ablation:
    """A standard kernel, and what is changed of its first stage's schedule."""

    path: str
    sizes: Sizes
    small: Sizes
    changes: Mapping[str, Change]


class RowData(TypedDict):
    """One version: seconds of a launch, and what it does them with.

    `spread` is as of a `Timing`.
    """

    what: str
    schedule: str
    seconds: float
    spread: float


class AblationData(TypedDict):
    """The versions of one kernel, as it is first, and why others are missing."""

    kernel: str
    sizes: dict[str, int]
    rows: list[RowData]
    notes: dict[str, str]


def _cube(n: int) -> Sizes:
    return {"m": n, "k": n, "n": n}


_PRODUCT: Final[Mapping[str, Change]] = {
    "8 x 8 sums per lane": {"micro": (8, 8)},
    "8 x 4 sums per lane": {"tile": (128, 64, 16), "micro": (8, 4)},
    "4 x 4 sums per lane": {"tile": (64, 64, 16), "micro": (4, 4)},
    "8 terms at a time": {"tile": (128, 128, 8)},
    "rows padded": {"pad": (1,)},
    "two buffers": {"buffers": (2,)},
    "lanes 4 x 8": {"lanes": (4, 8)},
    "the generic schedule": "generic",
}

ABLATIONS: Final = (
    Ablation("matmul.matmul_nn", _cube(4096), _cube(256), _PRODUCT),
    Ablation(
        "matmul.matmul_nt",
        {"m": 16, "k": 4096, "n": 4096},
        {"m": 16, "k": 512, "n": 512},
        {
            "a tile per workgroup": {"stream": (0,)},
            "half as many workgroups": {"stream": (264,)},
            "as a large product": "gemm",
        },
    ),
    Ablation(
        "matmul.matmul_nt",
        {"m": 4, "k": 8192, "n": 8192},
        {"m": 4, "k": 512, "n": 512},
        {
            "a row at a time": "gemv",
            "a column at a time": {"columns": (1,)},
            "not unrolled": {"unroll": (1,)},
            "as a large product": "gemm",
        },
    ),
    Ablation(
        "gemv.gemv",
        {"n": 8192, "k": 8192},
        {"n": 512, "k": 512},
        {
            "no subgroups": {"subgroups": (0,)},
            "unrolled by 4": {"unroll": (4,)},
            "a tree of many lanes": "reduce",
            "the generic schedule": "generic",
        },
    ),
    Ablation(
        "softmax.softmax",
        {"m": 4096, "n": 4096},
        {"m": 256, "n": 1024},
        {
            "no subgroups": {"subgroups": (0,)},
            "64 lanes": {"lanes": (64,)},
            "512 lanes": {"lanes": (512,)},
            "maximum apart": "reduce",
        },
    ),
    Ablation(
        "reduction.sum",
        {"n": 2**26},
        {"n": 2**18},
        {"no subgroups": {"subgroups": (0,)}},
    ),
    Ablation(
        "elementwise.add",
        {"n": 2**26},
        {"n": 2**20},
        {"one element per lane": "generic"},
    ),
)
"""What is changed of which kernel; what its strategy has no option for is left out."""


def ablate(budget: Budget) -> Iterator[AblationData]:
    """Yield what each kernel's versions take, until the budget is used up."""
    with ExitStack() as stack:
        contexts, _ = open_contexts("both")
        for ctx in contexts.values():
            stack.enter_context(ctx)
        ramp = ramp_of(next(iter(contexts.values())))
        for each in ABLATIONS:
            if budget.left <= 0:
                return
            rows: list[RowData] = []
            notes: dict[str, str] = {}
            sizes = each.sizes if _is_gpu(contexts) else each.small
            try:
                _ablate(contexts, each, sizes, rows, notes, ramp)
            except Error as error:
                notes["the rest"] = str(error)
            name = each.path.rpartition(".")[2]
            yield {"kernel": name, "sizes": dict(sizes), "rows": rows, "notes": notes}


def _is_gpu(contexts: Mapping[str, Context]) -> bool:
    return next(iter(contexts.values())).kind == "gpu"


def _ablate(
    contexts: Mapping[str, Context],
    ablation: Ablation,
    sizes: Sizes,
    rows: list[RowData],
    notes: dict[str, str],
    ramp: Ramp,
) -> None:
    """Add a row for each version, timed in turn, or a note why there is none."""
    with ExitStack() as stack:
        subject = subject_of(ablation.path)
        stage = tunable_stages(subject)[0]
        runs = {
            name: _Versions(Trials(each, subject, stage, stack), sizes)
            for name, each in contexts.items()
        }
        first = next(iter(runs.values()))
        now = first.present()
        timed = [("as it is", now, first.clock(None))]
        timed += [(name, now, runs[name].clock(None)) for name in [*runs][1:]]
        for what, candidate in _changed(now, ablation.changes):
            clock = first.try_clock(candidate)
            if isinstance(clock, str):
                notes[what] = clock
            elif clock is not None:
                timed.append((what, candidate, clock))
        effort = SamplingLimits(samples=11, seconds=0.15 if first.is_gpu else 0.2)
        timings = measure_in_turn([clock for _, _, clock in timed], effort, ramp)
        for (what, candidate, _), timing in zip(timed, timings, strict=True):
            rows.append(_row(what, candidate, timing))
    for each in contexts.values():
        each.trim()


def _row(what: str, candidate: TuneCandidate, timing: Timing) -> RowData:
    return {
        "what": what,
        "schedule": candidate.text,
        "seconds": timing.median,
        "spread": timing.spread,
    }


def _changed(
    now: TuneCandidate, changes: Mapping[str, Change]
) -> Iterator[tuple[str, TuneCandidate]]:
    """Yield what differs from the schedule there is, and could be said of it."""
    for what, change in changes.items():
        if isinstance(change, str):
            other = TuneCandidate(change)
        elif change.keys() <= OPTIONS[now.strategy].keys():
            other = now.having(change)
        else:
            continue
        if other != now:
            yield what, other


def subject_of(path: str) -> TunedKernel:
    """Return a standard kernel to be compiled in other ways."""
    module, _, name = path.partition(".")
    selection = select(DSL / f"{module}.kern", Project(source=DSL))
    compiler = Compiler(selection.library(), formatted=False)
    (source,) = selection.files
    kernels = compiler.module(source.name).kernels
    kernel = next(each for each in kernels if each.name == name)
    return TunedKernel(compiler, source.name, kernel)


@final
class _Versions:
    """Versions of a stage on one context, all on the same inputs."""

    def __init__(self, trials: Trials, sizes: Sizes) -> None:
        self._trials = trials
        self._sizes = sizes
        self._inputs = trials.inputs(sizes)
        self.is_gpu = trials.ctx.kind == "gpu"

    def present(self) -> TuneCandidate:
        """Return the schedule that there is: a first stage runs with no other."""
        now = self._trials.present(self._sizes)
        if now is None:
            raise TypeError(self._trials.stage)
        return now

    def clock(self, candidate: TuneCandidate | None) -> Clock:
        """Return what times a version."""
        return self._trials.clock(candidate, self._sizes, self._inputs)

    def try_clock(self, candidate: TuneCandidate) -> Clock | str | None:
        """Return the same, or why there is none; nothing if it changes no shader."""
        version = self._trials.version(candidate)
        if isinstance(version, str):
            return version
        if _code(version) == _code(self._running()):
            return None
        clock = self.clock(candidate)
        try:
            clock(1)
        except Error as error:
            return str(error)
        return clock

    def _running(self) -> Version:
        """Return the schedule there is as if it were asked for."""
        version = self._trials.version(self.present())
        return version if isinstance(version, Version) else self._trials.now


def _code(version: Version) -> list[str]:
    variants = version.scheduled.variants if version.scheduled else ()
    return [shader.code for variant in variants for shader in variant.shaders]
