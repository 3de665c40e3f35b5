"""The variant of strategy `map` for transposes: `y[i, j] = x[j, i]`, in tiles.

Lanes that are neighbours along j write contiguous memory, and read x in steps of a row.  So
eight neighbours along j have three other rows beside them, whose elements are those that follow
in x: 32 lanes read and write whole runs, which no other lanes have to read again.

    lane     0 .. 7     8 .. 15    16 .. 23    24 .. 31    32 .. 39    ...
    i        0          1          2           3           0
    j        0 .. 7     0 .. 7     0 .. 7      0 .. 7      8 .. 15

There is neither workgroup memory nor a barrier.  On an H200, 4096 x 4096 elements take 46 us, in
rows 258; through workgroup memory 41, but that takes llvmpipe three to six times as long as rows.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.nodes import Index
from kerngen.plan.size import all_of, ceil_div, compare
from kerngen.schedule.lowering.addresses import is_contiguous, varies
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.steps import write_steps
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scalar_only import is_scalar_only
from kerngen.schedule.sizes import domain_size, extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

LANES_PER_GROUP: Final = 256
"""The lanes of a workgroup: eight times the 32 of the table above."""

ROWS: Final = 4
RUN: Final = 8
"""32 lanes have 4 rows of 8 neighbours."""

COLUMNS: Final = LANES_PER_GROUP // ROWS
"""The columns of a workgroup's tile."""

TURNS: Final = 4
"""How many elements a lane computes: the tile has 16 rows."""

FEWEST_ROWS: Final = 8
FEWEST_COLUMNS: Final = 32
FEWEST: Final = 4096
"""Of fewer rows or columns, more than half of a tile would be empty in that direction; fewer
elements than 4,096 in all stay in a cache, however they are read.

On an H200, 100,000 rows of 10 elements take 18 us, in rows 10; 10 of 100,000 7 and 14.
"""


def tiled_variant(task: Task) -> Variant | None:
    """Return the variant in tiles, or None if the stage reads nothing transposed."""
    row = _transposed_index(task)
    if row is None:
        return None
    rows, columns = (extent_size(x.extent) for x in (row, task.domain[-1]))
    when = all_of(
        compare(">=", rows, FEWEST_ROWS),
        compare(">=", columns, FEWEST_COLUMNS),
        compare(">=", rows * columns, FEWEST),
    )
    return Variant("tiled", when, (_tiled_shader(task, row),))


def _transposed_index(task: Task) -> Index | None:
    """Return the index along which most transposed reads are contiguous: `i` of `x[j, i]`.

    Reads count that differ for all elements: others are smaller than what is written.
    """
    if not task.domain or not is_scalar_only(task.stage):
        return None
    outer = task.domain[:-1]
    each = dict.fromkeys(task.stage.reads)
    reads = [x for x in each if all(varies(x, index) for index in task.domain)]
    counts = {index: sum(is_contiguous(x, index) for x in reads) for index in outer}
    best = max(outer, key=lambda index: counts[index], default=None)
    return best if best and counts[best] else None


def _tiled_shader(task: Task, row: Index) -> DispatchShader:
    """Return the shader: a workgroup computes a tile of 16 x 64 elements.

    In WGSL, for `y[i, j] = x[j, i]`:

        let first_i = group / columns % rows * 16u + ((lane >> 3u) & 3u);
        let j = group % columns * 64u + ((lane >> 5u) * 8u + (lane & 7u));
        for (var turn = 0u; turn < 16u; turn += 4u) {
            let i = first_i + turn;
            if (i < u.m && j < u.n) { y[i * u.n + j] = x[j * u.m + i]; }
        }
    """
    shader, body = ShaderBuilder(task, {}), list[t.Stmt]()
    column = task.domain[-1]
    outer = tuple(index for index in task.domain if index not in (row, column))
    down = ceil_div(extent_size(row.extent), ROWS * TURNS)
    across = ceil_div(extent_size(column.extent), COLUMNS)
    group = shader.let(body, "group", linear_group(shader))
    rows = shader.let(body, "rows", to_wgsl(down, shader))
    columns = shader.let(body, "columns", to_wgsl(across, shader))
    groups = shader.size(outer) * rows * columns
    body.append(t.If(group >= groups, (t.Return(),)))
    at = unravel(shader, body, outer, group // columns // rows)
    lane, i, j = shader.lane, *(t.Ident(shader.name(x.name)) for x in (row, column))
    first = group // columns % rows * (ROWS * TURNS) + lane // RUN % ROWS
    first = shader.let(body, f"first_{row.name}", first)
    place = lane // (ROWS * RUN) * RUN + lane % RUN
    body.append(t.Let(j.name, group % columns * COLUMNS + place))
    turn = t.Ident(shader.fresh("turn"))
    lowerer = Lowerer(shader, {**at, row: i, column: j}, [])
    write_steps(lowerer, task.stage)
    inside = i < shader.extent(row.extent), j < shader.extent(column.extent)
    step = (
        t.Let(i.name, first + turn),
        t.If(t.all_of(*inside), tuple(lowerer.block)),
    )
    body.append(t.count_up(turn.name, 0, t.u32(ROWS * TURNS), ROWS, *step))
    return shader.finish(
        body,
        groups=domain_size(outer) * down * across,
        workgroup_size=LANES_PER_GROUP,
        summary=f"a tile of {ROWS * TURNS} x {COLUMNS} elements per workgroup.",
        variant="tiled",
    )
