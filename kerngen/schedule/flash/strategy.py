"""Strategy `flash`: attention in one pass over the keys, without a tensor of scores.

Which stages are attention: see `attention.py`; the shader: `shader.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kerngen.ir.nodes import Extent
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage
from kerngen.plan.size import ALWAYS, NEVER, Guard, all_of, compare, divides
from kerngen.schedule.contraction import memory_axis
from kerngen.schedule.flash.attention import Attention, attention_of
from kerngen.schedule.flash.few_queries import FlashRows
from kerngen.schedule.flash.shader import FlashShader, wide_tensors
from kerngen.schedule.flash.tiling import FlashTiling, flash_tiling
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.program import Variant
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.sizes import all_divisible, domain_size, extent_size
from kerngen.schedule.task import Options, Task


def fits_flash(task: Task) -> str:
    """Say why no attention begins with the stage; empty if one does."""
    found = attention_of(task)
    return found if isinstance(found, str) else ""


def flash_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that run together, from the task's on."""
    found = attention_of(task)
    return (task.stage,) if isinstance(found, str) else found.stages


def lower_flash(task: Task, options: Options) -> Iterator[Variant]:
    """Yield a variant for whole vectors and turns, and one for any size."""
    found, tiling = attention_of(task), flash_tiling(options)
    assert isinstance(found, Attention), found
    together = _together(task, found)
    if tiling.rows:
        yield from _rows(together, found, tiling.columns)
        return
    whole = _whole(found, tiling)
    if whole != NEVER:
        shader = FlashShader(together, found, tiling, whole=True).shader()
        yield Variant("aligned", whole, (shader,))
    shader = FlashShader(together, found, tiling, whole=False).shader()
    yield Variant("edge", ALWAYS, (shader,))


def suits_flash(task: Task, options: Options) -> str:
    """Say why attention does not suit the options; empty if it does."""
    found = attention_of(task)
    assert isinstance(found, Attention), found
    if not flash_tiling(options).rows:
        return ""
    if len(found.product.over) > 1:
        return "with rows, the product has one index to sum over"
    if len(found.tensors) + 2 > MAX_TENSORS:
        return f"with rows, it takes more than {MAX_TENSORS - 2} tensors"
    return ""


def _rows(task: Task, found: Attention, columns: int) -> Iterator[Variant]:
    """Yield variants for few rows: whole vectors, or any."""
    writers = (FlashRows(task, found, columns, whole) for whole in (True, False))
    for writer, name in zip(writers, ("aligned", "edge"), strict=True):
        names = writer.wide() if writer.whole else set[str]()
        tensors = sorted(found.tensors, key=lambda tensor: tensor.name)
        last = [tensor.extents[-1] for tensor in tensors if tensor.name in names]
        sides: list[Extent] = []
        if writer.whole:
            sides = [found.product.last.extent, found.column.extent, *last]
        when = all_divisible(sides, VECTOR)
        if when != NEVER:
            shaders = (writer.shader(), writer.joining())
            yield Variant(name, when, shaders, writer.scratch())


def _together(task: Task, found: Attention) -> Task:
    """Return a task whose stage has the steps of all stages."""
    steps = tuple(step for stage in found.stages for step in stage.steps)
    stage = Stage(names_of(found.stages), found.finish.domain, steps)
    stem = task.stem
    if len(found.stages) == len(task.staged.stages):
        stem = stem.removesuffix(f".{task.stage.name}")
    return replace(task, stage=stage, stem=stem)


def _whole(found: Attention, tiling: FlashTiling) -> Guard:
    """Return the condition that every vector and turn is whole."""
    product = found.product
    over, key = product.over, extent_size(found.key.extent)
    axes = memory_axis(product.left, product.last, found.row)
    if len(over) > 1:
        return NEVER
    sides: list[Extent] = [found.key.extent, found.column.extent]
    if axes == found.row:
        sides.append(found.row.extent)
    return all_of(
        divides(tiling.terms, domain_size(over)),
        divides(tiling.weights, key),
        all_divisible((*sides, *_last_extents(found)), VECTOR),
        compare(">", domain_size(over), 0),
        compare(">", key, 0),
    )


def _last_extents(found: Attention) -> list[Extent]:
    """Return the lengths of the last axes of the tensors that vectors are of."""
    names = wide_tensors(found)
    ordered = sorted(found.tensors, key=lambda tensor: tensor.name)
    return [tensor.extents[-1] for tensor in ordered if tensor.name in names]
