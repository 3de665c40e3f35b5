"""The dispatches of `ragged` for long rows: only the device can find out which these are.

    clear      no rows are listed
    (main)     short rows are reduced; long rows are listed, with their parts  short_rows.py
    take       the workgroups reduce the listed parts, in turn
    finish     the results of the parts of each long row are joined

The list is the buffer `tasks`, of words:

    0                     the number of parts
    1                     the number of long rows
    2 .. rows + 1         the long rows
    rows + 2 ..           for each part, its row and its number in the row

The order in the list differs from call to call, but no sum depends on it.  Ranges that
share terms may have more parts than there is room for: then each long row is taken as one
part.  So the order of a sum follows from the ranges alone, and the same call gives the same
bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.types import Scalar
from kerngen.plan.size import Literal, Size, ceil_div, maximum, minimum
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.argmax import partial_type
from kerngen.schedule.lowering.blocks import Blocks, accumulate_blocks
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    finish_steps,
    reduction_of,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.joining import Joiner
from kerngen.schedule.lowering.positions import linear_group, position_name
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.ragged.shape import AT_ONCE, GROUP, MOST_PARTS, RaggedRows
from kerngen.schedule.sizes import ceil_division, to_wgsl
from kerngen.shader import tree as t

BUFFERS: Final = 2
"""The scratch buffers beside the stage's tensors: `tasks` and `parts`."""

TAKE_GROUPS: Final = 4096
"""The most workgroups that take parts."""

FINISH_GROUPS: Final = 512
"""The most workgroups that join the parts of rows."""

BUSY_GROUPS: Final = 1024
"""The most workgroups for the number of terms: enough to keep a large device busy.

Where no row is long, 4,096 that find nothing to do take 2 us more on an H200.
"""

TERMS_OF_GROUP: Final = 2048
"""There is a workgroup that takes parts for every so many terms, up to `BUSY_GROUPS`."""

ROWS_OF_GROUP: Final = 256
"""There is a workgroup that takes parts for every so many rows, up to `TAKE_GROUPS`.

Some software adapters stop loops after 65,536 turns.  Parts have few, but long rows that
overlap, and have more parts than there is room for, are taken as a whole: a workgroup then
takes 256 rows of 16,384 terms in 4,352 turns, and reaches the limit at 2^36 terms in all,
for which such an adapter would take many minutes.
"""

HEAD: Final = 2
"""The words of `tasks` before the rows: the numbers of parts and of rows."""


def long_scratch(found: RaggedRows) -> tuple[Scratch, ...]:
    """Return the scratch buffers for long rows: the list, and the result of each part."""
    name = found.task.scratch_name
    words = value_bytes(partial_type(found.reduce)) // 4
    # Where each long row is one part, there are as many as rows at most.
    parts = maximum(found.room, found.rows)
    return (
        Scratch(name("tasks"), found.rows + found.room * 2 + HEAD),
        Scratch(name("parts"), parts * words),
    )


def clearing(found: RaggedRows) -> DispatchShader:
    """Return the shader that sets the numbers of listed parts and of listed rows to 0."""
    shader = ShaderBuilder(found.task, {})
    tasks = shader.scratch("tasks", Scalar.U32, written=True)
    body: list[t.Stmt] = [t.If(shader.lane < HEAD, (tasks.store(shader.lane, t.ZERO),))]
    return shader.finish(
        body,
        groups=Literal(1),
        workgroup_size=GROUP,
        summary="first of four dispatches: no rows are listed.",
        variant="clear",
    )


