"""Strategies `map` and `generic`: one invocation per element of the domain, or per four.

`generic` accepts every stage; its reductions are serial loops.  `map` takes stages
without reductions, and works on four neighbours at once where the sizes allow:

    let element = (workgroup.y * grid.x + workgroup.x) * 256u + lane;
    if (element >= (u.n >> 2u)) {
        return;
    }
    y[element] = 2.0 * x[element];                        // x and y bound as array<vec4f>

Where they don't, an invocation of a stage that stores one scalar has four that lie apart
(`coarse.py`), of other stages one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.analysis.conditions import is_conditional
from kerngen.ir.analysis.reads import free_indices, loads
from kerngen.ir.nodes import Index
from kerngen.ir.walk import subscript_value
from kerngen.plan.size import ALWAYS, NEVER, ceil_div, compare, divides
from kerngen.schedule.coarse import coarse_shader, element_lowerer, stores_one
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import position_name, start_invocation, unravel
from kerngen.schedule.lowering.steps import (
    is_flat,
    last_extents,
    stored_value,
    vector_tensors,
    write_steps,
)
from kerngen.schedule.lowering.values import COMPONENTS, LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scalar_only import is_scalar_only
from kerngen.schedule.scatter.strategy import fits_scatter
from kerngen.schedule.sizes import all_divisible, domain_size, extent_size, loop_trips
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t

MAP_SIZE: Final = 256
GENERIC_SIZE: Final = 128
"""The invocations of a workgroup, of `map` and of `generic`.

How many workgroups start in a time is limited: on an H200, boxes of 3 x 3 of 4096 x 4096 elements
take 126 us, 214 with 64 invocations.  With 256, gathers of few elements take a fifth longer.
"""

MOST_UNROLLED: Final = 64
"""Loops over a fixed number of terms, up to this, are taken to be unrolled by a driver."""


def fits_generic(task: Task) -> str:
    """Return "", as `generic` fits every stage."""
    del task
    return ""


def by_neighbours(options: Options) -> bool:
    """Whether a schedule has the option `neighbours`: an invocation computes four elements."""
    return "neighbours" in options


def lower_generic(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: a serial loop for each element.

    With the option `neighbours`, an invocation has four.  They are neighbours in a row where that
    shares reads: `aligned` in rows of whole vectors, and `overlapped` in others, of windows.  Else
    they lie apart (`coarse.py`).
    """
    fours = by_neighbours(options)
    vectors = [*_four_sums(task)] if fours and _shares_reads(task) else []
    yield from vectors
    name = "edge" if vectors else ""
    yield Variant(name, ALWAYS, (_looping_shader(task, name, fours=fours),))


def _looping_shader(task: Task, variant: str, *, fours: bool) -> DispatchShader:
    """Return the shader of a serial loop for each element; with `fours`, an invocation has four.

    Where a stage may run with them and without, what differs are overrides, so that both are
    one file.
    """
    size, both = MAP_SIZE if fours else GENERIC_SIZE, takes_fours(task)
    if _lie_apart(task) and (fours or both):
        return coarse_shader(task, size, variant, fours=fours, named=True)
    return _scalar_shader(task, size, variant, named=both)


def takes_fours(task: Task) -> bool:
    """Whether `generic` should compute four elements per invocation where there are many.

    Not with keys, as such loops have few results; and of sums that share nothing, only those
    of a few terms, and a fixed number.  A driver unrolls their loops, so that those of four
    elements overlap: on an H200, boxes of 3 x 3 of 800 x 800 elements take 4.7 us, and 5.9 one
    by one; `avg_pool2d` of 512 images of 56 x 56, whose windows have any size, 8.0 and 6.4.
    """
    reduction = task.reduction
    if reduction is None or (is_conditional(reduction) and not fits_scatter(task)):
        return False
    shares = _shares_reads(task)
    if shares and is_scalar_only(task.stage):
        return True
    few = compare("<=", domain_size(reduction.indices), MOST_UNROLLED)
    return _lie_apart(task) and (shares or few == ALWAYS)


