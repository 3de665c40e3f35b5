"""The dispatch of `ragged` that takes short rows, several to a workgroup.

Long ones are taken by the whole workgroup then, one after the other; or they are listed,
for the dispatches of `long_rows.py`.
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
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.per_element import linear_group, position_name
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
    """A workgroup's rows in a shader: the `first`, and each lane's own, with its range."""

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
        """Whether the lane's row is long."""
        return t.Binary("-", self.end, self.begin) > self.found.long


def every_row(found: RaggedRows) -> DispatchShader:
    """Return the shader that takes all rows: long ones by whole workgroups."""
    shader, body = ShaderBuilder(found.task, {}), list[t.Stmt]()
    rows = _place(found, shader, body)
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
    """Return the shader that takes short rows, and lists the long ones."""
    shader, body = ShaderBuilder(found.task, {}), list[t.Stmt]()
    rows = _place(found, shader, body)
    is_long = _name_long(rows, body)
    _take_short(rows, body, is_long)
    listed = list_row(rows.to, found, rows.row, rows.begin, rows.end)
    body.append(t.If(t.all_of(rows.place.equals(0), is_long), listed))
    return _finished(found, shader, body, "", Literal(MOST_PARTS))


def _place(found: RaggedRows, shader: ShaderBuilder, body: list[t.Stmt]) -> _Rows:
    """Name the lane's row, its place there, and where the range begins and ends.

    Of rows beyond the last the range is empty: all lanes must come to the barriers.
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
    is_long = t.Ident(rows.shader.fresh("is_long"))
    body.append(t.Let(is_long.name, rows.is_long))
    return is_long


def _take_short(rows: _Rows, body: list[t.Stmt], is_long: t.Ident | None) -> None:
    """Let the lanes of each row that is not long reduce it, and do the stage's steps."""
    found, shader, end = rows.found, rows.shader, rows.end
    if is_long is not None:
        own = t.call("select", rows.end, rows.begin, is_long)
        end = t.Ident(shader.fresh("short_end"))
        body.append(t.Let(end.name, own))
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
    """Return the statements by which all lanes take each long row of the workgroup.

    The numbers of these rows are `bits` of one word, which is the same for all lanes: so
    barriers may depend on it.  It is 0 at first: adapters need not clear memory of
    workgroups for us.
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
