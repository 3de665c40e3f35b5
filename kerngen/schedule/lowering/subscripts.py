"""Lower subscripts to u32; those that may leave their axis are clamped to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal, subscript_form
from kerngen.ir.analysis.signs import lies_within
from kerngen.ir.types import Scalar
from kerngen.schedule.lowering.affine import index_position, lower_affine
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer


def lower_subscript(to: Lowerer, subscript: ir.Subscript, extent: ir.Extent) -> Value:
    """Return a subscript as a u32."""
    match subscript:
        case ir.IndexValue(index):
            return Value(index_position(to, index), wide=index == to.vector)
        case ir.Affine():
            form = subscript_form(subscript)
            assert form is not None, "only a clamped subscript has none"
            return lower_affine(to, form)
        case ir.Clamped(ir.Binary("/", ir.IndexValue(index), by)) if _is_block(
            to, index, as_literal(by), extent
        ):
            return _block(to, index, as_literal(by) or 1)
        case ir.Clamped(expr):
            return _clamped(to, expr, extent)
        case _:
            assert_never(subscript)


def _is_block(to: Lowerer, index: ir.Index, by: int | None, extent: ir.Extent) -> bool:
    """Whether the number of an index's block, `p / by`, is always inside of an axis.

    It is if p is below d, and the axis has (d + by - 1) / by elements.
    """
    if by is None or by < 1:
        return False
    if isinstance(index.extent, int):
        return isinstance(extent, int) and (index.extent - 1) // by < extent
    lengths = {dim.name: dim.value for dim in to.shader.task.kernel.derived}
    match lengths.get(str(extent)):
        case ir.Binary(
            "/", ir.Binary("+", ir.DimValue(name), ir.Constant(value=more)), whole
        ):
            same = name == index.extent and as_literal(whole) == by
            return same and more == by - 1
        case _:
            return False


def _block(to: Lowerer, index: ir.Index, by: int) -> Value:
    """Return `p / 32`, which is one number for four neighbours where p counts vectors."""
    if index != to.vector or (to.counts_vectors and by % LANES == 0):
        return Value(to.at[index] // by)
    return Value(t.Binary("/", index_position(to, index), t.u32(by)), wide=True)


def _clamped(to: Lowerer, expr: ir.Expr, extent: ir.Extent) -> Value:
    """Return the place in an axis that is nearest to the value."""
    value = to.lower(expr)
    if lies_within(expr, extent):
        type_ = wgsl_type(Scalar.U32, LANES if value.wide else 1)
        return Value(t.call(type_, value.expr), value.wide)
    length = to.shader.extent(extent)
    if expr.type is Scalar.U32:
        last = Value(t.Binary("-", length, t.ONE))
        wide, (a, b) = to.together((value, Scalar.U32), (last, Scalar.U32))
        return Value(t.call("min", a, b), wide)
    last = Value(t.Binary("-", t.call("i32", length), t.Literal("1")))
    zero = Value(t.Literal("0"))
    wide, clamped = to.together(
        (value, Scalar.I32), (zero, Scalar.I32), (last, Scalar.I32)
    )
    type_ = wgsl_type(Scalar.U32, LANES if wide else 1)
    return Value(t.call(type_, t.call("clamp", *clamped)), wide)
