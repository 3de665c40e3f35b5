"""The second dispatch for few queries: several lanes join the parts of each result.

Each part has sums relative to its own largest score.  A lane joins every fourth part, eight
of them at once, relative to the largest score that it has seen:

    let raised = max(max(top, part_rows[near * 2u]), ...);
    let fall = exp(top - raised);
    total *= fall;
    weighted *= fall;
    top = raised;
    let scale = exp(part_rows[near * 2u] - top);
    total += scale * part_rows[near * 2u + 1u];
    weighted += scale * parts[near * u.e + c];

It stores the three to workgroup memory, and the first lane of a result joins those of its
four lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.ir.types import F32_MAX, Scalar
from kerngen.plan.size import ceil_div
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.flash.key_split import KeySplit
from kerngen.schedule.flash.part_place import name_counts
from kerngen.schedule.flash.scale import row_values, sum_values
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

SUMS: Final = "parts"
ENDS: Final = "part_rows"
"""The scratch buffers: the sums of each part of a row; its largest score and its total."""

RESULTS: Final = 64
"""The results of a workgroup: neighbours, whose sums are read together."""

SHARES: Final = 4
"""How many lanes share the parts of a result.

On an H200, one query of 32 heads on 8 of 128 numbers took 17.9 us with 4,096 keys, that is 64
parts, and 21.8 us where one lane joins all parts of a result.
"""

AT_ONCE: Final = 8
"""How many parts a lane reads before it adds any, so that reads do not wait for each other."""


@final
@dataclass(frozen=True, slots=True)
class PartSums:
    """The largest score of some keys of a row, and two sums relative to it.

    `total` is the sum of exp(score - top), `weighted` that of exp(score - top) * value.
    """

    top: t.Expr
    total: t.Expr
    weighted: t.Expr


@final
@dataclass(frozen=True)
class PartsJoin:
    """Builds the shader that joins the results of the parts that the keys were cut into."""

    task: Task
    found: Attention
    split: KeySplit

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        task = replace(self.task, label=f"{self.task.label}.join")
        s = ShaderBuilder(task, {})
        domain = self.found.finish.domain
        count = s.size(domain)
        body: list[t.Stmt] = []
        share = s.let(body, "share", s.lane // RESULTS)
        place = linear_group(s) * RESULTS + s.lane % RESULTS
        place = s.let(body, "place", place)
        # Lanes past the last result join its parts, too: all of them must reach the barrier.
        element = s.let(body, "element", t.call("min", place, count - t.ONE))
        at = unravel(s, body, domain, element)
        top, total, weighted = (
            t.Ident(s.fresh(name)) for name in ("top", "total", "weighted")
        )
        joined = top, total, weighted
        parts = name_counts(s, body, self.split)[self.split.parts]
        body += [
            t.Var(top.name, t.Literal(repr(-F32_MAX))),
            t.Var(total.name, t.Literal("0.0")),
            t.Var(weighted.name, t.Literal("0.0")),
            *self._own_parts(s, at, (share, parts), joined),
        ]
        lanes = RESULTS * SHARES
        shared = [
            s.workgroup_array(name, f"array<f32, {lanes}>", 4 * lanes)
            for name in ("tops", "totals", "sums")
        ]
        body += [
            *(t.Assign(a[s.lane], v) for a, v in zip(shared, joined, strict=True)),
            t.BARRIER,
            t.If(t.any_of(share > 0, place >= count), (t.Return(),)),
        ]
        others = [
            PartSums(*(array[s.lane + number * RESULTS] for array in shared))
            for number in range(1, SHARES)
        ]
        body += _join(s, joined, others)
        self._steps(s, body, at, joined)
        return s.finish(
            body,
            groups=ceil_div(domain_size(domain), RESULTS),
            workgroup_size=lanes,
            summary="second of two dispatches: the parts together.",
            trips=ceil_div(self.split.parts, SHARES * AT_ONCE),
        )

    def _own_parts(
        self,
        s: ShaderBuilder,
        at: dict[Index, t.Expr],
        parts_of_lane: tuple[t.Expr, t.Expr],
        joined: tuple[t.Ident, t.Ident, t.Ident],
    ) -> list[t.Stmt]:
        """Return the loop in which a lane joins its parts: `share`, and every fourth behind it."""
        share, parts = parts_of_lane
        kept = s.scratch(self.task.scratch_name(SUMS), Scalar.F32, written=False)
        ends = s.scratch(self.task.scratch_name(ENDS), Scalar.F32, written=False)
        indices = (*self.found.batch, self.found.row)
        number = row_major(
            s, tuple(i.extent for i in indices), [at[i] for i in indices]
        )
        before: list[t.Stmt] = []
        # `row` is the number of the row's first part in the buffers.
        row = s.let(before, "row", number * parts)
        part = t.Ident(s.fresh("part"))
        body: list[t.Stmt] = []
        own: list[PartSums] = []
        inside: list[t.Expr] = []
        for turn in range(AT_ONCE):
            place = part + turn * SHARES
            # Past the last part, that one is read again, and not added.
            near = s.let(body, "near", row + t.call("min", place, parts - t.ONE))
            extent = s.extent(self.found.column.extent)
            value = kept.load(near * extent + at[self.found.column])
            own.append(PartSums(ends.load(near * 2), ends.load(near * 2 + 1), value))
            inside.append(place < parts)
        body += _join(s, joined, own, inside)
        return [
            *before,
            t.count_up(part.name, share, parts, SHARES * AT_ONCE, *body),
        ]

    def _steps(
        self,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        at: dict[Index, t.Expr],
        found: tuple[t.Ident, t.Ident, t.Ident],
    ) -> None:
        """Do the last stage's steps, and store the numbers of each row once."""
        top, total, sums = found
        keys = self.found.key.extent
        values = row_values(shader, keys, (top, total))
        values |= sum_values(shader, keys, Value(sums), total)
        lowerer = Lowerer(shader, at, body, locals=values)
        write_steps(lowerer, self.found.finish)
        kept = Lowerer(shader, at, [], locals=values)
        for domain, write in self.found.beside:
            stage = replace(self.found.finish, domain=domain, steps=(write,))
            write_steps(kept, stage)
        # One invocation of a row writes its largest score and total: that of column 0.
        if kept.block:
            first = at[self.found.column].equals(0)
            body.append(t.If(first, tuple(kept.block)))


def _join(
    s: ShaderBuilder,
    joined: tuple[t.Ident, t.Ident, t.Ident],
    others: Sequence[PartSums],
    inside: Sequence[t.Expr] = (),
) -> list[t.Stmt]:
    """Return statements that add parts to the variables `joined`.

    With `inside`, a condition for each part, those parts are left out whose condition fails.
    """
    top, total, weighted = joined
    body: list[t.Stmt] = []
    largest: t.Expr = top
    for other in others:
        largest = t.call("max", largest, other.top)
    raised = s.let(body, "raised", largest)
    fall = s.let(body, "fall", t.call("exp", t.Binary("-", top, raised)))
    body += [
        t.Assign(total, fall, "*="),
        t.Assign(weighted, fall, "*="),
        t.Assign(top, raised),
    ]
    for number, other in enumerate(others):
        own_fall = t.call("exp", t.Binary("-", other.top, top))
        scale = s.let(body, "scale", own_fall)
        for sum_, own in ((total, other.total), (weighted, other.weighted)):
            term: t.Expr = scale * own
            if inside:
                # Not the scale is 0 past the last part: 0 times infinity is no number.
                term = t.call("select", t.Literal("0.0"), term, inside[number])
            body.append(t.Assign(sum_, term, "+="))
    return body