def list_row(
    to: Lowerer, found: RaggedRows, row: t.Expr, begin: t.Expr, end: t.Expr
) -> tuple[t.Stmt, ...]:
    """Return the statements that list a long row and its parts.

    In WGSL, where 512 parts have room:

        let parts_of_row = (end - begin + 4095u) / 4096u;
        atomicStore(&tasks[atomicAdd(&tasks[1u], 1u) + 2u], i);
        if (atomicLoad(&tasks[0u]) <= 512u) {
            let at = atomicAdd(&tasks[0u], parts_of_row);
            for (var part = 0u; part < min(parts_of_row, max(512u, at) - at); part++) {
                ...                                      // a row and a part's number
            }
        }

    Once there is no more room, parts are not counted, so that the counter can't overflow.
    """
    shader = to.shader
    tasks = shader.atomics("tasks").expr
    names = ("parts_of_row", "at", "part")
    count, at, part = (t.Ident(shader.fresh(name)) for name in names)
    room, rows = to_wgsl(found.room, shader), to_wgsl(found.rows, shader)
    length = t.Binary("-", end, begin)

    # The buffer is one of atomics in this shader, so that stores are atomic, too.
    def store(address: t.Expr, value: t.Expr) -> t.Stmt:
        return t.Evaluate(t.call("atomicStore", t.Unary("&", tasks[address]), value))

    def add(word: int, value: t.Expr) -> t.Expr:
        return t.call("atomicAdd", t.Unary("&", tasks[word]), value)

    # The first parts that have no room any more are counted, but not stored.
    task = (at + part) * 2 + rows + HEAD
    has_room = t.Binary("<=", t.call("atomicLoad", t.Unary("&", tasks[0])), room)
    stores = t.count_up(
        part.name,
        0,
        t.call("min", count, t.Binary("-", t.call("max", room, at), at)),
        1,
        store(task, row),
        store(task + 1, part),
    )
    return (
        t.Let(count.name, ceil_division(length, to_wgsl(found.part, shader))),
        store(add(1, t.ONE) + HEAD, row),
        t.If(has_room, (t.Let(at.name, add(0, count)), stores)),
    )


@final
@dataclass(frozen=True)
class _Task:
    """A shader whose workgroups take tasks of the list in turn: a part, or a whole row.

    - `outer`: the statements before the loop; `body`: those in it
    - `number`, `total`: the number of the task, and how many there are
    - `has_room`: whether all parts are listed; else each long row is one task
    - `row`, `part`: the task's row, and its part's number
    """

    shader: ShaderBuilder
    outer: list[t.Stmt]
    body: list[t.Stmt]
    number: t.Ident
    total: t.Ident
    has_room: t.Ident
    row: t.Ident
    part: t.Ident

    @classmethod
    def of(cls, found: RaggedRows) -> _Task:
        """Begin a shader: write which tasks there are, and the row and part of each.

        In WGSL:

            let has_room = tasks[0u] <= room;
            let total = select(tasks[1u], tasks[0u], has_room);
            for (var task = group; task < total; task += groups) {
                let i = tasks[select(task + 2u, rows + (task * 2u + 2u), has_room)];
                let part = select(0u, tasks[...], has_room);
        """
        shader = ShaderBuilder(found.task, {})
        tasks = shader.scratch("tasks", Scalar.U32, written=False)
        names = ("total", "has_room", "task", "part")
        total, has_room, number, part = (t.Ident(shader.fresh(name)) for name in names)
        row = t.Ident(position_name(shader, found.task.domain, "row"))
        room, rows = to_wgsl(found.room, shader), to_wgsl(found.rows, shader)
        at = rows + (number * 2 + HEAD)
        outer: list[t.Stmt] = [
            t.Let(has_room.name, t.Binary("<=", tasks.load(0), room)),
            t.Let(total.name, t.call("select", tasks.load(1), tasks.load(0), has_room)),
        ]
        listed = t.call("select", number + HEAD, at, has_room)
        own = t.call("select", t.ZERO, tasks.load(at + 1), has_room)
        body: list[t.Stmt] = [
            t.Let(row.name, tasks.load(listed)),
            t.Let(part.name, own),
        ]
        return cls(shader, outer, body, number, total, has_room, row, part)

    def finish(
        self, groups: Size, summary: str, variant: str, trips: Size
    ) -> DispatchShader:
        """Return the finished shader, with `body` in a loop that `groups` workgroups share."""
        loop = t.count_up(
            self.number.name,
            linear_group(self.shader),
            self.total,
            to_wgsl(groups, self.shader),
            *self.body,
        )
        return self.shader.finish(
            [*self.outer, loop],
            groups=groups,
            workgroup_size=GROUP,
            summary=summary,
            variant=variant,
            trips=trips,
        )


