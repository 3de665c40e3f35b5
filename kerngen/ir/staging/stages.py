"""Stages: the parts of a kernel, each of which one dispatch can run.

A stage has steps, done in order for each element of its domain: `Define` names a value, and
`Write` stores one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import loads, outer_reductions
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import walk, with_locals


@final
@dataclass(frozen=True, slots=True)
class Define:
    """A step that computes a value for the element, and names it: `let local = value;`."""

    local: ir.LocalValue
    value: ir.Expr
    text: str = field(default="", compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Write:
    """A step that stores a value in the element of a tensor, or in a part of it.

    `path` and `component` are those of `Statement`.
    """

    tensor: ir.Tensor
    value: ir.Expr
    text: str = field(default="", compare=False, repr=False)
    path: ir.Path = ()
    component: str = ""

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the element is written."""
        return bool(self.path or self.component)

    @property
    def is_plain(self) -> bool:
        """Whether all of an element is written, and at the place of the stage's indices."""
        return not self.is_partial and not isinstance(self.value, StoreAt)


Step: TypeAlias = Define | Write


@final
@dataclass(frozen=True, slots=True)
class State:
    """A value that a loop carries from turn to turn, by its locals.

    `now` is the value of this turn, `before[0]` that of the turn before, `before[1]` that of
    two turns before.
    """

    now: ir.LocalValue
    before: tuple[ir.LocalValue, ...]


@final
@dataclass(frozen=True, slots=True)
class LoopResult:
    """A value that is read after a loop: `local` is the value of `source` in the turn `at`.

    Without `at`, it is the value of the last turn.
    """

    local: ir.LocalValue
    source: ir.LocalValue
    at: ir.LocalValue | None


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """The loop of a stage: along `axis`, elements are computed in order.

    The steps from `first` up to `end` are done in every turn, those before and behind them
    once, over the other axes.  A turn reads values of up to `distance` earlier turns.  With
    `states`, these are values of its own element, in registers.  Without states, it reads them
    from memory, other elements' too, and each turn is a dispatch of its own.  `captures` are
    the values that are read after the loop.
    """

    axis: int
    descending: bool
    distance: int
    states: tuple[State, ...]
    captures: tuple[LoopResult, ...]
    first: int
    end: int


@final
@dataclass(frozen=True)
class Stage:
    """The steps of one dispatch: done in order, for every element of `domain`.

    - At most one reduction is not inside of another one; its body reads no local.
    - A tensor that the stage writes is read at the same element alone, and before the write;
      one that is written in parts may be read behind the write, too.
    - With a `loop`, elements along its axis are computed in order.
    - `apart` is the reason why these steps are not in the stage before.
    """

    name: str
    domain: tuple[ir.Index, ...]
    steps: tuple[Step, ...]
    apart: str = field(default="", compare=False, repr=False)
    loop: Loop | None = None

    def __hash__(self) -> int:
        """Return the hash of its contents, computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.domain, self.steps))

    @property
    def others(self) -> tuple[ir.Index, ...]:
        """The indices of the domain but for the loop's; all of them if there is no loop."""
        skipped = self.domain[self.loop.axis] if self.loop else None
        return tuple(index for index in self.domain if index is not skipped)

    @cached_property
    def reduction(self) -> ir.Reduce | None:
        """The stage's outermost reduction, or None if it has no reduction."""
        found = (r for step in self.steps for r in outer_reductions(step.value))
        return next(found, None)

    @cached_property
    def reads(self) -> tuple[ir.Load, ...]:
        """All reads in the values of the steps, those in subscripts and reductions included."""
        return tuple(load for step in self.steps for load in loads(step.value))

    @cached_property
    def tensors_read(self) -> frozenset[ir.Tensor]:
        """The tensors that the steps read."""
        return frozenset(load.tensor for load in self.reads)

    @property
    def tensors_written(self) -> tuple[ir.Tensor, ...]:
        """The tensors that the steps write, in their order."""
        return tuple(step.tensor for step in self.steps if isinstance(step, Write))

    @property
    def indices(self) -> Iterator[ir.Index]:
        """Every index: those of the domain, then those of reductions."""
        yield from self.domain
        for step in self.steps:
            for node in walk(step.value):
                if isinstance(node, ir.Reduce):
                    yield from node.indices


@final
@dataclass(frozen=True)
class StagedKernel:
    """A kernel with its stages in order, and the temporaries between them."""

    kernel: ir.Kernel
    stages: tuple[Stage, ...]
    temporaries: tuple[ir.Tensor, ...]


def inlined_writes(steps: Iterable[Step]) -> Iterator[Write]:
    """Yield the writes of steps, with the values of the locals in the place of these."""
    values: dict[str, ir.Expr] = {}
    for step in steps:
        value = with_locals(step.value, values)
        if isinstance(step, Define):
            values[step.local.name] = value
        else:
            yield replace(step, value=value)


def computed_by(step: Step) -> str:
    """Return the name of the local that a step defines, or of the tensor that it writes."""
    return step.local.name if isinstance(step, Define) else step.tensor.name


def as_stored(value: ir.Expr, tensor: ir.Tensor) -> ir.Expr:
    """Return `value` as a read of the tensor gives it back: rounded, if it is stored as f16."""
    is_kept_whole = not tensor.is_half or (
        isinstance(value, ir.Cast) and value.is_halved
    )
    return value if is_kept_whole else ir.Cast(value, value.type, is_halved=True)
