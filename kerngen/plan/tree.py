"""The plan of a kernel as a tree: its parameters, checks, choices and dispatches.

Plain data, with nothing of Python's or of a device in it: a plan is written to a file
(`write.py`) and read again (`read.py`) by a runtime in any language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, TypeAlias, assert_never, final

from kerngen.plan.size import ALWAYS, ZERO, Guard, Size
from kerngen.plan.wgsl import MAIN

Access: TypeAlias = Literal["read", "update", "write"]
Axes: TypeAlias = tuple[str | int, ...]
"""Lengths of a tensor's axes: dims by name, or numbers."""


@final
@dataclass(frozen=True, slots=True)
class TensorPlan:
    """A tensor parameter or output; `element` is a WGSL type or a struct's name."""

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
class Requirement:
    """A condition that every call must meet; `text` is its source, as in `d % 8 == 0`."""

    text: str
    condition: Guard


@final
@dataclass(frozen=True, slots=True)
class AffineTerm:
    """One term of an affine subscript: a coefficient times an index over `extent`.

    `2 * i + j - 1` has the terms (2, the range of i) and (1, the range of j).
    """

    coefficient: Size
    extent: str | int


@final
@dataclass(frozen=True, slots=True)
class RangeCheck:
    """A check that an affine subscript stays inside its axis.

    The subscript's value is `offset` plus the `terms`, by 32-bit arithmetic; `extent` is the
    axis's length, `text` the subscript's source.  `around` are the lengths over which the
    indices around the read range: if one is 0, nothing is read.  If `is_guarded`, the read is
    under a condition.
    """

    text: str
    tensor: str
    axis: int
    extent: str | int
    terms: tuple[AffineTerm, ...]
    around: Axes
    offset: Size = ZERO
    is_guarded: bool = False


@final
@dataclass(frozen=True, slots=True)
class Gather:
    """A check that an axis read by clamped subscripts is not empty.

    `extent` is the axis's length: it must not be 0, unless one of `around` is, the lengths
    over which the indices around the read range.  Then nothing is read.
    """

    tensor: str
    axis: int
    extent: str | int
    around: Axes


Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of names: one in the original kernel, and one in its gradient."""


@final
@dataclass(frozen=True, slots=True)
class GradientOf:
    """The origin of a gradient kernel: of `softmax`, by `x`, from the gradient by `y`.

    Pairs of a name in the original kernel and a name in this one:

    - `arguments`: parameters of both that have different names
    - `by`: a parameter, and the output that is the gradient by it
    - `from_`: an output, and the input that is the gradient by it
    - `lengths`: a dim, and the scalar that passes it where no tensor has such an axis
    """

    kernel: str
    by: Pairs
    from_: Pairs
    given: tuple[str, ...] = ()
    lengths: Pairs = ()
    arguments: Pairs = ()

    def argument(self, name: str) -> str:
        """Return the name in the original kernel of a parameter of the gradient."""
        return next((of for of, own in self.arguments if own == name), name)


# What runs


@final
@dataclass(frozen=True, slots=True)
class Scratch:
    """A private buffer of a case: `length` elements of 4 bytes."""

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
    """One dispatch: a shader, its bindings and its number of workgroups.

    The shader `wgsl` is an entry point of a file in the kernel's folder: `softmax.y.map`
    is `main` of `softmax.y.map.wgsl`, and `softmax.y.map:edge` is `edge` of the same.  All
    is in bind group 0: binding 0 is the uniform struct where `uses_uniform`, `bindings`
    follow from 1.  Workgroups beyond the adapter's limit fold into two dimensions: the shader
    counts itself as `y * num_workgroups.x + x` and returns beyond the total.

    `trips` is the number of turns of one invocation's loops, for adapters that stop after a
    number of them.  `terms` is the number that a 32-bit counter of the shader counts up to, 0
    where it can't overflow.  `constants` are the values of the shader's overrides, by name.
    """

    wgsl: str
    bindings: tuple[Binding, ...]
    groups: Size
    uses_uniform: bool = True
    trips: Size = ZERO
    terms: Size = ZERO
    constants: tuple[tuple[str, int], ...] = ()

    @property
    def file(self) -> str:
        """The name of the shader's file."""
        return f"{self.wgsl.partition(':')[0]}.wgsl"

    @property
    def entry(self) -> str:
        """The name of the shader's entry point."""
        return self.wgsl.partition(":")[2] or MAIN


def shader_name(file: str, entry: str) -> str:
    """Return the name of an entry point in a dispatch: `file:entry`."""
    return file if entry == MAIN else f"{file}:{entry}"