def _lie_apart(task: Task) -> bool:
    """Whether the four elements of an invocation lie apart, where rows are no whole vectors.

    Not where there can't be as many as a workgroup has with four of each lane: `y: f32[5]`.
    """
    fills = compare(">=", domain_size(task.domain), MAP_SIZE * LANES) != NEVER
    return fills and stores_one(task) and not _overlaps(task)


def _shares_reads(task: Task) -> bool:
    """Whether neighbours along the last index have sums that read a common element."""
    if task.reduction is None or not task.domain:
        return False
    last = task.domain[-1]
    return any(last not in free_indices(load) for load in loads(task.reduction.body))


def _overlaps(task: Task) -> bool:
    """Whether neighbours share reads, and have windows that overlap: `k[u] * x[j + u]`."""
    if task.reduction is None or not _shares_reads(task):
        return False
    within, last = frozenset(task.reduction.indices), task.domain[-1]
    places = (
        free_indices(subscript_value(subscript))
        for load in loads(task.reduction.body)
        for subscript in load.subscripts
    )
    return any(last in place and place & within for place in places)


def _four_sums(task: Task) -> Iterator[Variant]:
    """Yield the variants in which a lane computes four sums, of neighbouring elements.

    Their places are found at once, and what they share is read once for them.
    """
    if not is_scalar_only(task.stage):
        return
    lane = task.domain[-1]
    names = vector_tensors(task.stage, task.values, lane)
    extents = last_extents(task.stage, task.values, names)
    whole = all_divisible([lane.extent, *extents], LANES)
    if whole != NEVER:
        yield Variant("aligned", whole, (_row_vector_shader(task, names),))
    # An element that two invocations compute may not be one that either reads.
    reads_own = not task.stage.tensors_read.isdisjoint(task.stage.tensors_written)
    if whole != ALWAYS and _overlaps(task) and stores_one(task) and not reads_own:
        long = compare(">=", extent_size(lane.extent), LANES)
        yield Variant("overlapped", long, (_overlapped_shader(task),))


def fits_map(task: Task) -> str:
    """Return why `map` does not fit the stage, or "" if it does."""
    if task.reduction is not None:
        return f"the stage holds a reduction, '{task.reduction.kind}'"
    return ""


