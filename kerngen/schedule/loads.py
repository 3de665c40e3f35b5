"""Lower reads of tensors: one element, four neighbours, or four that lie anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerngen.ir.nodes import Expr, Extent, Index, IndexValue, Load
from kerngen.ir.reads import is_at
from kerngen.ir.types import Scalar
from kerngen.schedule.addresses import is_contiguous, row_major
from kerngen.schedule.builder import Buffer, wgsl_type
from kerngen.schedule.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering import Lowerer


def lower_load(to: Lowerer, load: Load) -> Value:
    """Return the element of a read, or with a vector index four of them."""
    buffer = to.shader.buffer(load.tensor)
    if to.element is not None and is_at(load, to.element[0]):
        return Value(buffer.expr[to.element[1]], wide=buffer.lanes > 1)
    if to.vector is not None and is_contiguous(load, to.vector):
        return _neighbours(to, load, buffer, to.vector)
    values = _subscripts(to, load, load.subscripts)
    if any(value.wide for value in values):
        return _scattered(to, load, buffer, values)
    at = [value.expr for value in values]
    return Value(_element(to, buffer, _address(to, load, at)))


def _neighbours(to: Lowerer, load: Load, buffer: Buffer, vector: Index) -> Value:
    """Read four neighbours; their vector is aligned where the buffer is wide."""
    outer = _subscripts(to, load, load.subscripts[:-1])
    at = [*(value.expr for value in outer), to.at[vector]]
    address = _address(to, load, at)
    if buffer.lanes == LANES:
        return Value(buffer.expr[address // LANES], wide=True)
    reads = tuple(buffer.expr[address + n] for n in range(LANES))
    return Value(t.Call(wgsl_type(load.type, LANES), reads), wide=True)


def _scattered(to: Lowerer, load: Load, buffer: Buffer, at: list[Value]) -> Value:
    """Read four elements that lie anywhere."""
    named = [to.named(value, f"{load.tensor.name}_at") for value in at]
    reads: list[t.Expr] = []
    for component in COMPONENTS:
        address = _address(to, load, [value.lane(component) for value in named])
        reads.append(_element(to, buffer, address))
    return Value(t.Call(wgsl_type(load.type, LANES), tuple(reads)), wide=True)


def _element(to: Lowerer, buffer: Buffer, address: t.Expr) -> t.Expr:
    """Read one element from a buffer that is bound as scalars or as vectors."""
    if buffer.lanes == 1:
        return buffer.expr[address]
    at = to.named(Value(address, wide=True), f"{buffer.name}_at").expr
    return buffer.expr[at // LANES][at % LANES]


def _address(to: Lowerer, load: Load, at: list[t.Expr]) -> t.Expr:
    return row_major(to.shader, load.tensor.extents, at)


def _subscripts(to: Lowerer, load: Load, subscripts: tuple[Expr, ...]) -> list[Value]:
    extents = load.tensor.extents
    return [_subscript(to, s, e) for s, e in zip(subscripts, extents, strict=False)]


def _subscript(to: Lowerer, subscript: Expr, extent: Extent) -> Value:
    """Return a subscript as a u32: a bare index as it is, all else clamped."""
    if isinstance(subscript, IndexValue) and subscript.index != to.vector:
        return Value(to.at[subscript.index])
    value = to.lower(subscript)
    if isinstance(subscript, IndexValue):
        return Value(t.call("vec4u", value.expr), wide=True)
    length = to.shader.extent(extent)
    if subscript.type is Scalar.U32:
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
