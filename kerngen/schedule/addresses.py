"""Where elements lie: row-major addresses, and reads along them."""

from __future__ import annotations

from kerngen.ir.nodes import Extent, Index, IndexValue, Load, LocalValue
from kerngen.ir.reads import free_indices
from kerngen.ir.walk import walk
from kerngen.schedule.builder import ShaderBuilder
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


def is_contiguous(load: Load, index: Index) -> bool:
    """Whether the last subscript is `index` itself, and no other may depend on it.

    A local may depend on any index of its stage.
    """
    if not load.subscripts or load.subscripts[-1] != IndexValue(index):
        return False
    outer = load.subscripts[:-1]
    locals_ = (node for s in outer for node in walk(s) if isinstance(node, LocalValue))
    return not any(index in free_indices(s) for s in outer) and not any(locals_)