def taking_long(found: RaggedRows) -> DispatchShader:
    """Return the shader that reduces each part of the long rows, by 256 lanes."""
    task = _Task.of(found)
    shader = task.shader
    to = found.lowerer(shader, task.row, task.body)
    begin, end = found.bounds(to)
    first, last = (t.Ident(shader.fresh(name)) for name in ("first", "last"))
    part = to_wgsl(found.part, shader)
    upto = t.call("min", first + part, end)
    body = task.body
    body += [
        t.Let(first.name, begin + task.part * part),
        t.Let(last.name, t.call("select", end, upto, task.has_room)),
    ]
    whole = long_sum(to, found, first, last)
    parts = shader.scratch("parts", partial_type(found.reduce), written=True)
    store = parts.store(task.number, whole)
    task.body.append(t.If(shader.lane.equals(0), (store,)))
    return task.finish(
        _groups(found, TAKE_GROUPS),
        "third of four dispatches: a part of a long row per workgroup.",
        "take",
        _per_group(found, TAKE_GROUPS) * (ceil_div(found.part, GROUP * AT_ONCE) + 1),
    )


def finishing(found: RaggedRows) -> DispatchShader:
    """Return the shader that joins the parts of each long row, and does the stage's steps.

    The workgroup of a row's first part joins all of them, which follow it in the list.
    """
    task = _Task.of(found)
    shader, reduce, inner = task.shader, found.reduce, list[t.Stmt]()
    to = found.lowerer(shader, task.row, inner)
    begin, end = found.bounds(to)
    # As many parts as `list_row` has listed of the row; one if there was no room.
    count = t.Ident(shader.fresh("count"))
    number = ceil_division(t.Binary("-", end, begin), to_wgsl(found.part, shader))
    inner.append(t.Let(count.name, t.call("select", t.ONE, number, task.has_room)))
    parts = shader.scratch("parts", partial_type(reduce), written=False)
    at = shader.fresh("at")
    blocks = Blocks(at, shader.lane, count, GROUP, t.u32(GROUP * AT_ONCE), AT_ONCE)

    def term(place: t.Ident, _: list[t.Stmt]) -> t.Expr:
        return parts.load(task.number + place)

    total = t.Ident(shader.fresh("joined"))
    reduced = reduce.kind, partial_type(reduce), 1
    inner += accumulate_blocks(shader, total, reduced, blocks, term)
    whole = _joined(to, found, total)
    stage = reduction_of(found.task)
    finish_steps(to, found.task, stage, Value(whole), shader.lane.equals(0))
    task.body.append(t.If(task.part.equals(0), tuple(inner)))
    return task.finish(
        _groups(found, FINISH_GROUPS),
        "last of four dispatches: the parts of each long row together.",
        "finish",
        _per_group(found, FINISH_GROUPS) * (MOST_PARTS // (GROUP * AT_ONCE) + 1),
    )


def long_sum(to: Lowerer, found: RaggedRows, begin: t.Expr, end: t.Expr) -> t.Ident:
    """Emit the reduction of terms `begin` to `end` by a whole workgroup; return its result."""
    total = found.accumulate(to, begin + to.shader.lane, end, GROUP)
    return _joined(to, found, total)


def _joined(to: Lowerer, found: RaggedRows, total: t.Ident) -> t.Ident:
    shader, reduce = to.shader, found.reduce
    joiner = Joiner(shader, GROUP, GROUP, subgroups=False)
    whole = t.Ident(shader.fresh("whole"))
    joined = joiner.joined(reduce.kind, partial_type(reduce), total)
    to.block.append(t.Let(whole.name, joined))
    return whole


def _groups(found: RaggedRows, most: int) -> Size:
    """Return how many workgroups take the tasks in turn, `most` at most."""
    by_terms = minimum(ceil_div(found.terms, TERMS_OF_GROUP), BUSY_GROUPS)
    by_rows = ceil_div(found.rows, ROWS_OF_GROUP)
    return minimum(maximum(maximum(by_terms, by_rows), 1), most)


def _per_group(found: RaggedRows, most: int) -> Size:
    """Return how many parts a workgroup takes at most."""
    return ceil_div(found.room, _groups(found, most))
