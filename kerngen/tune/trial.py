"""Trials of candidates: compile, compare with the reference, and time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias, final

from kerngen.bench.arguments import Sizes, all_lengths, scalars, sets, tensor_bytes
from kerngen.bench.measure import (
    Clock,
    Ramp,
    SamplingLimits,
    clock_of,
    make_ready,
    measure,
    measure_in_turn,
    no_ramp,
    warm_up,
)
from kerngen.compiler import CompiledModule, Compiler
from kerngen.ir.nodes import Function, Kernel
from kerngen.jit.memory import functions as callables
from kerngen.jit.memory import installed
from kerngen.runtime import (
    Context,
    FeatureError,
    LimitError,
    OutOfMemoryError,
    ShapeError,
    ValidationError,
)
from kerngen.runtime.calls.choices import KernelFunction, kernel_of
from kerngen.runtime.calls.kernel import Kernel as RuntimeKernel
from kerngen.schedule.program import ScheduledStage
from kerngen.source.diagnostic import CompileError
from kerngen.tune import bound
from kerngen.tune.candidates import TuneCandidate, named
from kerngen.tune.checked import all_checked, shortened, words
from kerngen.verify.meaning import programs as oracle

_PLAIN: Final = TuneCandidate("generic")


class TrialVerdict(Enum):
    """The outcome of a candidate's trial: timed, wrong, or refused."""

    TIMED = "timed"
    UNFIT = "not possible"
    OVER_LIMITS = "over the adapter's limits"
    WRONG = "wrong"


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """A candidate's verdict, with its time or the reason."""

    verdict: TrialVerdict
    seconds: float = float("inf")
    why: str = ""


@final
@dataclass(frozen=True, slots=True)
class TunedKernel:
    """The kernel to tune, with its present schedules.

    `others` are the modules that the kernel's module imports.
    """

    compiler: Compiler
    name: str
    kernel: Kernel
    others: tuple[CompiledModule, ...] = ()

    def compiled(self, stage: str, candidate: TuneCandidate | None) -> CompiledModule:
        """Compile the kernel with a candidate as its first schedule, or without."""
        subject = self if candidate is None else self.having(stage, candidate)
        schedules = subject.kernel.schedules
        return self.compiler.with_schedules(self.name, self.kernel, schedules)

    def having(self, stage: str, candidate: TuneCandidate) -> TunedKernel:
        """Return the kernel with one more schedule, before its others."""
        schedule = candidate.schedule(stage, self.kernel.span)
        schedules = (schedule, *self.kernel.schedules)
        return replace(self, kernel=replace(self.kernel, schedules=schedules))

    @contextmanager
    def imported(self, compiled: CompiledModule) -> Generator[KernelFunction]:
        """Yield the function of a compiled kernel, for the duration of a block."""
        with installed([*self.others, compiled]) as modules:
            yield callables(compiled, modules[self.name])[self.kernel.name]


@final
@dataclass(frozen=True, slots=True)
class Version:
    """A kernel compiled with a candidate.

    `functions` are the user's functions that it calls. `scheduled` is the stage's first
    schedule, or None if the stage runs together with an earlier one.
    """

    function: KernelFunction
    functions: Mapping[str, Function]
    scheduled: ScheduledStage | None

    @property
    def kernel(self) -> RuntimeKernel:
        """The kernel's runtime form."""
        return kernel_of(self.function)


Inputs: TypeAlias = list[tuple[tuple[Any, ...], tuple[Any, ...]]]


