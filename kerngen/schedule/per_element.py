"""Strategies `map` and `generic`: one invocation per element of the domain, or per four.

`generic` accepts every stage; its reductions are serial loops.  `map` takes stages
without reductions, and works on four neighbours at once where the sizes allow:

    let element = (workgroup.y * grid.x + workgroup.x) * 256u + lane;
    if (element >= (u.n >> 2u)) {
        return;
    }
    y[element] = 2.0 * x[element];                        // x and y bound as array<vec4f>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.analysis.reads import free_indices, loads
from kerngen.ir.nodes import Index
from kerngen.plan.size import ALWAYS, NEVER, ceil_div, divides
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.steps import (
    is_flat,
    last_extents,
    vector_tensors,
    write_steps,
)
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scalar_only import is_scalar_only
from kerngen.schedule.sizes import all_divisible, domain_size, loop_trips
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t

MAP_SIZE: Final = 256
GENERIC_SIZE: Final = 128
"""The invocations of a workgroup, of `map` and of `generic`.

How many workgroups start in a time is limited: on an H200, boxes of 3 x 3 of 4096 x 4096 elements
take 126 us, 214 with 64 invocations.  With 256, gathers of few elements take a fifth longer.
"""


def fits_generic(task: Task) -> str:
    """Return "", as `generic` fits every stage."""
    del task
    return ""


def by_neighbours(options: Options) -> bool:
    """Whether a schedule has the option `neighbours`: an invocation computes four elements."""
    return "neighbours" in options


def lower_generic(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: a serial loop for each element.

    With the option `neighbours`, there is one first that computes four neighbouring elements
    at once, where sizes allow and they share reads.
    """
    shares = shares_reads(task)
    if not by_neighbours(options):
        shader = _scalar_shader(task, GENERIC_SIZE, variant="", named=shares)
        yield Variant("", ALWAYS, (shader,))
        return
    if shares and (aligned := _four_sums(task)):
        yield aligned
    yield Variant("edge", ALWAYS, (_scalar_shader(task, MAP_SIZE, "edge", named=True),))


def shares_reads(task: Task) -> bool:
    """Whether neighbours along the last index have sums that read a common element."""
    if task.reduction is None or not task.domain:
        return False
    last = task.domain[-1]
    return any(last not in free_indices(load) for load in loads(task.reduction.body))


def _four_sums(task: Task) -> Variant | None:
    """Return the variant in which a lane computes four sums, of neighbouring elements.

    Their places are found at once, and what they share is read once for them.
    """
    if not is_scalar_only(task.stage):
        return None
    names = vector_tensors(task.stage, task.values, task.domain[-1])
    extents = last_extents(task.stage, task.values, names)
    whole = all_divisible([task.domain[-1].extent, *extents], LANES)
    if whole == NEVER:
        return None
    return Variant("aligned", whole, (_row_vector_shader(task, names),))


def fits_map(task: Task) -> str:
    """Return why `map` does not fit the stage, or "" if it does."""
    if task.reduction is not None:
        return f"the stage holds a reduction, '{task.reduction.kind}'"
    return ""


def lower_map(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: four elements at once, where sizes allow, and one for any size."""
    del options
    if aligned := _vector_variant(task):
        yield aligned
    yield Variant("edge", ALWAYS, (_scalar_shader(task, MAP_SIZE, variant="edge"),))


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
    # A flat stage reads and writes at the element's number; others need its indices.
    lowerer = Lowerer(shader, {}, body)
    if is_flat(task.stage):
        lowerer = Lowerer(shader, {}, body, element=(task.domain, at))
    else:
        lowerer.at.update(unravel(shader, body, task.domain, at))
    write_steps(lowerer, task.stage)
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
    *outer, lane = task.domain
    per_row = shader.extent(lane.extent) // LANES
    total = shader.size(tuple(outer)) * per_row
    body, at = start_invocation(shader, MAP_SIZE, total)
    # The invocation's number is that of a vector: row * (n / 4) + vector in the row.
    column: t.Expr = at
    indices: dict[Index, t.Expr] = {}
    if outer:
        row = t.Ident(position_name(shader, tuple(outer), "row"))
        body.append(t.Let(row.name, at // per_row))
        indices.update(unravel(shader, body, tuple(outer), row))
        column = at % per_row
    name = shader.name(lane.name)
    body.append(t.Let(name, column * LANES))
    indices[lane] = t.Ident(name)
    lowerer = Lowerer(shader, indices, body, vector=lane)
    write_steps(lowerer, task.stage)
    return shader.finish(
        body,
        groups=ceil_div(domain_size(task.domain), MAP_SIZE * LANES),
        workgroup_size=MAP_SIZE,
        summary=f"four elements along {lane.name} per invocation.",
        variant="aligned" if task.reduction else "",
        trips=loop_trips(task, {}),
    )


def start_invocation(
    shader: ShaderBuilder, size: t.Operand, total: t.Expr
) -> tuple[list[t.Stmt], t.Ident]:
    """Return the first statements of a shader, and the variable of the invocation's number.

    Workgroups have `size` lanes; invocations from number `total` on return.
    """
    name = shader.fresh("element")
    first = linear_group(shader) * size
    element = t.Ident(name)
    body: list[t.Stmt] = [
        t.Let(name, first + shader.lane),
        t.If(element >= total, (t.Return(),)),
    ]
    return body, element


def position_name(
    shader: ShaderBuilder, indices: tuple[Index, ...], wanted: str
) -> str:
    """Return an unused name for a position in a domain.

    If the domain has a single index, it is named after this, else `wanted`.
    """
    return shader.name(indices[0].name) if len(indices) == 1 else shader.fresh(wanted)


def linear_group(shader: ShaderBuilder) -> t.Expr:
    """Return the number of this workgroup among all, as WGSL.

    A dimension has at most 65,535 workgroups in WebGPU: more are folded into rows.
    """
    rows = t.Member(shader.workgroup, "y") * t.Member(shader.grid, "x")
    return rows + t.Member(shader.workgroup, "x")


def unravel(
    shader: ShaderBuilder,
    body: list[t.Stmt],
    indices: tuple[Index, ...],
    position: t.Expr,
    suffix: str = "",
) -> dict[Index, t.Expr]:
    """Append a `let` for the value of each index at a row-major position; return the values.

    If there is one index, and the position has a name, nothing is appended.  Names end with
    `suffix`, so that the values at several positions can be side by side.
    """
    if len(indices) == 1 and isinstance(position, t.Ident):
        return {indices[0]: position}
    named = {index: t.Ident(shader.name(index.name + suffix)) for index in indices}
    values = places(shader, indices, position)
    body.extend(t.Let(named[index].name, values[index]) for index in indices)
    return dict(named)


def places(
    shader: ShaderBuilder, indices: tuple[Index, ...], position: t.Expr
) -> dict[Index, t.Expr]:
    """Return the value of each index at a row-major position.

    Position p of indices i, j and k is `p / n_k / n_j`, `p / n_k % n_j` and `p % n_k`.
    """
    found: dict[Index, t.Expr] = {}
    for number, index in reversed(list(enumerate(indices))):
        extent = shader.extent(index.extent)
        found[index] = position % extent if number else position
        position = position // extent
    return found
