"""Staging: turn a kernel's statements into stages, each of which one dispatch can run.

    m[i] = (sum[j] x[i, j]) / f32(n);      stage m[i]       write m = (sum ...) / f32(n)
    let d[i, j] = x[i, j] - m[i];          stage y[i, j]    define d = x[i, j] - m[i]
    y[i, j] = d[i, j] * d[i, j];                            write y = d * d

A statement reads the state before it, over its whole domain, as if at once.  These passes,
in this order, keep that meaning:

1. `split_places_by_key` rewrites an `argmax` by key as two reductions by key.
   `hoist_reductions` leaves at most one reduction in a statement, and only if it depends on
   every index of the statement; the others become lets.  `join_places` rewrites a maximum
   and the least index with it as one `argmax`.
2. `inline_lets` moves cheap lets to their uses, if their values are still the same there.
   An `if` that it moves into a reduction becomes the reduction's condition.
3. `split_self_reads` computes a statement that reads other elements of its target into a
   temporary first.  It is behind inlining, which may add such reads.  `split_packed` does
   the same with reductions that are written as integers of 8 or 4 bits.
4. `group` joins neighbouring statements that work on the same element.
5. `_Builder` makes a stage of each group, and a temporary of each value that a later stage
   reads.
6. `with_rings` shortens the temporaries of recurrences to the steps that are read again.
7. `truths_as_words` stores temporaries of bool as u32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import with_conditions
from kerngen.ir.analysis.linear import Lengths
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.analysis.rings import with_rings
from kerngen.ir.analysis.truths import truths_as_words
from kerngen.ir.memory import Struct
from kerngen.ir.staging.grouping import StatementGroup, group
from kerngen.ir.staging.hoisting import (
    Fresh,
    hoist_reductions,
    split_packed,
    split_self_reads,
)
from kerngen.ir.staging.inlining import inline_lets
from kerngen.ir.staging.looping import Looping, looping
from kerngen.ir.staging.places import join_places, split_places_by_key
from kerngen.ir.staging.stages import (
    Define,
    Loop,
    Stage,
    StagedKernel,
    Step,
    Write,
    as_stored,
)
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import map_children, walk


def form_stages(kernel: ir.Kernel) -> StagedKernel:
    """Return the kernel's stages in order, and the temporaries between them."""
    fresh, body = Fresh(kernel), kernel.body
    # Passes for `argmax` and for minima are left out where there are none.
    if any(reduce.finds_place for reduce in _reductions(body)):
        body = split_places_by_key(body, fresh)
    body = hoist_reductions(body, fresh)
    if any(reduce.kind == "min" for reduce in _reductions(body)):
        body = join_places(body, fresh)
    body = tuple(map(_with_conditions, inline_lets(body)))
    body = split_packed(split_self_reads(body, fresh), fresh)
    # From statements to stages.
    groups = list(group(body))
    outliving = _outliving(groups)
    builder = _Builder(fresh, kernel, outliving)
    stages = tuple(map(builder.build, groups))
    staged = StagedKernel(kernel, _name_apart(stages), tuple(outliving))
    if any(stage.loop for stage in stages):
        staged = with_rings(staged, fresh)
    return truths_as_words(staged) if outliving else staged


def _reductions(body: Iterable[ir.Statement]) -> Iterator[ir.Reduce]:
    nodes = (node for statement in body for node in walk(statement.value))
    return (node for node in nodes if isinstance(node, ir.Reduce))


def _with_conditions(statement: ir.Statement) -> ir.Statement:
    return replace(statement, value=with_conditions(statement.value))


def _outliving(groups: Sequence[StatementGroup]) -> dict[ir.Tensor, None]:
    """Return the lets that some group reads and does not compute, in order: temporaries."""
    outliving: dict[ir.Tensor, None] = {}
    for each in groups:
        computed: set[ir.Tensor] = set()
        for member in each.members:
            itself = member.target if member.along else None
            read = (t for t in tensors_read(member.value) if t.role is ir.Role.LET)
            outliving.update(
                (tensor, None)
                for tensor in read
                if tensor not in computed and tensor != itself
            )
            computed.add(member.target)
    return outliving


