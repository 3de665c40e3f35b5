"""The second dispatch for few queries: one invocation joins the parts of each result.

Each part has sums relative to its own largest score.  With the largest score of all parts,

    let scale = exp(part_rows[near * 2u] - top);
    total += scale * part_rows[near * 2u + 1u];
    weighted += scale * parts[near * u.e + c];
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.ir.types import F32_MAX, Scalar
from kerngen.plan.size import ceil_div
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.flash.key_split import KeySplit
from kerngen.schedule.flash.scale import row_values, sum_values
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.per_element import start_invocation, unravel
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

SUMS: Final = "parts"
ENDS: Final = "part_rows"
"""The scratch buffers: the sums of each part of a row; its largest score and its total."""

JOIN_SIZE: Final = 64
"""The size of a workgroup."""

PARTS_AT_ONCE: Final = 16
"""How many parts are read before any is added, so that reads do not wait for each other."""


@final
@dataclass(frozen=True)
class PartsJoin:
    """Builds the shader that joins the results of the parts that the keys were cut into."""

    task: Task
    found: Attention
    split: KeySplit

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        found = self.found
        task = replace(self.task, label=f"{self.task.label}.join")
        s = ShaderBuilder(task, {})
        domain = found.finish.domain
        body, place = start_invocation(s, JOIN_SIZE, s.size(domain))
        at = unravel(s, body, domain, place)
        indices = (*found.batch, found.row)
        names = ("row", "parts", "part", "top", "total", "weighted")
        row, parts, part, *joined = (t.Ident(s.fresh(name)) for name in names)
        # `row` is the number of the row's first part in the buffers.
        number = row_major(
            s, tuple(i.extent for i in indices), [at[i] for i in indices]
        )
        count, starts = self.split.parts, (repr(-F32_MAX), "0.0", "0.0")
        body += [
            t.Let(parts.name, to_wgsl(count, s)),
            t.Let(row.name, number * parts),
            *(
                t.Var(name.name, t.Literal(start))
                for name, start in zip(joined, starts, strict=True)
            ),
        ]
        top, total, sums = joined
        body += self._loops(s, (row, parts, part), (top, total, sums), at[found.column])
        self._steps(s, body, at, (top, total, sums))
        return s.finish(
            body,
            groups=ceil_div(domain_size(domain), JOIN_SIZE),
            workgroup_size=JOIN_SIZE,
            summary="second of two dispatches: the parts together.",
            trips=count * 2,
        )

    def _loops(
        self,
        s: ShaderBuilder,
        parts_of_row: tuple[t.Ident, t.Ident, t.Ident],
        joined: tuple[t.Ident, t.Ident, t.Ident],
        column: t.Expr,
    ) -> Iterator[t.Stmt]:
        """Yield two loops over a row's parts: for the largest score, and for the sums."""
        (row, parts, part), (top, total, sums) = parts_of_row, joined
        kept = s.scratch(self.task.scratch_name(SUMS), Scalar.F32, written=False)
        ends = s.scratch(self.task.scratch_name(ENDS), Scalar.F32, written=False)
        extent = s.extent(self.found.column.extent)
        nears = [t.Ident(s.fresh("near")) for _ in range(PARTS_AT_ONCE)]
        # Past the last part, that one is read again, and not added.
        near_lets = [
            t.Let(near.name, row + t.call("min", part + n, parts - t.ONE))
            for n, near in enumerate(nears)
        ]
        raising = [
            t.Assign(top, t.call("max", top, ends.load(near * 2))) for near in nears
        ]
        adding: list[t.Stmt] = []
        for n, near in enumerate(nears):
            scale = t.Ident(s.fresh("scale"))
            fall = t.call("exp", t.Binary("-", ends.load(near * 2), top))
            inside, none = part + n < parts, t.Literal("0.0")
            adding.append(t.Let(scale.name, fall))
            for joint, own in (
                (total, ends.load(near * 2 + 1)),
                (sums, kept.load(near * extent + column)),
            ):
                # Not the scale is 0 past the last part: 0 times infinity is no number.
                term = t.call("select", none, scale * own, inside)
                adding.append(t.Assign(joint, term, "+="))
        # Two loops: with the largest score known first, no sum is scaled again.
        for inner in (raising, adding):
            yield t.count_up(part.name, 0, parts, PARTS_AT_ONCE, *near_lets, *inner)

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
