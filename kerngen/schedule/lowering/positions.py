"""The number of an invocation, and the index values at a position of a domain."""

from __future__ import annotations

from kerngen.ir.nodes import Index
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.shader import tree as t


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
