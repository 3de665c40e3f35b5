"""Stages: the dispatches that a kernel becomes, in order, before schedules are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, final

from kerngen.ir.analysis.reads import loads, outer_reductions
from kerngen.ir.nodes import (
    Cast,
    Expr,
    Index,
    Kernel,
    Load,
    LocalValue,
    Path,
    Reduce,
    Tensor,
)


@final
@dataclass(frozen=True, slots=True)
class Define:
    """Compute a value once per element of the domain."""

    local: LocalValue
    value: Expr
    text: str = field(default="", compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Write:
    """Store a value at the domain's own element of `tensor`, or at a part of it.

    See `Statement` for `path` and `component`; the domain is the statement's.
    """

    tensor: Tensor
    value: Expr
    text: str = field(default="", compare=False, repr=False)
    path: Path = ()
    component: str = ""

    @property
    def is_partial(self) -> bool:
        """Whether the rest of the element stays as it is."""
        return bool(self.path or self.component)


Step: TypeAlias = Define | Write


@final
@dataclass(frozen=True, slots=True)
class State:
    """What a loop computes in each turn as `now`, and has of the turns before.

    `before[0]` is the value of the last turn, `before[1]` that of the one before it.
    """

    now: LocalValue
    before: tuple[LocalValue, ...]


@final
@dataclass(frozen=True, slots=True)
class Capture:
    """What is left of a loop in `local`: the value of `source` in the turn `at`.

    Without `at`, it is the value of the last turn.
    """

    local: LocalValue
    source: LocalValue
    at: LocalValue | None


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """The order of a stage along one axis of its domain, from 0 on or `descending`.

    The steps from `first` to `end` are done in every turn; those before and after them
    once, over the other axes.  Turns read those up to a `distance` before.  Without `states`, a turn reads earlier ones from memory,
    also those of other elements: each is a dispatch of its own.
    """

    axis: int
    descending: bool
    distance: int
    states: tuple[State, ...]
    captures: tuple[Capture, ...]
    first: int
    end: int


@final
@dataclass(frozen=True)
class Stage:
    """Steps done in order for every element of `domain`; elements are independent.

    At most one `Reduce` is outside of other reductions; its body reads no local.  A
    tensor that is written is read only at the element written, and before that; one
    that is written in parts, after that too.  `apart` is why the stage before does not
    do these steps too.  With a `loop`, elements along its axis are done in order.
    """

    name: str
    domain: tuple[Index, ...]
    steps: tuple[Step, ...]
    apart: str = field(default="", compare=False, repr=False)
    loop: Loop | None = None

    def __hash__(self) -> int:
        """Return the hash of all that it does, which is computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.domain, self.steps))

    @property
    def others(self) -> tuple[Index, ...]:
        """The indices of the domain, without the one that a loop runs along."""
        skipped = self.domain[self.loop.axis] if self.loop else None
        return tuple(index for index in self.domain if index is not skipped)

    @cached_property
    def reduction(self) -> Reduce | None:
        """The first outermost reduction, if there is one."""
        found = (r for step in self.steps for r in outer_reductions(step.value))
        return next(found, None)

    @cached_property
    def reads(self) -> tuple[Load, ...]:
        """Every read, those inside of subscripts and reductions included."""
        return tuple(load for step in self.steps for load in loads(step.value))

    @cached_property
    def tensors_read(self) -> frozenset[Tensor]:
        """The tensor of every read."""
        return frozenset(load.tensor for load in self.reads)


@final
@dataclass(frozen=True, slots=True)
class StagedKernel:
    """A kernel, its stages in order, and the temporaries that connect them."""

    kernel: Kernel
    stages: tuple[Stage, ...]
    temporaries: tuple[Tensor, ...]


def computed_by(step: Step) -> str:
    """Return the name of the value that a step computes."""
    return step.local.name if isinstance(step, Define) else step.tensor.name


def as_stored(value: Expr, tensor: Tensor) -> Expr:
    """Return what a tensor gives back of a value that is written to it."""
    is_kept_whole = not tensor.is_half or (isinstance(value, Cast) and value.is_halved)
    return value if is_kept_whole else Cast(value, value.type, is_halved=True)
