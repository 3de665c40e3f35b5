"""Row-major addresses of elements, and which reads are contiguous along an index."""

from __future__ import annotations

from kerngen.ir.analysis.affine import subscript_form
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Extent, Index, IndexValue, Load, LocalValue, Subscript
from kerngen.ir.walk import subscript_value, walk
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.shader import tree as t


def row_major(
    shader: ShaderBuilder, extents: tuple[Extent, ...], at: list[t.Expr]
) -> t.Expr:
    """Return `(i * n + j) * k + l` for subscripts i, j, l of axes m, n, k."""
    address = t.ZERO
    for extent, position in zip(extents, at, strict=True):
        scaled = address if address == t.ZERO else address * shader.extent(extent)
        address = scaled + position
    return address


def vector_address(
    shader: ShaderBuilder, extents: tuple[Extent, ...], at: list[t.Expr]
) -> t.Expr:
    """Return the address of an element divided by 4: the number of its vector of four.

    The length of the last axis must be a multiple of 4.  In a loop over the last subscript this
    is cheaper than `row_major(...) / 4`: the division is of the row's length, which is the same
    in all turns.

        i * (u.k >> 2u) + (p >> 2u)         instead of         (i * u.k + p) >> 2u
    """
    *outer, last = extents
    row = row_major(shader, tuple(outer), at[:-1])
    start = row if row == t.ZERO else row * (shader.extent(last) // 4)
    return start + at[-1] // 4


def is_contiguous(load: Load, index: Index) -> bool:
    """Whether the last subscript is `index` itself, and no other subscript depends on `index`.

    A local value counts as depending on `index`, as it may depend on any index of its stage.
    """
    if not load.subscripts or load.subscripts[-1] != IndexValue(index):
        return False
    outer = load.subscripts[:-1]
    return not any(_may_depend(s, index) for s in outer)


def is_run(load: Load, index: Index) -> bool:
    """Whether steps along `index` move by one element in memory, from an aligned start or not.

    `x[i, 2 + j]` is a run along j; as it may begin off a multiple of four, no vector can be
    read.
    """
    if not load.subscripts:
        return False
    *outer, last = load.subscripts
    form = subscript_form(last)
    return (
        form is not None
        and form.coefficient(index) == 1
        and not any(_may_depend(s, index) for s in outer)
    )


def varies(load: Load, index: Index) -> bool:
    """Whether different values of `index` may make `load` read different elements."""
    return any(_may_depend(s, index) for s in load.subscripts)


def _may_depend(subscript: Subscript, index: Index) -> bool:
    # What a local value depends on is not looked up: it may be any index.
    value = subscript_value(subscript)
    locals_ = (node for node in walk(value) if isinstance(node, LocalValue))
    return index in free_indices(value) or any(locals_)
