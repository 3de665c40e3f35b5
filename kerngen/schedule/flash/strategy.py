"""Strategy `flash`: attention in one pass over the keys, without a tensor of scores.

`attention.py` recognises attention, `attention_sums.py` its gradients.  The shaders are in
`shader.py`, for few queries in `few_queries.py`, and for gradients in `sums.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeAlias, assert_never

from kerngen.ir.nodes import Expr, Extent, Index, Tensor
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage
from kerngen.plan import size as host
from kerngen.plan.tree import Scratch
from kerngen.schedule.contraction import memory_axis
from kerngen.schedule.flash.attention import Attention, attention_of
from kerngen.schedule.flash.attention_sums import (
    AttentionSums,
    AttentionTiles,
    Statistics,
    SumPass,
    attention_sums_of,
)
from kerngen.schedule.flash.chunks import Chunks, chunks_of
from kerngen.schedule.flash.few_queries import FlashRows
from kerngen.schedule.flash.parts_join import PartsJoin
from kerngen.schedule.flash.shader import FlashShader, wide_tensors
from kerngen.schedule.flash.stored_sum import StoredSumShader, counting_shader
from kerngen.schedule.flash.sums import (
    NumbersShader,
    SumShader,
    wide_in_numbers,
    wide_in_pass,
)
from kerngen.schedule.flash.tile_pass import keys_in_vectors
from kerngen.schedule.flash.tiling import FlashTiling, flash_tiling
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.per_element import lower_generic
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.sizes import all_divisible, domain_size, extent_size
from kerngen.schedule.task import Options, Task

Found: TypeAlias = Attention | AttentionSums
"""What the strategy runs: attention, or the gradients of it."""


def flash_of(task: Task) -> Found | str:
    """Return the attention or its gradients that begin with the stage, or why none do."""
    found = attention_of(task)
    if isinstance(found, str):
        sums = attention_sums_of(task)
        return found if isinstance(sums, str) else sums
    return found


def fits_flash(task: Task) -> str:
    """Return why no attention or gradient of it begins with the stage, or "" if one does."""
    found = flash_of(task)
    return found if isinstance(found, str) else ""


def flash_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that run together; the task's stage alone if it is no attention."""
    found = flash_of(task)
    return (task.stage,) if isinstance(found, str) else found.stages


def flash_requires(task: Task) -> host.Guard:
    """Return the condition that each result has an invocation which writes it.

    The largest scores and totals of rows may be results, as gradients need them: invocations
    of the first column write them.
    """
    found = flash_of(task)
    if isinstance(found, Attention) and found.beside:
        return host.compare(">", extent_size(found.column.extent), 0)
    return host.ALWAYS


def lower_flash(task: Task, options: Options) -> Iterator[Variant]:
    """Yield a variant for sizes that vectors and tiles divide, and one for any size."""
    found, tiling = flash_of(task), flash_tiling(options)
    assert not isinstance(found, str), found
    if isinstance(found, AttentionSums):
        yield from _sums(task, found, tiling)
        return
    together = _together(task, found.stages, found.finish.domain)
    if tiling.rows:
        yield from _rows(together, found, tiling.columns)
        return
    whole = _whole(found, tiling)
    if whole != host.NEVER:
        shader = FlashShader(together, found, tiling, whole=True).shader()
        yield Variant("aligned", whole, (shader,))
    shader = FlashShader(together, found, tiling, whole=False).shader()
    yield Variant("edge", host.ALWAYS, (shader,))


def suits_flash(task: Task, options: Options) -> str:
    """Return why a stage that `flash` fits does not suit the options, or "" if it does."""
    found = flash_of(task)
    assert not isinstance(found, str), found
    tiling = flash_tiling(options)
    if tiling.chunk:
        return _suits_chunks(task, found, tiling)
    if not tiling.rows:
        return ""
    if isinstance(found, AttentionSums):
        return "with rows, it is attention itself and not its gradients"
    if len(found.product.over) > 1:
        return "with rows, the product has one index to sum over"
    if len(found.tensors) + 2 > MAX_TENSORS:
        return f"with rows, it takes more than {MAX_TENSORS - 2} tensors"
    return ""


def _suits_chunks(task: Task, found: Found, tiling: FlashTiling) -> str:
    if isinstance(found, Attention):
        return "with a chunk, it is the gradients of attention"
    chunks = chunks_of(task, found, tiling)
    return chunks if isinstance(chunks, str) else ""


def _sums(task: Task, found: AttentionSums, tiling: FlashTiling) -> Iterator[Variant]:
    """Yield variants for gradients: a dispatch for the numbers of rows, then the passes.

    With chunks, the last three dispatches (maker, taker, count) are repeated for each chunk.
    """
    scratch: tuple[Scratch, ...] = ()
    if found.numbers is not None:
        scratch = (Scratch(found.numbers.name, _size_of(found.numbers)),)
    chunks = chunks_of(task, found, tiling) if tiling.chunk else None
    assert not isinstance(chunks, str), chunks
    again = None
    if chunks:
        again = chunks.count
        counted = host.add(chunks.counter, VECTOR)
        scratch = (Scratch(chunks.numbers.name, counted), chunks.scratch)
    for whole, name in ((True, "aligned"), (False, "edge")):
        when: host.Guard = host.ALWAYS
        if whole:
            when = _whole_sums(found, tiling)
        if when != host.NEVER:
            shaders = (*_sum_shaders(task, found, tiling, chunks, whole=whole),)
            yield Variant(name, when, shaders, scratch, again, repeated=3)


