"""Strategy `gemm`: a matrix product in register tiles over workgroup memory.

It runs any reduction of two factors, sums of products and others (`contraction.py`).  This
module decides which stages it fits, and which variants they get; `shader.py` writes the
shaders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.analysis.reads import loads
from kerngen.ir.nodes import Index
from kerngen.plan.size import ALWAYS, NEVER, Guard, all_of, compare, divides
from kerngen.plan.tree import Scratch
from kerngen.schedule.contraction import (
    Contraction,
    bounded_contraction_of,
    memory_axis,
    product_of,
    sides_of,
)
from kerngen.schedule.gemm.phases import phases_of
from kerngen.schedule.gemm.pointwise import Pointwise, pointwise
from kerngen.schedule.gemm.shader import Access, GemmShader, wide_tensors
from kerngen.schedule.gemm.shares import TermShares
from kerngen.schedule.gemm.stream import joining_shader
from kerngen.schedule.gemm.tiling import DEFAULT, VECTOR, Tiling, tiling_of
from kerngen.schedule.lowering.ranks import ranked
from kerngen.schedule.lowering.steps import last_extents, vector_tensors
from kerngen.schedule.program import Variant
from kerngen.schedule.sizes import all_divisible, domain_size
from kerngen.schedule.task import Options, Task

EDGE_COLUMNS: Final = 8
"""The columns of an invocation in the tile `DEFAULT`, where vectors are not whole.

They are half of those with whole vectors, as the addresses of single elements need registers,
too.  On an H100, 4095 x 4093 x 4097 takes 3.20 ms with 8 x 8 sums, 3.52 with 8 x 16.
"""


def fits_gemm(task: Task) -> str:
    """Return why `gemm` does not fit the stage, or "" if it does."""
    found = bounded_contraction_of(task)
    if isinstance(found, str):
        return found
    if len(task.domain) < 2:
        return "its result has one axis; gemm needs two"
    if found.row is None:
        return f"no index belongs to one factor alone, as {found.column.name} does to the other"
    if not any(_axes(found, found.row)):
        return "no factor is read contiguously"
    return ""


def suits_gemm(task: Task, options: Options) -> str:
    """Return why these options do not suit a stage that `gemm` fits, or "" if they do."""
    if tiling_of(options).slices == 1:
        return ""
    found, _ = product_of(ranked(task))
    if found.type == found.left.type == found.right.type:
        return ""
    if product_of(task)[0].type != found.type:
        return f"slices don't join what '{found.kind}' compares of floats: integers, for their order"
    return (
        "its sums are of another type than its factors, in whose tiles slices join them"
    )


def shares_terms(task: Task, tiling: Tiling) -> Guard:
    """Return the condition that workgroups may share the terms of a tiling's tiles.

    The largest tiles leave few registers, and the shader for shares needs some for the ends of
    a share.  Where addresses take more of them, a workgroup has a tile: with single elements,
    and if both factors are read along the terms (`nt`).  On an H200, in ms, each workgroup with a
    whole tile in both shaders:

    | product | shader for a tile each | shader for shares |
    | --- | --- | --- |
    | 4095 x 4097 x 4093, `nn`, `nt`, `tn` | 3.23, 3.24, 3.03 | 3.52, 3.79, 3.45 |
    | 4096 x 4096 x 4096, `nt` | 2.98 | 3.05 |
    | 4096 x 4096 x 4096, `nn`, `tn` | 3.01, 2.99 | 2.90, 2.84 |
    """
    if not _is_default(tiling):
        return ALWAYS
    found, row = product_of(task)
    own = {row, found.column}
    return NEVER if own.isdisjoint(_axes(found, row)) else whole_vectors(task)[0]


def _is_default(tiling: Tiling) -> bool:
    """Whether a tiling has the tiles of `DEFAULT`, shared or not, in slices or not."""
    return replace(tiling, stream=0, slices=1) == DEFAULT


def row_of(task: Task) -> Index:
    """Return the row index of a stage that `gemm` fits: that of the left factor."""
    return product_of(task)[1]


def lower_gemm(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants of a stage, the one for any size last.

    - `pointwise`, `pointwise_padded`: as `aligned` and `padded`, of a convolution whose kernels
      have one element, and whose windows are no whole vectors
    - `aligned`: whole vectors, and a number of terms that is a multiple of the tile's k
    - `padded`: whole vectors, and any number of terms from k on
    - `singly`, `singly_padded`: the same, but for results, which are stored one by one
    - `undivided`, `phased`: single elements, of the gradient of a strided convolution, for
      strides of 1 and for others
    - `edge`: single elements
    """
    tiling = tiling_of(options)
    loading, storing = whole_vectors(task)
    vectors = all_of(loading, storing)
    if vectors == NEVER and (points := pointwise(task)):
        yield from _pointwise(points, tiling)
    yield from _of_vectors(task, tiling, Access.ALIGNED, vectors)
    if storing != ALWAYS and _loads_apart(task):
        yield from _of_vectors(task, tiling, Access.SINGLY, loading)
    if phases := phases_of(task):
        edge = Access.EDGE
        if phases.is_one != NEVER:
            yield _variant(task, tiling, edge, phases.is_one, one_phase=True)
        whole = _with_fewer_registers(task, replace(tiling, stream=0), edge)
        shader = GemmShader(task, whole, edge, phases=phases).shader()
        yield Variant("phased", phases.is_any, (shader,))
    yield _variant(task, tiling, Access.EDGE, ALWAYS)


