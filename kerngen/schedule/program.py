"""What scheduling yields: shaders with everything that the host must know to run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Expr, Function, Tensor
from kerngen.ir.stages import StagedKernel

EVERYWHERE_BYTES: Final = 16384
EVERYWHERE_INVOCATIONS: Final = 256
"""The workgroup memory and the invocations that WebGPU promises."""


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """A storage binding: a tensor of the kernel, a temporary, or a scratch buffer."""

    name: str
    writes: bool


@final
@dataclass(frozen=True, slots=True)
class Scratch:
    """A private buffer of one variant: elements of 4 bytes; `length` is host code."""

    name: str
    length: str


@final
@dataclass(frozen=True, slots=True)
class Shader:
    """One dispatch: a WGSL text and how many workgroups it wants.

    `stem` is the file's name without `.wgsl`.  Bindings are numbered from 1 in order;
    binding 0 is the kernel's uniform struct, if it has fields and `uses_uniform`.
    `groups` is a Python expression over the dims (`d["m"]`) and `ceil_div`.
    """

    stem: str
    text: str
    bindings: tuple[Binding, ...]
    uses_uniform: bool
    groups: str
    workgroup_size: int
    workgroup_bytes: int
    terms: str = ""
    """Host code: what a 32-bit counter of the shader runs up to, if it may overflow."""
    turns: str = ""
    """Host code: how often the loops of an invocation turn, if there are any."""
    subgroups: bool = False
    """Whether the adapter must have subgroups."""


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """Dispatches that do a stage when `when` holds (Python over dims; "" is always)."""

    name: str
    when: str
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
    def temporaries(self) -> tuple[Tensor, ...]:
        """The tensors that live between dispatches."""
        schedules = (s for stage in self.stages for s in stage.schedules)
        bound = frozenset[str]().union(*(schedule.bound for schedule in schedules))
        return tuple(x for x in self.staged.temporaries if x.name in bound)
