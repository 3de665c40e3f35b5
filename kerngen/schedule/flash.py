"""Strategy `flash`: attention in one pass over the keys, without a tensor of scores.

Which stages are attention: see `attention.py`; the shader: `flash_shader.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kerngen.ir.nodes import Extent
from kerngen.ir.reads import loads
from kerngen.ir.stages import Stage, Write
from kerngen.plan.size import ALWAYS, NEVER, Guard, all_of, compare, divides
from kerngen.schedule.attention import Attention, attention_of
from kerngen.schedule.contraction import memory_axis
from kerngen.schedule.flash_shader import FlashShader, wide_tensors
from kerngen.schedule.flash_tiling import FlashTiling, flash_tiling
from kerngen.schedule.program import Variant
from kerngen.schedule.rows_run import names_of
from kerngen.schedule.sizes import all_divisible, domain_size, extent_size
from kerngen.schedule.task import Options, Task
from kerngen.schedule.tiling import VECTOR


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
    whole = _whole(found, tiling)
    if whole != NEVER:
        shader = FlashShader(together, found, tiling, whole=True).shader()
        yield Variant("aligned", whole, (shader,))
    shader = FlashShader(together, found, tiling, whole=False).shader()
    yield Variant("edge", ALWAYS, (shader,))


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
    names, product = wide_tensors(found), found.product
    steps = found.finish.steps
    values = (
        product.left,
        product.right,
        found.score,
        found.value,
        *(step.value for step in steps),
    )
    tensors = {load.tensor for value in values for load in loads(value)}
    tensors |= {step.tensor for step in steps if isinstance(step, Write)}
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    return [tensor.extents[-1] for tensor in ordered if tensor.name in names]
