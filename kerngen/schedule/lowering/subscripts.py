"""Lower subscripts to u32; those that may leave their axis are clamped to it.

Three forms, and their WGSL:

    x[i]               i
    x[2 * i + u - 1]   i * 2u + u - 1u                       affine: checked by the host
    x[ids[t]]          u32(clamp(ids[t], 0, i32(u.n) - 1))   any other
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, as_literal, subscript_form
from kerngen.ir.analysis.signs import lies_within
from kerngen.ir.types import Scalar
from kerngen.plan.hostmath import wrap_u32
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer


def lower_subscript(to: Lowerer, subscript: ir.Subscript, extent: ir.Extent) -> Value:
    """Return a subscript as a u32, or as four; if it may leave the axis, it is clamped to it.

    `extent` is the length of the axis.
    """
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

    It is if p is below d, and the axis has (d + by - 1) / by elements, as the scales of blocks
    do: no clamp is written then.
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
    """Return the value of a subscript, clamped to its axis unless it is within in any case."""
    value = to.lower(expr)
    if lies_within(expr, extent):
        type_ = wgsl_type(Scalar.U32, LANES if value.wide else 1)
        return Value(t.call(type_, value.expr), value.wide)
    length = to.shader.extent(extent)
    # A u32 can only be too large: min(value, n - 1).
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


# Affine subscripts in u32 arithmetic.  It wraps modulo 2^32: differences on the way may be
# negative, but a result within the axis is exact.


def lower_affine(to: Lowerer, form: AffineForm) -> Value:
    """Return the value of an affine form as a u32, or as four; positive terms come first.

    `2 * i - n + u` is `i * 2u + u - u.n`.
    """
    added: list[t.Expr] = []
    taken: list[t.Expr] = []
    for index, coefficient in form.terms.items():
        factor, is_negative = _magnitude(coefficient)
        term = index_position(to, index) * lower_fixed(to, factor)
        (taken if is_negative else added).append(term)
    offset, is_negative = _magnitude(form.offset)
    if as_literal(offset) != 0:
        (taken if is_negative else added).append(lower_fixed(to, offset))
    total: t.Expr = t.ZERO
    for term in added:
        total = total + term
    for term in taken:
        total = total - term
    return Value(total, wide=to.vector in form.terms)


def index_position(to: Lowerer, index: ir.Index) -> t.Expr:
    """Return the value of an index as a u32; for the vector index, those of four elements."""
    at = to.at[index]
    if index != to.vector:
        return at
    steps = t.Call("vec4u", tuple(map(t.u32, range(4))))
    return t.Binary("+", t.call("vec4u", at), steps)


def lower_fixed(to: Lowerer, expr: ir.Expr) -> t.Expr:
    """Return an integer as a u32, modulo 2^32; it must be the same for all elements."""
    match expr:
        case ir.Constant(value=value):
            return t.u32(wrap_u32(int(value)))
        case ir.DimValue(name=name):
            return to.shader.uniform(name)
        case ir.UniformValue(type=Scalar.U32):
            return to.lower(expr).expr
        case ir.Unary(op="-", operand=operand):
            return t.ZERO - lower_fixed(to, operand)
        # Modulo 2^32, i32 and u32 are the same bits, and sums and products agree.
        case ir.Cast(operand=operand) if operand.type.is_integer:
            return lower_fixed(to, operand)
        case ir.Binary(op="+", left=left, right=right):
            return lower_fixed(to, left) + lower_fixed(to, right)
        case ir.Binary(op="-", left=left, right=right):
            return lower_fixed(to, left) - lower_fixed(to, right)
        case ir.Binary(op="*", left=left, right=right):
            return lower_fixed(to, left) * lower_fixed(to, right)
        # Quotients do not: a dim by a positive number is safe, as neither is negative.
        case ir.Binary(
            op="/", left=ir.DimValue() as dim, right=ir.Constant(value=value) as divisor
        ) if (value > 0):
            return lower_fixed(to, dim) // lower_fixed(to, divisor)
        case _:
            lowered = to.lower(expr).expr
            return lowered if expr.type is Scalar.U32 else t.call("u32", lowered)


def _magnitude(expr: ir.Expr) -> tuple[ir.Expr, bool]:
    """Return an integer without a sign that is written, and whether it had one."""
    match expr:
        case ir.Unary(op="-", operand=operand):
            return operand, True
        case ir.Constant(value=value, type=Scalar.I32) if value < 0:
            return ir.Constant(-value, Scalar.I32), True
        case _:
            return expr, False
