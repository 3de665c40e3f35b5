"""Stages that write integers of 8 or 4 bits: an invocation computes all elements of a word.

So no two invocations write to the same word.  Four neighbours are computed at once where the
results, or their rows, are whole words.  Eight elements of 4 bits, in two turns of four:

    var y_word = 0u;
    for (var place = 0u; place < 2u; place += 1u) {
        let at = element * 2u + place;
        y_word |= y_packed(x[at], place);
    }
    y[element] = y_word;
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, final

from kerngen.ir.nodes import Index, Tensor
from kerngen.plan.size import ALWAYS, NEVER, Guard, all_of, ceil_div, divides
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import start_invocation, unravel
from kerngen.schedule.lowering.steps import (
    is_flat,
    last_extents,
    vector_tensors,
    write_steps,
)
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scalar_only import has_scalars_alone
from kerngen.schedule.sizes import (
    all_divisible,
    domain_size,
    extent_size,
    loop_trips,
    to_wgsl,
)
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

WORKGROUP: Final = 256


def lower_packed(task: Task) -> Iterator[Variant]:
    """Yield the variants: four elements at once, where sizes allow, and one for any size."""
    when = _in_fours(task)
    if when != NEVER:
        yield Variant("aligned", when, (_Packing(task, LANES).shader(),))
    yield Variant("edge", ALWAYS, (_Packing(task, 1).shader(),))


def _in_fours(task: Task) -> Guard:
    """Return the condition that all words are full, and of elements of one row each."""
    if not task.domain or not has_scalars_alone(task.stage):
        return NEVER
    count = _per_word(task)
    if is_flat(task.stage):
        return divides(count, domain_size(task.domain))
    last = task.domain[-1]
    extents = last_extents(task.stage, task.values, _vectors(task))
    whole = divides(count, extent_size(last.extent))
    return all_of(whole, all_divisible(extents, LANES))


def _vectors(task: Task) -> set[str]:
    return vector_tensors(task.stage, task.values, task.domain[-1])


def _narrow(task: Task) -> list[Tensor]:
    """Return the tensors of narrow integers that a stage writes; all have the same bits."""
    written = task.stage.tensors_written
    return [*dict.fromkeys(tensor for tensor in written if tensor.narrow)]


def _per_word(task: Task) -> int:
    return max(x.narrow.per_word for x in _narrow(task) if x.narrow)


@final
@dataclass
class _Packing:
    """Writes the shader that computes a word per invocation, `width` elements at once."""

    task: Task
    width: int
    body: list[t.Stmt] = field(default_factory=list)

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        task, count = self.task, _per_word(self.task)
        names = _vectors(task) if self.width > 1 else set[str]()
        self.builder = s = ShaderBuilder(task, dict.fromkeys(names, LANES))
        words = ceil_div(domain_size(task.domain), count)
        self.body, number = start_invocation(s, WORKGROUP, to_wgsl(words, s))
        # The elements of a word in turns: one turn for bytes in fours, which needs no loop.
        turns = count // self.width
        place = t.Ident(s.fresh("place"))
        held = {x: t.Ident(s.fresh(f"{x.name}_word")) for x in _narrow(task)}
        for tensor, word in held.items():
            self.body.append(t.Var(word.name, t.ZERO))
            s.pack(tensor, word, place if turns > 1 else t.ZERO)
        at = number * turns + place if turns > 1 else number
        steps = self._steps(at)
        if turns > 1:
            steps = [t.count_up(place.name, 0, t.u32(turns), 1, *steps)]
        self.body += steps
        # The words are complete now, and stored once.
        for tensor, word in held.items():
            self.body.append(t.Assign(s.buffer(tensor).expr[number], word))
        return s.finish(
            self.body,
            groups=ceil_div(words, WORKGROUP),
            workgroup_size=WORKGROUP,
            summary=f"{count} elements per invocation, which are a word.",
            variant="" if self.width > 1 else "edge",
            trips=loop_trips(task, {}),
        )

    def _steps(self, place: t.Expr) -> list[t.Stmt]:
        """Return the statements that compute an element, or a vector, by its number."""
        s, task = self.builder, self.task
        at = t.Ident(s.fresh("at"))
        block: list[t.Stmt] = []
        last = task.domain[-1] if self.width > 1 else None
        if is_flat(task.stage):
            lowerer = Lowerer(s, {}, block, vector=last, element=(task.domain, at))
        else:
            lowerer = Lowerer(s, self._places(block, at), block, vector=last)
        write_steps(lowerer, task.stage)
        named = t.Let(at.name, place)
        if self.width > 1:
            return [named, *block]
        return [named, t.If(at < s.size(task.domain), tuple(block))]

    def _places(self, block: list[t.Stmt], at: t.Ident) -> dict[Index, t.Expr]:
        first = at if self.width == 1 else t.Ident(self.builder.fresh("first"))
        if first is not at:
            block.append(t.Let(first.name, at * self.width))
        return unravel(self.builder, block, self.task.domain, first)
