"""The dispatch of `ragged` that reduces short rows, several in a workgroup.

The long rows among them are then reduced by the whole workgroup, one after another
(`every_row`), or listed for the dispatches of `long_rows.py` (`short_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.plan.size import Literal, Size, ceil_div
from kerngen.schedule.lowering.argmax import partial_type
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import finish_steps, reduction_of
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.joining import Joiner
from kerngen.schedule.lowering.positions import linear_group, position_name
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.ragged.long_rows import list_row, long_sum
from kerngen.schedule.ragged.shape import (
    AT_ONCE,
    GROUP,
    MOST_PARTS,
    TURNS,
    RaggedRows,
)
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class _Rows:
    """The rows of a workgroup, as variables of the shader.

    - `first`: the number of the workgroup's first row
    - `row`, `begin`, `end`: the lane's row, and its range
    - `place`: the lane's number among those of its row
    - `is_row`: the condition that the row is not past the last one
    """

    found: RaggedRows
    shader: ShaderBuilder
    first: t.Ident
    row: t.Ident
    place: t.Ident
    to: Lowerer
    begin: t.Expr
    end: t.Expr
    is_row: t.Expr

    @property
    def is_long(self) -> t.Expr:
        """The condition that the lane's row is long: `end - begin > 512u`."""
        return t.Binary("-", self.end, self.begin) > self.found.long


def every_row(found: RaggedRows) -> DispatchShader:
    """Return the shader that reduces all rows: the long ones by the whole workgroup."""
    shader, body = ShaderBuilder(found.task, {}), list[t.Stmt]()
    rows = _place(found, shader, body)
    # Where a row has all lanes anyway, none is long.
    if found.lanes == GROUP:
        _take_short(rows, body, None)
    else:
        is_long = _name_long(rows, body)
        bits = shader.workgroup_array("long_bits", "atomic<u32>", 4)
        clear = t.Evaluate(t.call("atomicStore", t.Unary("&", bits), t.ZERO))
        body.append(t.If(shader.lane.equals(0), (clear,)))
        _take_short(rows, body, is_long)
        body += _take_long(rows, is_long, bits)
    turns = ceil_div(found.terms, GROUP * AT_ONCE) * found.rows_at_once
    return _finished(found, shader, body, "few", turns)


def short_rows(found: RaggedRows) -> DispatchShader:
    """Return the shader that reduces short rows, and lists long ones with their parts."""
    shader, body = ShaderBuilder(found.task, {}), list[t.Stmt]()
    rows = _place(found, shader, body)
    is_long = _name_long(rows, body)
    _take_short(rows, body, is_long)
    listed = list_row(rows.to, found, rows.row, rows.begin, rows.end)
    body.append(t.If(t.all_of(rows.place.equals(0), is_long), listed))
    return _finished(found, shader, body, "", Literal(MOST_PARTS))


