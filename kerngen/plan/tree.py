"""The plan of a kernel: what a call needs, what it may run, and what it is checked for.

Plain data, with nothing of Python's or of a device in it: a plan is written to a file
(`write.py`) and read again (`read.py`) by a runtime in any language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from kerngen.plan.size import ALWAYS, ZERO, Guard, Size

Access: TypeAlias = Literal["read", "update", "write"]
Axes: TypeAlias = tuple[str | int, ...]
"""Lengths of a tensor's axes: dims by name, or numbers."""


@final
@dataclass(frozen=True, slots=True)
class TensorPlan:
    """A tensor of a call; `element` is WGSL's name of a type, or a struct's."""

    name: str
    element: str
    axes: Axes
    access: Access


@final
@dataclass(frozen=True, slots=True)
class TemporaryPlan:
    """A tensor that lives between the dispatches of one call."""

    name: str
    element: str
    axes: Axes


@final
@dataclass(frozen=True, slots=True)
class ScalarPlan:
    """A parameter in the uniform struct: a scalar, vector, matrix or struct."""

    name: str
    element: str


@final
@dataclass(frozen=True, slots=True)
class DerivedDim:
    """A length computed from dims and scalars; `text` is its source, as in `h / 2`."""

    name: str
    text: str
    value: Size


@final
@dataclass(frozen=True, slots=True)
class Term:
    """A coefficient times an index that ranges over `extent`."""

    coefficient: Size
    extent: str | int


@final
@dataclass(frozen=True, slots=True)
class RangeCheck:
    """A subscript that must stay inside its axis, wherever no `around` is 0.

    Its value is `offset` plus the `terms`, by 32-bit arithmetic; `extent` is the axis's
    length, `text` the subscript's source.  One that `is_guarded` is read under a condition.
    """

    text: str
    tensor: str
    axis: int
    extent: str | int
    terms: tuple[Term, ...]
    around: Axes
    offset: Size = ZERO
    is_guarded: bool = False


@final
@dataclass(frozen=True, slots=True)
class Gather:
    """An axis of a tensor that is gathered from, wherever no `around` is 0.

    `extent` is the axis's length; subscripts are clamped to it, so it must not be 0.
    """

    tensor: str
    axis: int
    extent: str | int
    around: Axes


@final
@dataclass(frozen=True, slots=True)
class Scratch:
    """A private buffer of one variant: `length` elements of 4 bytes."""

    name: str
    length: Size


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """A storage binding of a dispatch: a tensor, a temporary or a scratch buffer."""

    name: str
    writes: bool = False


@final
@dataclass(frozen=True, slots=True)
class Dispatch:
    """One shader and its number of workgroups; 0 workgroups are not recorded.

    The shader is `<wgsl>.wgsl` in the kernel's folder, its entry point `main`, all in
    bind group 0: binding 0 is the uniform struct where `uses_uniform`, `bindings` follow
    from 1.  Workgroups beyond the adapter's limit fold into two dimensions: the shader
    counts itself as `y * num_workgroups.x + x` and returns beyond the total.

    `trips` is how often the loops of one invocation run, for adapters that stop after a
    number.  `terms` is what a 32-bit counter of the shader counts up to, where that may
    overflow.  `constants` are the values of the shader's overrides, by name.
    """

    wgsl: str
    bindings: tuple[Binding, ...]
    groups: Size
    uses_uniform: bool = True
    trips: Size = ZERO
    terms: Size = ZERO
    constants: tuple[tuple[str, int], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """Dispatches for calls on which a condition holds."""

    name: str
    dispatches: tuple[Dispatch, ...]
    when: Guard = ALWAYS
    scratch: tuple[Scratch, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """One way to run a stage, with what it needs of the adapter.

    `covers` counts the stages that it runs: its own and those right after.
    """

    strategy: str
    variants: tuple[Variant, ...]
    when: Guard = ALWAYS
    workgroup_bytes: int = 0
    invocations: int = 64
    covers: int = 1
    subgroups: bool = False
    """Whether the adapter must have them."""


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """A stage and its schedules: the first that applies runs, and the last always does.

    One that always runs with earlier stages has none.
    """

    name: str
    schedules: tuple[Schedule, ...]


@final
@dataclass(frozen=True, slots=True)
class KernelPlan:
    """All that a runtime knows of a kernel, besides the functions that Python computes.

    `tensors` are the parameters in the source's order, then the outputs.  `guards` are
    the scalars that conditions, lengths and checks read: calls that differ in them may
    run differently.
    """

    name: str
    origin: str
    dims: tuple[str, ...]
    tensors: tuple[TensorPlan, ...]
    scalars: tuple[ScalarPlan, ...]
    stages: tuple[Stage, ...]
    temporaries: tuple[TemporaryPlan, ...] = ()
    derived: tuple[DerivedDim, ...] = ()
    checks: tuple[RangeCheck, ...] = ()
    gathers: tuple[Gather, ...] = ()
    guards: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    """Symbols whose values the generated module computes, before the derived dims."""


@final
@dataclass(frozen=True, slots=True)
class ModulePlan:
    """The plans of a module's kernels, with the source and the hash they come from."""

    source: str
    stamp: str
    kernels: tuple[KernelPlan, ...]