def lower_map(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: four neighbours as a vector, where sizes allow, and single elements."""
    del options
    if aligned := _vector_variant(task):
        yield aligned
    single = coarse_shader if _lie_apart(task) else _scalar_shader
    yield Variant("edge", ALWAYS, (single(task, MAP_SIZE, "edge"),))


def _vector_variant(task: Task) -> Variant | None:
    if not task.domain or not is_scalar_only(task.stage):
        return None
    if is_flat(task.stage):
        when = divides(LANES, domain_size(task.domain))
        if when == NEVER:
            return None
        return Variant("aligned", when, (_flat_vector_shader(task),))
    lane = task.domain[-1]
    names = vector_tensors(task.stage, task.values, lane)
    extents = [lane.extent, *last_extents(task.stage, task.values, names)]
    aligned = all_divisible(extents, LANES)
    if aligned == NEVER:
        return None
    return Variant("aligned", aligned, (_row_vector_shader(task, names),))


def _scalar_shader(
    task: Task, size: int, variant: str, *, named: bool = False
) -> DispatchShader:
    """Return the shader of one element per invocation.

    If it is `named`, the size of a workgroup is an override, so that shaders which differ in
    it alone are one file.
    """
    shader = ShaderBuilder(task, {})
    workgroup = shader.override("WORKGROUP", size) if named else None
    total = shader.size(task.domain)
    body, at = start_invocation(shader, workgroup or size, total)
    write_steps(element_lowerer(shader, task, body, at), task.stage)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(task.domain), size),
        workgroup_size=size,
        workgroup_name=workgroup.name if workgroup else "",
        summary="one invocation per element.",
        variant=variant,
        trips=loop_trips(task, {}),
    )


def _flat_vector_shader(task: Task) -> DispatchShader:
    tensors = vector_tensors(task.stage, task.values, task.domain[-1])
    shader = ShaderBuilder(task, dict.fromkeys(tensors, LANES))
    total = shader.size(task.domain) // LANES
    body, at = start_invocation(shader, MAP_SIZE, total)
    lane = task.domain[-1]
    lowerer = Lowerer(shader, {}, body, vector=lane, element=(task.domain, at))
    write_steps(lowerer, task.stage)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(task.domain), MAP_SIZE * LANES),
        workgroup_size=MAP_SIZE,
        summary="four elements per invocation.",
    )


def _row_vector_shader(task: Task, names: set[str]) -> DispatchShader:
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    lane = task.domain[-1]
    per_row = shader.extent(lane.extent) // LANES
    body, indices, column = _start_in_rows(shader, task, per_row)
    name = shader.name(lane.name)
    body.append(t.Let(name, column * LANES))
    indices[lane] = t.Ident(name)
    write_steps(Lowerer(shader, indices, body, vector=lane), task.stage)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(task.domain), MAP_SIZE * LANES),
        workgroup_size=MAP_SIZE,
        summary=f"four elements along {lane.name} per invocation.",
        variant="aligned" if task.reduction else "",
        trips=loop_trips(task, {}),
    )


def _overlapped_shader(task: Task) -> DispatchShader:
    """Return the shader of four neighbours in a row of any length from 4 on, stored one by one.

    The last four of a row overlap those before them, which their invocation does not store.  On
    an H200, windows of 3 x 3 of 32 x 960 x 7 x 7 (`depthwise_conv2d`) take 15 us, 23 one by one
    and 26 apart; but 20,000 x 501 sums of 3 products take 40, and 33 apart.

        let own = element % ((u.n + 3u) >> 2u) * 4u;
        let j = min(own, u.n - 4u);
        if (j >= own) { y[i * u.n + j] = y_value.x; } ...
        y[i * u.n + j + 3u] = y_value.w;
    """
    shader = ShaderBuilder(task, {})
    *outer, lane = task.domain
    length = shader.extent(lane.extent)
    per_row = (length + (LANES - 1)) // LANES
    body, indices, column = _start_in_rows(shader, task, per_row)
    own = shader.let(body, "own", column * LANES)
    name = shader.name(lane.name)
    body.append(t.Let(name, t.call("min", own, t.Binary("-", length, t.u32(LANES)))))
    indices[lane] = first = t.Ident(name)
    lowerer = Lowerer(shader, indices, body, vector=lane)
    (written,) = task.stage.tensors_written
    value = lowerer.named(stored_value(lowerer, task.stage), f"{written.name}_value")
    at = row_major(shader, written.extents, [indices[x] for x in task.domain])
    address = shader.let(body, f"{written.name}_at", at)
    for number, component in enumerate(COMPONENTS):
        store = shader.buffer(written).store(address + number, value.lane(component))
        is_last = number == LANES - 1
        body.append(store if is_last else t.If(first + number >= own, (store,)))
    vectors = ceil_div(extent_size(lane.extent), LANES)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(tuple(outer)) * vectors, MAP_SIZE),
        workgroup_size=MAP_SIZE,
        summary=f"four elements along {lane.name} per invocation, stored one by one.",
        variant="overlapped",
        trips=loop_trips(task, {}),
    )


def _start_in_rows(
    shader: ShaderBuilder, task: Task, per_row: t.Expr
) -> tuple[list[t.Stmt], dict[Index, t.Expr], t.Expr]:
    """Return the first statements of an invocation that has one of `per_row` vectors of a row.

    With them return the values of all indices but the last, and the vector's number in its row.
    """
    outer = task.domain[:-1]
    body, at = start_invocation(shader, MAP_SIZE, shader.size(outer) * per_row)
    if not outer:
        return body, {}, at
    # The invocation's number is that of a vector: row * (n / 4) + vector in the row.
    row = t.Ident(position_name(shader, outer, "row"))
    body.append(t.Let(row.name, at // per_row))
    return body, unravel(shader, body, outer, row), at % per_row
