"""Staging: turn a kernel's statements into stages, each of which one dispatch can run.

Statements read the state before them, over their whole domain, as if at once.  The
passes below keep that:

1. `split_places_by_key` makes reductions by key of places by key;
   `hoist_reductions` leaves at most one reduction in a statement, and only where it
   depends on every index of the statement; the others become lets of their own;
   `join_places` makes one `argmax` of a maximum and the least index that has it.
2. `inline_lets` moves lets that are cheap and still true to where they are used; an
   `if` that it brings into a reduction becomes the condition of that.
3. `split_self_reads` computes a statement that reads other elements of its target into
   a temporary first; it comes after inlining, which may bring such reads in.
   `split_packed` does so with reductions that are written as integers of 8 or 4 bits.
4. `group` joins neighbours that work on the same element into one stage.
5. `_Builder` gives each stage its steps, and values that outlive it a temporary.
6. `with_rings` keeps of recurrences through memory only the steps that are read again.
7. `truths_as_words` keeps temporaries of bool as u32.
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
    if any(reduce.finds_place for reduce in _reductions(body)):
        body = split_places_by_key(body, fresh)
    body = hoist_reductions(body, fresh)
    if any(reduce.kind == "min" for reduce in _reductions(body)):
        body = join_places(body, fresh)
    body = tuple(map(_with_conditions, inline_lets(body)))
    body = split_packed(split_self_reads(body, fresh), fresh)
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
    """Return the lets that a group reads and does not compute, in order."""
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
    """Number the second and later stages of one name: `total`, `total_2`."""
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
    """Builds the steps of one group of statements."""

    fresh: Fresh
    kernel: ir.Kernel
    outliving: dict[ir.Tensor, None]

    def build(self, together: StatementGroup) -> Stage:
        """Return the stage that runs the members of a group, in order."""
        members = together.members
        loop = self._looping(members)
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
            if member.is_partial or isinstance(value, StoreAt):
                # What the element holds now is read from memory.
                current.pop(member.target, None)
                written = member.path, member.component
                steps.append(Write(member.target, value, member.text, *written))
                continue
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
        """Name the value of a let after it; that of a write apart from the tensor."""
        keeps_name = tensor.role is ir.Role.LET and tensor not in self.outliving
        name = tensor.name if keeps_name else self.fresh.name(f"{tensor.name}_new")
        assert not isinstance(tensor.element, Struct), "structs are written in parts"
        return ir.LocalValue(name, tensor.element)

    def _with_locals(
        self, value: ir.Expr, current: dict[ir.Tensor, ir.LocalValue]
    ) -> ir.Expr:
        """Replace reads of what this stage has computed already."""

        def visit(expr: ir.Expr) -> ir.Expr:
            if isinstance(expr, ir.Load) and expr.tensor in current:
                return current[expr.tensor]
            return map_children(expr, visit)

        return visit(value) if current else value