def _sum_shaders(
    task: Task,
    found: AttentionSums,
    tiling: FlashTiling,
    chunks: Chunks | None,
    *,
    whole: bool,
) -> Iterator[DispatchShader]:
    # First the numbers of rows: by a pass over the keys, or by a plain stage.
    ends = [x.finish.name for each in found.passes for x in each.sums]
    before = tuple(stage for stage in found.stages if stage.name not in ends)
    stem = _together(task, found.stages, task.domain).stem
    match found.statistics:
        case Statistics() as first:
            own = replace(_together(task, before, first.domain), stem=stem)
            assert found.numbers is not None, "of the statistics"
            yield NumbersShader(own, first, found.numbers, tiling, whole=whole).shader()
        case Stage() as stage:
            own = replace(task, stage=stage, stem=stem)
            yield from (s for v in lower_generic(own, {}) for s in v.shaders)
        case None:
            pass
        case _:
            assert_never(found.statistics)
    # Then the sums that don't go by chunks, and the dispatches of the chunks.
    apart = (chunks.maker, chunks.taker) if chunks else ()
    for each in found.passes:
        if each not in apart:
            own = _of_pass(task, each, stem)
            yield SumShader(own, each, tiling, whole=whole).shader()
    if chunks:
        own = _of_pass(task, chunks.taker, stem)
        yield counting_shader(own, chunks, first=1)
        maker = _of_pass(task, chunks.maker, stem)
        yield SumShader(maker, chunks.maker, tiling, chunks, whole=whole).shader()
        yield StoredSumShader(own, chunks, tiling.stored, whole=whole).shader()
        yield counting_shader(own, chunks, first=0)


def _of_pass(task: Task, found: SumPass, stem: str) -> Task:
    stages = tuple(each.finish for each in found.sums)
    return replace(_together(task, stages, stages[0].domain), stem=stem)


def _size_of(tensor: Tensor) -> host.Size:
    return host.product_of(extent_size(extent) for extent in tensor.extents)


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
        if when != host.NEVER:
            join = PartsJoin(task, found, writer.split)
            shaders = (writer.shader(), join.shader())
            yield Variant(name, when, shaders, writer.scratch())


def _together(task: Task, stages: tuple[Stage, ...], domain: tuple[Index, ...]) -> Task:
    """Return a task whose stage has the steps of all stages."""
    steps = tuple(step for stage in stages for step in stage.steps)
    stage = Stage(names_of(stages), domain, steps)
    stem = task.stem
    if len(stages) == len(task.staged.stages):
        stem = stem.removesuffix(f".{task.stage.name}")
    return replace(task, stage=stage, stem=stem)


def _whole(found: Attention, tiling: FlashTiling) -> host.Guard:
    """Return the condition that attention has whole vectors, and whole turns of terms."""
    return _whole_pass(
        AttentionTiles(found.batch, found.row, found.key, (found.product,)),
        ((found.value, found.column),),
        wide_tensors(found),
        found.tensors,
        tiling,
    )


def _whole_sums(found: AttentionSums, tiling: FlashTiling) -> host.Guard:
    """Return the condition of `_whole` for all passes of gradients."""
    guards: list[host.Guard] = []
    if isinstance(found.statistics, Statistics):
        first = found.statistics
        names = wide_in_numbers(first)
        guards.append(_whole_pass(first.tiles, (), names, first.tensors, tiling))
    for each in found.passes:
        values = tuple((x.value, x.column) for x in each.sums)
        names = wide_in_pass(each)
        guards.append(_whole_pass(each.tiles, values, names, each.tensors, tiling))
    return host.all_of(*guards)


def _whole_pass(
    tiles: AttentionTiles,
    values: Sequence[tuple[Expr, Index]],
    names: AbstractSet[str],
    tensors: Iterable[Tensor],
    tiling: FlashTiling,
) -> host.Guard:
    """Return the condition of `_whole` for a pass over tiles, with values and their columns.

    It binds `tensors`, those of `names` as vectors of four.
    """
    key = extent_size(tiles.key.extent)
    sides: list[Extent] = [column.extent for _, column in values]
    guards: list[host.Guard] = []
    if keys_in_vectors(tiles.products, values, tiles.key):
        sides.append(tiles.key.extent)
        guards.append(host.divides(tiling.weights, key))
    # Whole turns of each product's terms; whole vectors everywhere.
    for product in tiles.products:
        if len(product.over) > 1:
            return host.NEVER
        if memory_axis(product.left, product.last, tiles.row) == tiles.row:
            sides.append(tiles.row.extent)
        over = domain_size(product.over)
        guards += [host.divides(tiling.terms, over), host.compare(">", over, 0)]
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    last = [tensor.extents[-1] for tensor in ordered if tensor.name in names]
    return host.all_of(
        *guards,
        all_divisible((*sides, *last), VECTOR),
        host.compare(">", key, 0),
    )