def _name_apart(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return stages with distinct names: the second `total` becomes `total_2`."""
    seen: dict[str, int] = {}
    named: list[Stage] = []
    for stage in stages:
        seen[stage.name] = seen.get(stage.name, 0) + 1
        number = seen[stage.name]
        name = stage.name if number == 1 else f"{stage.name}_{number}"
        named.append(replace(stage, name=name))
    return tuple(named)


def _last_reads(members: Sequence[ir.Statement]) -> dict[ir.Tensor, int]:
    """Return the number of the last statement that reads each tensor."""
    return {
        tensor: number
        for number, member in enumerate(members)
        for tensor in tensors_read(member.value)
    }


@final
@dataclass(frozen=True)
class _Builder:
    """Builds the stages of a kernel, one for each group of statements.

    `outliving` are the lets that other groups read.
    """

    fresh: Fresh
    kernel: ir.Kernel
    outliving: dict[ir.Tensor, None]

    def build(self, together: StatementGroup) -> Stage:
        """Return the stage that runs the members of a group, in order."""
        members = together.members
        loop = self._looping(members)
        # The local with the newest value of each tensor that the stage has computed.
        current: dict[ir.Tensor, ir.LocalValue] = {}
        steps: list[Step] = []
        if loop:
            members = loop.members
            steps.extend(loop.places)
        ends: list[int] = []
        last_read = _last_reads(members)
        for number, member in enumerate(members):
            value = self._with_locals(member.value, current)
            ends.append(len(steps))
            # A part of an element, or another element: later reads are from memory.
            if member.is_partial or isinstance(value, StoreAt):
                current.pop(member.target, None)
                written = member.path, member.component
                steps.append(Write(member.target, value, member.text, *written))
                continue
            # A whole element: a local if a later member reads it, a store if it is no let
            # or another stage reads it.
            read_later = last_read.get(member.target, number) > number
            read_later |= loop is not None and member.target in loop.keeps
            is_let = member.target.role is ir.Role.LET
            stored = not is_let or member.target in together.stored
            if read_later or not stored:
                local = self._local(member.target)
                value = as_stored(value, member.target)
                steps.append(Define(local, value, member.text))
                current[member.target] = local
                value = local
            # The text is shown once: with the local, or else with the store.
            if stored:
                text = "" if isinstance(value, ir.LocalValue) else member.text
                steps.append(Write(member.target, value, text))
        return Stage(
            members[-1].target.name,
            members[0].indices,
            tuple(steps),
            together.apart,
            self._loop(members, loop, current, (*ends, len(steps))),
        )

    def _looping(self, members: Sequence[ir.Statement]) -> Looping | None:
        """Return the loop of members that are a recurrence, if it is in registers."""
        if not any(member.along for member in members):
            return None
        return looping(members, self.fresh, Lengths.of(self.kernel.derived))

    def _loop(
        self,
        members: tuple[ir.Statement, ...],
        loop: Looping | None,
        now: dict[ir.Tensor, ir.LocalValue],
        ends: tuple[int, ...],
    ) -> Loop | None:
        """Return the order of a stage: in registers, or by a dispatch for each turn."""
        if loop:
            return loop.loop(now, ends[loop.turns])
        along = members[0].along
        if along is None:
            return None
        order = along.axis, along.descending, along.distance
        return Loop(*order, (), (), 0, ends[-1])

    def _local(self, tensor: ir.Tensor) -> ir.LocalValue:
        """Return the local for a tensor's value: `total`, or `y_new` if `y` is stored."""
        keeps_name = tensor.role is ir.Role.LET and tensor not in self.outliving
        name = tensor.name if keeps_name else self.fresh.name(f"{tensor.name}_new")
        assert not isinstance(tensor.element, Struct), "structs are written in parts"
        return ir.LocalValue(name, tensor.element)

    def _with_locals(
        self, value: ir.Expr, current: dict[ir.Tensor, ir.LocalValue]
    ) -> ir.Expr:
        """Return a value in which locals replace reads of what the stage has computed."""

        def visit(expr: ir.Expr) -> ir.Expr:
            if isinstance(expr, ir.Load) and expr.tensor in current:
                return current[expr.tensor]
            return map_children(expr, visit)

        return visit(value) if current else value
