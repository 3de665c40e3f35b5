"""What scheduling yields: shaders with everything that the host must know to run them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Expr, Function, Tensor
from kerngen.ir.stages import StagedKernel
from kerngen.plan.size import ZERO, Guard, Size
from kerngen.plan.tree import Binding, Scratch
from kerngen.shader.printer import comments

EVERYWHERE_BYTES: Final = 16384
EVERYWHERE_INVOCATIONS: Final = 256
"""The workgroup memory and the invocations that WebGPU promises."""


@final
@dataclass(frozen=True, slots=True)
class Shader:
    """One dispatch: a WGSL text and how many workgroups it wants.

    `stem` is the file's name without `.wgsl`; `title` names kernel, stage and schedule,
    and `header` has the comments above the `code`.  Bindings are numbered from 1 in order;
    binding 0 is the kernel's uniform struct, if it has fields and `uses_uniform`.
    `trips` is how often the loops of an invocation run; `terms` is what a 32-bit counter
    of the shader counts up to, where that may overflow.
    """

    stem: str
    title: str
    header: tuple[str, ...]
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

    @property
    def text(self) -> str:
        """The content of the file."""
        return f"{comments(self.header)}\n{self.code}"


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """Dispatches that do a stage where a condition holds."""

    name: str
    when: Guard
    shaders: tuple[Shader, ...]
    scratch: tuple[Scratch, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class ScheduledStage:
    """One way to run a stage; the last variant always applies.

    `covers` counts the stages that it runs: its own and those right after.
    """

    strategy: str
    label: str
    guard: Expr | None
    variants: tuple[Variant, ...]
    reason: str
    covers: int = 1

    @property
    def bound(self) -> frozenset[str]:
        """The names of all that its shaders bind."""
        shaders = (shader for variant in self.variants for shader in variant.shaders)
        return frozenset(
            binding.name for shader in shaders for binding in shader.bindings
        )

    @property
    def runs_everywhere(self) -> bool:
        """Whether it needs no more than every adapter of WebGPU's offers."""
        shaders = [shader for variant in self.variants for shader in variant.shaders]
        return all(
            shader.workgroup_bytes <= EVERYWHERE_BYTES
            and shader.workgroup_size <= EVERYWHERE_INVOCATIONS
            and not shader.subgroups
            for shader in shaders
        )


@final
@dataclass(frozen=True, slots=True)
class StageProgram:
    """A stage and its schedules in order of preference; the last one always applies.

    It has none if it always runs with earlier stages.  `others` says of each strategy
    that does not run it why that is.
    """

    name: str
    schedules: tuple[ScheduledStage, ...]
    others: tuple[tuple[str, str], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A kernel, ready to emit."""

    staged: StagedKernel
    stages: tuple[StageProgram, ...]
    functions: Mapping[str, Function]

    @property
    def shaders(self) -> Iterator[Shader]:
        """All shaders, in order; those of several schedules repeat."""
        for stage in self.stages:
            for schedule in stage.schedules:
                for variant in schedule.variants:
                    yield from variant.shaders

    @property
    def temporaries(self) -> tuple[Tensor, ...]:
        """The tensors that live between dispatches."""
        schedules = (s for stage in self.stages for s in stage.schedules)
        bound = frozenset[str]().union(*(schedule.bound for schedule in schedules))
        return tuple(x for x in self.staged.temporaries if x.name in bound)