def _place(found: RaggedRows, shader: ShaderBuilder, body: list[t.Stmt]) -> _Rows:
    """Write the number of the lane's row, the lane's place in it, and the row's range.

    A row past the last one has an empty range, as all lanes must reach the barriers.  In
    WGSL, with 8 lanes for each row:

        let first = (workgroup.y * grid.x + workgroup.x) * 32u;
        if (first >= u.m) { return; }
        let own = first + (lane >> 3u);
        let place = lane & 7u;
        let i = min(own, u.m - 1u);
        ...                                              // `begin` and `e_end` are read
        let end = select(begin, e_end, own < u.m);
    """
    domain = found.task.domain
    total = shader.size(domain)
    first, own, place, end = (
        t.Ident(shader.fresh(name)) for name in ("first", "own", "place", "end")
    )
    row = t.Ident(position_name(shader, domain, "row"))
    body += [
        t.Let(first.name, linear_group(shader) * found.rows_at_once),
        t.If(first >= total, (t.Return(),)),
        t.Let(own.name, first + shader.lane // found.lanes),
        t.Let(place.name, shader.lane % found.lanes),
        t.Let(row.name, t.call("min", own, t.Binary("-", total, t.ONE))),
    ]
    to = found.lowerer(shader, row, body)
    begin, last = found.bounds(to)
    is_row = own < total
    body.append(t.Let(end.name, t.call("select", begin, last, is_row)))
    return _Rows(found, shader, first, row, place, to, begin, end, is_row)


def _name_long(rows: _Rows, body: list[t.Stmt]) -> t.Ident:
    """Write `let is_long = end - begin > 512u;`."""
    return rows.shader.let(body, "is_long", rows.is_long)


def _take_short(rows: _Rows, body: list[t.Stmt], is_long: t.Ident | None) -> None:
    """Write the reduction of each short row by its lanes, and the stage's steps for it."""
    found, shader, end = rows.found, rows.shader, rows.end
    # Lanes of long rows have no terms here.
    if is_long is not None:
        own = t.call("select", rows.end, rows.begin, is_long)
        end = shader.let(body, "short_end", own)
    total = found.accumulate(rows.to, rows.begin + rows.place, end, found.lanes)
    joiner = Joiner(shader, found.lanes, GROUP, subgroups=False)
    whole = t.Ident(shader.fresh("whole"))
    reduce = found.reduce
    joined = joiner.joined(reduce.kind, partial_type(reduce), total)
    body.append(t.Let(whole.name, joined))
    only = t.all_of(rows.place.equals(0), rows.is_row)
    if is_long is not None:
        only = t.all_of(only, t.Unary("!", is_long))
    stage = reduction_of(found.task)
    finish_steps(rows.to, found.task, stage, Value(whole), only)


def _take_long(rows: _Rows, is_long: t.Ident, bits: t.Expr) -> tuple[t.Stmt, ...]:
    """Return the loop in which all lanes take each long row of the workgroup.

    A bit of one word is set for each long row.  `workgroupUniformLoad` makes the word the
    same for all lanes, so that WGSL allows barriers in the loop over its bits.  In WGSL:

        if (place == 0u && is_long) { atomicOr(&long_bits, 1u << (lane >> 3u)); }
        workgroupBarrier();
        if (lane == 0u) { long_rows = atomicLoad(&long_bits); }
        for (var left = workgroupUniformLoad(&long_rows); left != 0u; left &= left - 1u) {
            let long_row = first + firstTrailingBit(left);
            ...                                          // reduced by 256 lanes
        }

    The caller has cleared `bits`, as not every adapter clears workgroup memory.
    """
    found, shader = rows.found, rows.shader
    shared = shader.workgroup_array("long_rows", "u32", 4)
    left, number, row = (
        t.Ident(shader.fresh(name)) for name in ("left", "number", "long_row")
    )
    mark = t.call(
        "atomicOr",
        t.Unary("&", bits),
        t.Binary("<<", t.ONE, shader.lane // found.lanes),
    )
    load = t.call("atomicLoad", t.Unary("&", bits))
    # The body of the loop: a long row, its range, its reduction by all lanes, its steps.
    block: list[t.Stmt] = [
        t.Let(number.name, t.call("firstTrailingBit", left)),
        t.Let(row.name, rows.first + number),
    ]
    to = found.lowerer(shader, row, block)
    begin, end = found.bounds(to)
    whole = long_sum(to, found, begin, end)
    stage = reduction_of(found.task)
    finish_steps(to, found.task, stage, Value(whole), shader.lane.equals(0))
    loop = t.For(
        left.name,
        t.call("workgroupUniformLoad", t.Unary("&", shared)),
        t.Binary("!=", left, t.ZERO),
        t.Assign(left, t.Binary("-", left, t.ONE), "&="),
        tuple(block),
    )
    return (
        t.If(t.all_of(rows.place.equals(0), is_long), (t.Evaluate(mark),)),
        t.BARRIER,
        t.If(shader.lane.equals(0), (t.Assign(shared, load),)),
        loop,
    )


def _finished(
    found: RaggedRows,
    shader: ShaderBuilder,
    body: list[t.Stmt],
    variant: str,
    turns: Size,
) -> DispatchShader:
    """Return the finished shader; `turns` bounds the loop over long rows, or their parts."""
    count = found.rows_at_once
    rows = "one row" if count == 1 else f"{count} rows"
    rest = "long ones by all lanes" if variant else "long ones are listed"
    return shader.finish(
        body,
        groups=ceil_div(found.rows, count),
        workgroup_size=GROUP,
        summary=f"{rows} per workgroup; {rest}.",
        variant=variant,
        trips=Literal(TURNS) + turns,
    )
