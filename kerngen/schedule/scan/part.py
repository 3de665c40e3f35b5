"""The part of a row that a workgroup scans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.per_element import linear_group
from kerngen.schedule.scan.shape import Cut
from kerngen.schedule.sizes import to_wgsl
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class PartOfRow:
    """The part of a row that a workgroup has: its row, number, and limits.

    `number` is the part's number in its row, which has `count` parts; `group` is its
    number among all.
    """

    group: t.Ident
    row: t.Ident
    number: t.Ident
    count: t.Ident
    start: t.Ident
    end: t.Ident

    @classmethod
    def named(
        cls,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        cut: Cut,
        rows: tuple[Index, ...],
    ) -> PartOfRow:
        """Write the part's numbers, and skip workgroups past the last part of all rows."""
        group, row, number, count, start, end, size = (
            t.Ident(shader.fresh(name))
            for name in ("group", "row", "part", "count", "start", "end", "size")
        )
        known = {cut.length: size}
        length = shader.extent(cut.index.extent)
        body += [
            t.Let(size.name, to_wgsl(cut.length, shader)),
            t.Let(count.name, to_wgsl(cut.count, shader, known)),
            t.Let(group.name, linear_group(shader)),
            t.If(group >= shader.size(rows) * count, (t.Return(),)),
            t.Let(row.name, group // count),
            t.Let(number.name, group % count),
            t.Let(start.name, number * size),
            t.Let(end.name, t.call("min", start + size, length)),
        ]
        return cls(group, row, number, count, start, end)
