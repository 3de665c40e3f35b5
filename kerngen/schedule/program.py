"""The scheduler's result: shaders, with all that the host needs to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final, TypeAlias, final

from kerngen.ir.nodes import Function, Tensor
from kerngen.ir.sizes import Condition
from kerngen.ir.staging.stages import StagedKernel
from kerngen.plan.size import ZERO, Guard, Size
from kerngen.plan.tree import Binding, Needs, Scratch, shader_name
from kerngen.plan.wgsl import MAIN

EVERYWHERE: Final = Needs(workgroup_bytes=16384, invocations=256)
"""The limits that every adapter of WebGPU has at least."""


@final
@dataclass(frozen=True, slots=True)
class ShaderFile:
    """A WGSL file: its name without `.wgsl`, and its text."""

    name: str
    text: str


@final
@dataclass(frozen=True, slots=True)
class DispatchShader:
    """One dispatch: its WGSL, its bindings and its number of workgroups.

    - `stem`: the name of its file, from kernel, stage and schedule; `title`: the file's first
      line
    - `equations`: the equations that it computes, for a comment
    - `variant`: the name of its entry point, "" for `main`; `summary`: the comment above it
    - `code`: its WGSL, as a module of its own; `file`: the file that it is in, with the name
      `entry`, together with other shaders; None until `shared` has assigned one
    - `bindings`: numbered from 1; binding 0 is the kernel's uniform struct, if it has fields
      and `uses_uniform`
    - `groups`: the number of workgroups
    - `trips`: how often the loops of an invocation run: some adapters end loops after a limit
    - `terms`: what a 32-bit counter of the shader counts up to, where that may overflow; the
      runtime refuses calls where it would
    """

    stem: str
    variant: str
    title: str
    summary: str
    equations: tuple[str, ...]
    code: str
    bindings: tuple[Binding, ...]
    uses_uniform: bool
    groups: Size
    workgroup_size: int
    workgroup_bytes: int
    terms: Size = ZERO
    trips: Size = ZERO
    subgroups: bool = False
    """Whether the adapter must have subgroups."""
    constants: tuple[tuple[str, int], ...] = ()
    """The values of its overrides, by name."""

    file: ShaderFile | None = None
    entry: str = MAIN

    @property
    def name(self) -> str:
        """The names of the file and of the entry point in one, as plans have them."""
        assert self.file, "shaders get files when all of a module are there"
        return shader_name(self.file.name, self.entry)


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """Dispatches that compute a stage, one after the other, in calls for which `when` holds.

    If `again` is given, the last `repeated` dispatches run so many times: once for each chunk,
    or step of a recurrence.
    """

    name: str
    when: Guard
    shaders: tuple[DispatchShader, ...]
    scratch: tuple[Scratch, ...] = ()
    again: Size | None = None
    repeated: int = 1


@final
@dataclass(frozen=True, slots=True)
class ScheduledStage:
    """A schedule, lowered to variants; the last variant has no condition.

    `stages` are the names of the stages that it runs together.
    """

    strategy: str
    label: str
    guard: Condition | None
    variants: tuple[Variant, ...]
    reason: str
    stages: tuple[str, ...]

    @property
    def bound(self) -> frozenset[str]:
        """The names of all tensors and buffers that its shaders bind."""
        return frozenset(
            binding.name for shader in self._shaders for binding in shader.bindings
        )

    @property
    def needs(self) -> Needs:
        """The adapter features and limits that are enough for all of its variants."""
        return Needs(
            max(shader.workgroup_bytes for shader in self._shaders),
            max(shader.workgroup_size for shader in self._shaders),
            any(shader.subgroups for shader in self._shaders),
        )

    @property
    def _shaders(self) -> list[DispatchShader]:
        return [shader for variant in self.variants for shader in variant.shaders]


@final
@dataclass(frozen=True, slots=True)
class ScheduledCase:
    """A case of a choice: a schedule, and the choices for the stages that it leaves (`rest`).

    It is chosen if its guard holds, or always if that is None.  `rank` is the schedule's
    place among all candidates of the stage.
    """

    schedule: ScheduledStage
    guard: Condition | None
    rank: int
    rest: tuple[StageChoice, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class StageChoice:
    """A choice between schedules for some stages; `otherwise` runs if no case applies.

    For softmax, the choice is between one shader for all its stages, and one for each:

        top, total, y:  reduce (top), then a choice for total, then one for y
                        rows (top, total and y)

    Without `otherwise`, one of the cases always applies.
    """

    stages: tuple[str, ...]
    cases: tuple[ScheduledCase, ...]
    otherwise: tuple[StageChoice, ...] = ()


def cases_in(choices: Iterable[StageChoice]) -> Iterator[ScheduledCase]:
    """Yield every case of the choices, and those of the choices inside of them."""
    for choice in choices:
        for case in choice.cases:
            yield case
            yield from cases_in(case.rest)
        yield from cases_in(choice.otherwise)


Reasons: TypeAlias = tuple[tuple[str, str], ...]
"""Strategies by name, and why each does not run a stage."""


@final
@dataclass(frozen=True, slots=True)
class StageProgram:
    """The schedules of one stage, in order of preference.

    `schedules` are those whose first stage this is, the last one without a guard; there are
    none if the stage always runs together with earlier ones.
    """

    name: str
    schedules: tuple[ScheduledStage, ...]
    find_others: Callable[[], Reasons] = field(compare=False, repr=False)

    @property
    def others(self) -> Reasons:
        """The strategies that do not run the stage, each with the reason why not."""
        return self.find_others()


@final
@dataclass(frozen=True)
class KernelProgram:
    """A kernel's choices between schedules, with their shaders: ready to be emitted.

    `find_others` returns, for the number of a stage, why other strategies don't run it.  It
    takes time, and only reports call it.
    """

    staged: StagedKernel
    choices: tuple[StageChoice, ...]
    find_others: Callable[[int], Reasons] = field(compare=False, repr=False)
    functions: Mapping[str, Function]

    @cached_property
    def stages(self) -> tuple[StageProgram, ...]:
        """The stages with their schedules, collected from all choices."""
        return tuple(
            StageProgram(
                stage.name,
                tuple(self._schedules(stage.name)),
                partial(self.find_others, number),
            )
            for number, stage in enumerate(self.staged.stages)
        )

    def _schedules(self, stage: str) -> Iterator[ScheduledStage]:
        # The same schedule may be a case of several choices: its rank is the same in all.
        cases = (c for c in cases_in(self.choices) if c.schedule.stages[0] == stage)
        by_rank = {case.rank: case.schedule for case in cases}
        ranks = sorted(by_rank)
        yield from (by_rank[rank] for rank in ranks[:-1])
        yield from (replace(by_rank[rank], guard=None) for rank in ranks[-1:])

    @property
    def shaders(self) -> Iterator[DispatchShader]:
        """The shaders of all schedules, in order; a shader of several schedules is repeated."""
        for stage in self.stages:
            for schedule in stage.schedules:
                for variant in schedule.variants:
                    yield from variant.shaders

    @property
    def files(self) -> tuple[ShaderFile, ...]:
        """The files of its shaders, each once; none before `shared` has assigned files."""
        files = (shader.file for shader in self.shaders)
        return tuple(dict.fromkeys(file for file in files if file))

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """The tensors between stages that some schedule stores in memory."""
        bound = (case.schedule.bound for case in cases_in(self.choices))
        names = frozenset[str]().union(*bound)
        return tuple(x for x in self.staged.temporaries if x.name in names)