@final
@dataclass(slots=True)
class Trials:
    """Tries candidates for one stage on a context; `stack` owns the compiled kernels.

    The candidate None is the kernel with its present schedules.
    """

    ctx: Context
    subject: TunedKernel
    stage: str
    stack: ExitStack
    ramp: Ramp = no_ramp
    _versions: dict[TuneCandidate | None, Version | str] = field(default_factory=dict)
    _stacks: dict[TuneCandidate | None, ExitStack] = field(default_factory=dict)
    _expected: dict[
        tuple[tuple[str, int], ...], tuple[list[bound.Array], bound.Expected]
    ] = field(default_factory=dict)

    def version(self, candidate: TuneCandidate | None) -> Version | str:
        """Return the kernel compiled with a candidate, or why it can't be."""
        if candidate not in self._versions:
            self._versions[candidate] = self._compile(candidate)
        return self._versions[candidate]

    def _compile(self, candidate: TuneCandidate | None) -> Version | str:
        try:
            compiled = self.subject.compiled(self.stage, candidate)
        except CompileError as error:
            return error.diagnostics[0].message
        stack = self.stack.enter_context(ExitStack())
        self._stacks[candidate] = stack
        function = stack.enter_context(self.subject.imported(compiled))
        stages = compiled.programs[0].stages
        scheduled = next(s for s in stages if s.name == self.stage).schedules
        functions = {each.name: each for each in compiled.module.functions}
        return Version(function, functions, next(iter(scheduled), None))

    def inputs(self, sizes: Sizes) -> Inputs:
        """Return random arguments for timing."""
        version = self.now
        return [*sets(self.ctx, version.kernel, sizes)]

    def attempt(
        self, candidate: TuneCandidate | None, sizes: Sizes, inputs: Inputs, best: float
    ) -> Outcome:
        """Compile, check and time a candidate; a very slow one is timed only briefly."""
        version = self.version(candidate)
        if isinstance(version, str):
            return Outcome(TrialVerdict.UNFIT, why=version)
        try:
            if candidate is not None and not self._runs(version, sizes):
                return Outcome(TrialVerdict.OVER_LIMITS)
            fault = self._fault(version, sizes)
            if fault:
                return Outcome(TrialVerdict.WRONG, why=fault)
            # Checked before it is timed: a fast schedule with wrong results must not win.
            clock = clock_of(self.ctx, _launcher(self.ctx, version, sizes, inputs))
            effort = SamplingLimits(samples=5, launches=50, seconds=0.05)
            make_ready([clock], self.ramp)
            first = warm_up(clock, effort)
            # It takes twice the best time at the end of its warm-up: it can't win.
            if first > 2 * best:
                return Outcome(TrialVerdict.TIMED, first)
            return Outcome(TrialVerdict.TIMED, measure(clock, effort).median)
        except LimitError as error:
            return Outcome(TrialVerdict.OVER_LIMITS, why=str(error))
        except (FeatureError, ValidationError, OutOfMemoryError) as error:
            return Outcome(TrialVerdict.UNFIT, why=str(error))

    def time(
        self,
        candidates: Sequence[TuneCandidate | None],
        sizes: Sizes,
        inputs: Inputs,
        effort: SamplingLimits,
    ) -> list[float]:
        """Return more precise times of candidates, sampled in turn."""
        clocks = [self.clock(each, sizes, inputs) for each in candidates]
        return [timing.median for timing in measure_in_turn(clocks, effort, self.ramp)]

    def clock(
        self, candidate: TuneCandidate | None, sizes: Sizes, inputs: Inputs
    ) -> Clock:
        """Return a clock for a candidate that compiles."""
        return clock_of(
            self.ctx, _launcher(self.ctx, self.known(candidate), sizes, inputs)
        )

    @property
    def now(self) -> Version:
        """The kernel compiled with its present schedules."""
        return self.known(None)

    def known(self, candidate: TuneCandidate | None) -> Version:
        """Return the kernel compiled with a candidate that is known to compile."""
        version = self.version(candidate)
        if isinstance(version, str):
            raise TypeError(version)
        return version

    def keep(self, candidates: Iterable[TuneCandidate]) -> None:
        """Free all compiled kernels but those of some candidates and of the comparison.

        The comparison needs the present schedules, and `generic` for expected results.
        """
        kept = {None, _PLAIN, *candidates}
        for candidate in self._stacks.keys() - kept:
            self._stacks.pop(candidate).close()
            del self._versions[candidate]

    def present(self, sizes: Sizes) -> TuneCandidate | None:
        """Return the present schedule of the stage, or None."""
        label = self._label(self.now, sizes)
        return None if label is None else named(label)

    def _runs(self, version: Version, sizes: Sizes) -> bool:
        """Whether the runtime would choose a candidate's schedule on this adapter."""
        label = version.scheduled.label if version.scheduled else ""
        return self._label(version, sizes) == label

    def _label(self, version: Version, sizes: Sizes) -> str | None:
        choices = self.ctx.choices(version.function, **sizes)
        labels = {choice.stage: choice.strategy for choice in choices}
        return labels.get(self.stage)

    def _fault(self, version: Version, sizes: Sizes) -> str:
        """Return the fault of a candidate's results, or "" if they are right."""
        checked = 0
        for wanted in all_checked(version.kernel.dims, sizes):
            try:
                small, arrays, expected = self._expect_near(version, wanted)
            except ShapeError:  # no call has such lengths
                continue
            values = scalars(version.function, small)
            results = bound.run(self.ctx, version.kernel, arrays, values)
            fault = expected.fault(results)
            if fault and not expected.is_widened:
                fault = self._widen(version, small).fault(results)
            if fault:
                return f"{fault} at {words(small)}"
            checked += 1
        if not checked:
            raise ShapeError(
                f"{version.kernel.name}: no sizes near {words(sizes)} are small enough "
                "for NumPy to check."
            )
        return ""

    def _expect_near(
        self, version: Version, sizes: Sizes
    ) -> tuple[Sizes, list[bound.Array], bound.Expected]:
        """Return the expected results at these sizes, or shorter ones that `generic` can run.

        Some adapters limit the turns of a loop (LimitError), and `generic` has the longest
        loops.
        """
        while True:
            try:
                return sizes, *self._expect(version, sizes)
            except LimitError:
                shorter = shortened(version.kernel.dims, sizes)
                if shorter is None:
                    raise
                sizes = shorter

    def _expect(
        self, version: Version, sizes: Sizes
    ) -> tuple[list[bound.Array], bound.Expected]:
        """Return the arguments at some sizes, and the expected results, cached."""
        key = tuple(sizes.items())
        if key not in self._expected:
            arrays = bound.whole_numbers(version.kernel, sizes)
            values = scalars(version.function, sizes)
            plain = self.version(_PLAIN)
            # `generic` does not fit recurrences: those have only their present schedules.
            kernel = self.now.kernel if isinstance(plain, str) else plain.kernel
            generic = bound.run(self.ctx, kernel, arrays, values)
            exact = bound.reference(version.kernel, arrays, values)
            self._expected[key] = arrays, bound.expect(exact, generic)
        return self._expected[key]

    def _widen(self, version: Version, sizes: Sizes) -> bound.Expected:
        """Return the expected results with bounds by WGSL's accuracy, cached.

        They take longer to compute than a trial, so they are computed only if a result has
        failed the bound that follows from `generic`, which may be exact by luck.
        """
        key = tuple(sizes.items())
        arrays, expected = self._expected[key]
        subject = oracle.Subject(self.subject.kernel, version.functions, version.kernel)
        numbers = oracle.meaning(
            subject,
            all_lengths(version.kernel, sizes),
            arrays,
            scalars(version.function, sizes),
        )
        self._expected[key] = arrays, expected.widened(numbers)
        return self._expected[key][1]


def _launcher(
    ctx: Context, version: Version, sizes: Sizes, inputs: Inputs
) -> Callable[[int], object]:
    kernel, values = version.kernel, scalars(version.function, sizes)

    def launch(turn: int) -> object:
        given, outputs = inputs[turn % len(inputs)]
        return kernel.launch(ctx, given, values, outputs)

    return launch


def fits(ctx: Context, kernel: RuntimeKernel, sizes: Sizes) -> bool:
    """Whether an adapter can bind all tensors of a call."""
    largest = max(tensor_bytes(kernel, sizes).values(), default=0)
    return largest <= ctx.max_tensor_bytes


def kernel_of_subject(subject: TunedKernel) -> RuntimeKernel:
    """Return the runtime form of the kernel that is tuned."""
    with subject.imported(subject.compiled("", None)) as function:
        return kernel_of(function)
