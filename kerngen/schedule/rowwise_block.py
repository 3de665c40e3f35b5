"""One workgroup per column of a product, for a block of rows at once.

The matrix lies along the reduction, as in `rowwise.py`: lanes stride along it, read it
once, and multiply it with every row of the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kerngen.schedule.builder import ShaderBuilder
from kerngen.schedule.cooperation import (
    counted_terms,
    finish_steps,
    join,
    own_total,
    reduction_label,
    reduction_of,
    shared_array,
    strided_loop,
)
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.row_block import RowBlock
from kerngen.schedule.rowwise import ROW_LANES, by_width, row_turns
from kerngen.schedule.task import Task, host_product
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t


def lower_rowwise_block(task: Task, count: int) -> Iterator[Variant]:
    """Return the variants that do `count` rows of a column in one dispatch."""

    def variant(name: str, when: str, names: set[str]) -> Variant:
        return Variant(name, when, (_shader(task, count, names),))

    return by_width(task, variant)


def _shader(task: Task, count: int, names: set[str]) -> Shader:
    reduce = reduction_of(task)
    width = LANES if names else 1
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    block = RowBlock(shader, task, count)
    lowerer = _place(shader, task, block)
    _accumulate(lowerer, task, block, width)
    _finish(lowerer, task, block, width)
    outer = tuple(index for index in task.domain if index != block.row)
    return shader.finish(
        lowerer.block,
        groups=f"{host_product(outer)} * {block.host_needed}",
        workgroup_size=ROW_LANES,
        summary=f"one workgroup per column, {count} rows at once.",
        variant="" if names else "edge",
        terms=counted_terms(reduce),
        turns=row_turns(task, reduce, str(ROW_LANES * width)),
    )


def _place(shader: ShaderBuilder, task: Task, block: RowBlock) -> Lowerer:
    """Begin a shader: blocks of one column follow each other, so that caches help."""
    outer = tuple(index for index in task.domain if index != block.row)
    group, blocks = (t.Ident(shader.fresh(name)) for name in ("group", "blocks"))
    body: list[t.Stmt] = [
        t.Let(group.name, linear_group(shader)),
        t.Let(blocks.name, block.needed),
        t.If(group >= shader.size(outer) * blocks, (t.Return(),)),
        *block.place(group % blocks),
    ]
    at = unravel(shader, body, outer, group // blocks)
    return Lowerer(shader, at, body, label=reduction_label(task))


def _accumulate(lowerer: Lowerer, task: Task, block: RowBlock, width: int) -> None:
    """Let each lane sum its terms of every row."""
    lowerer.block.extend(block.declare(width))
    loop = strided_loop(
        lowerer,
        reduction_of(task),
        block.take,
        start=lowerer.shader.lane,
        stride=t.u32(ROW_LANES),
        width=width,
    )
    lowerer.block.append(loop)


def _finish(lowerer: Lowerer, task: Task, block: RowBlock, width: int) -> None:
    """Join the lanes' totals, and let a lane finish each row."""
    shader, reduce, body = lowerer.shader, reduction_of(task), lowerer.block
    shared = shared_array(shader, reduce, block.count * ROW_LANES)
    starts = range(0, block.count * ROW_LANES, ROW_LANES)
    for start, total in zip(starts, block.totals, strict=True):
        value = own_total(reduce, total, width)
        body.append(t.Assign(shared[shader.lane + start], value))
    body += join(shader, reduce.kind, shared, count=ROW_LANES, starts=starts)
    row = t.Ident(shader.name(block.row.name))
    body.append(t.Let(row.name, block.first + shader.lane))
    inside = row < shader.extent(block.row.extent)
    finish_steps(
        replace(lowerer, at={**lowerer.at, block.row: row}),
        task,
        reduce,
        Value(shared[shader.lane * ROW_LANES]),
        t.all_of(shader.lane < block.count, inside),
    )