@final
@dataclass(frozen=True, slots=True)
class Needs:
    """The adapter features and limits that a case needs."""

    workgroup_bytes: int = 0
    invocations: int = 0
    subgroups: bool = False

    def within(self, others: Needs) -> bool:
        """Whether every adapter that meets the needs `others` meets these, too."""
        return (
            self.workgroup_bytes <= others.workgroup_bytes
            and self.invocations <= others.invocations
            and self.subgroups <= others.subgroups
        )

    def joined(self, others: Needs) -> Needs:
        """Return the needs of what has both these needs and `others`."""
        return Needs(
            max(self.workgroup_bytes, others.workgroup_bytes),
            max(self.invocations, others.invocations),
            self.subgroups or others.subgroups,
        )


NOTHING: Final = Needs()
"""The needs of a case that runs on every adapter."""


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A case of a choice: a condition, and the steps to run.

    It applies if its condition holds and the adapter has what it needs.  All dispatches in it
    may bind its scratch buffers.
    """

    name: str
    body: Sequence
    when: Guard = ALWAYS
    needs: Needs = NOTHING
    scratch: tuple[Scratch, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """A choice: the first of its cases that applies is run.

    A choice of a strategy computes `stages`.  A case may have choices for some of them in it,
    and computes the others itself.  Softmax is one shader for all stages, or one for each:

        stage top, total, y
          reduce | when m < 64 and n > 65536      computes top
            stage total ...
            stage y ...
          rows                                    computes top, total and y

    A last case without a name has choices for all stages, and computes none itself.
    A choice without stages is between shaders of one strategy, by the lengths of a call.
    """

    cases: tuple[Case, ...]
    stages: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Repeat:
    """Dispatches that are run `count` times, round after round.

    It runs recurrences whose steps read other elements of the step before.
    """

    count: Size
    body: tuple[Dispatch, ...]


Step: TypeAlias = Choice | Dispatch | Repeat
Sequence: TypeAlias = tuple[Step, ...]
"""Steps that run one after the other."""


def choices_in(body: Sequence) -> Iterator[Choice]:
    """Yield every choice in a sequence of steps, a choice before those within its cases."""
    for step in body:
        match step:
            case Choice(cases):
                yield step
                for case in cases:
                    yield from choices_in(case.body)
            case Dispatch() | Repeat():
                pass
            case _:
                assert_never(step)


def cases_in(body: Sequence) -> Iterator[Case]:
    """Yield every case in a sequence of steps, those of inner choices included."""
    return (case for choice in choices_in(body) for case in choice.cases)


def dispatches_in(body: Sequence) -> Iterator[Dispatch]:
    """Yield every dispatch in a sequence of steps, in all cases; each of a `Repeat` once."""
    for step in body:
        match step:
            case Choice(cases):
                for case in cases:
                    yield from dispatches_in(case.body)
            case Dispatch():
                yield step
            case Repeat(body=repeated):
                yield from repeated
            case _:
                assert_never(step)


def sizes_in(body: Sequence) -> Iterator[Size | Guard]:
    """Yield every size and condition in a sequence of steps, in the order of a plan file."""
    for step in body:
        match step:
            case Dispatch(groups=groups, trips=trips, terms=terms):
                yield from (groups, trips, terms)
            case Choice(cases):
                for case in cases:
                    yield case.when
                    yield from (item.length for item in case.scratch)
                    yield from sizes_in(case.body)
            case Repeat(count, repeated):
                yield count
                yield from sizes_in(repeated)
            case _:
                assert_never(step)


def stages_of(body: Sequence) -> tuple[str, ...]:
    """Return the stages that the choices of a sequence compute, in order, by name."""
    choices = (step for step in body if isinstance(step, Choice))
    return tuple(chain.from_iterable(choice.stages for choice in choices))


@final
@dataclass(frozen=True, slots=True)
class KernelPlan:
    """The plan of a kernel: its parameters, checks, dispatches and choices, as data.

    `tensors` are the parameters in the source's order, then the outputs.  `guards` are
    the scalars that conditions, lengths and checks read: calls that differ in them may
    run differently.
    """

    name: str
    origin: str
    dims: tuple[str, ...]
    tensors: tuple[TensorPlan, ...]
    scalars: tuple[ScalarPlan, ...]
    body: Sequence
    temporaries: tuple[TemporaryPlan, ...] = ()
    derived: tuple[DerivedDim, ...] = ()
    checks: tuple[RangeCheck, ...] = ()
    gathers: tuple[Gather, ...] = ()
    requires: tuple[Requirement, ...] = ()
    guards: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    """Symbols whose values the generated module computes, before the derived dims."""
    gradient: GradientOf | None = None


@final
@dataclass(frozen=True, slots=True)
class ModulePlan:
    """The plans of a module's kernels, with the source's name and hash."""

    source: str
    stamp: str
    kernels: tuple[KernelPlan, ...]


def sizes_of(kernel: KernelPlan) -> Iterator[Size | Guard]:
    """Yield every size and condition of a plan: what runs, then lengths and checks."""
    yield from sizes_in(kernel.body)
    yield from (each.condition for each in kernel.requires)
    yield from (dim.value for dim in kernel.derived)
    for check in kernel.checks:
        yield check.offset
        yield from (term.coefficient for term in check.terms)