_OF_POINTS: Final = {"aligned": "pointwise", "padded": "pointwise_padded"}
"""The variants of a product, each with its name for a convolution without windows."""


def _pointwise(points: Pointwise, tiling: Tiling) -> Iterator[Variant]:
    """Yield the variants of a convolution without its windows, for whole vectors."""
    vectors = all_of(points.when, *whole_vectors(points.task))
    for variant in _of_vectors(points.task, tiling, Access.ALIGNED, vectors):
        first, *others = variant.shaders
        summary = f"kernels of one element, {first.summary}"
        first = replace(first, variant="pointwise", summary=summary)
        name = _OF_POINTS[variant.name]
        yield replace(variant, name=name, shaders=(first, *others))


def _of_vectors(
    task: Task, tiling: Tiling, access: Access, vectors: Guard
) -> Iterator[Variant]:
    """Yield the variants that load whole vectors, under the condition `vectors`.

    Only a sum of products may be padded: a product with 0 adds nothing to it.
    """
    if vectors == NEVER:
        return
    found, _ = product_of(task)
    terms = domain_size(found.over)
    even = divides(tiling.k, terms)
    full = all_of(even, compare(">", terms, 0))
    aligned = _variant(task, tiling, access, all_of(full, vectors))
    yield aligned
    if found.is_product and even != ALWAYS:
        padded = "padded" if access is Access.ALIGNED else "singly_padded"
        long = compare(">=", terms, tiling.k)
        yield _padded(aligned, padded, all_of(long, vectors))


def _padded(aligned: Variant, name: str, when: Guard) -> Variant:
    """Return a variant for numbers of terms that are no multiple of the tile's k.

    Its shader has the same text: the override PADDED makes it pad the first turn with zeros.
    """
    first, *others = aligned.shaders
    constants = tuple((constant, 1) for constant, _ in first.constants)
    shaders = (replace(first, constants=constants), *others)
    return replace(aligned, name=name, when=when, shaders=shaders)


def _variant(
    task: Task,
    tiling: Tiling,
    access: Access,
    when: Guard,
    *,
    one_phase: bool = False,
) -> Variant:
    tiling = _with_fewer_registers(task, tiling, access)
    writer = GemmShader(task, tiling, access, one_phase=one_phase)
    shader = writer.shader()
    if not tiling.stream:
        return Variant(writer.name, when, (shader,))
    shares = TermShares.of(task, tiling)
    slots = shares.if_joined(shares.groups * (2 * tiling.m * tiling.n))
    scratch = Scratch(task.scratch_name("parts"), slots)
    spread = writer.right.gap > 1
    joined = joining_shader(task, tiling, wide=access.stores_vectors, spread=spread)
    return Variant(writer.name, when, (shader, joined), (scratch,))


def _with_fewer_registers(task: Task, tiling: Tiling, access: Access) -> Tiling:
    """Return the tiling of a variant: the largest tiles' is another where addresses are many."""
    if not _is_default(tiling):
        return tiling
    if access is Access.EDGE:
        return replace(tiling, micro_n=EDGE_COLUMNS, stream=0)
    return tiling if shares_terms(task, tiling) != NEVER else replace(tiling, stream=0)


def _axes(found: Contraction, row: Index) -> Iterator[Index | None]:
    """Yield the index along which each factor is read in runs, if any."""
    for factor, own in ((found.left, row), (found.right, found.column)):
        yield memory_axis(factor, found.last, own)


def whole_vectors(task: Task) -> tuple[Guard, Guard]:
    """Return the conditions that every vector is whole: those loaded, and those stored.

    NEVER for convolutions.  Vectors end where the last of several indices does, after few
    elements of a window: so vectors would gain nothing there.  A factor that is contiguous
    along neither index is loaded by vectors of four terms, too.
    """
    found, row = product_of(task)
    axes = [axis or found.last for axis in _axes(found, row)]
    if len(found.over) > 1 and not all(_axes(found, row)):
        return NEVER, NEVER
    if any(len(side) > 1 for side in sides_of(task)):
        return NEVER, NEVER
    loaded = wide_tensors(found, row)
    stored = vector_tensors(task.stage, task.values, found.column) - loaded
    widths = (last_extents(task.stage, task.values, x) for x in (loaded, stored))
    along_loads, along_stores = widths
    extents = dict.fromkeys(axis.extent for axis in axes)
    return (
        all_divisible((*extents, *along_loads), VECTOR),
        all_divisible((found.column.extent, *along_stores), VECTOR),
    )


def _loads_apart(task: Task) -> bool:
    """Whether factors can be loaded as vectors where results are stored one by one.

    Not if a factor has its vectors along the columns, as these are cut; nor if another part
    of the stage reads its tensor, which is bound either way, but not both.
    """
    found, row = product_of(task)
    wide = wide_tensors(found, row)
    reads = [load.tensor.name for value in task.values for load in loads(value)]
    own = [load.tensor.name for x in (found.left, found.right) for load in loads(x)]
    apart = all(reads.count(name) == own.count(name) for name in wide)
    return apart and found.column not in _axes(found, row)
