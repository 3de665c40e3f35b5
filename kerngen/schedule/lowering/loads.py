"""Lower reads of tensors: one element, four neighbours, or four elements anywhere.

With j as the vector index, and x bound as vectors or as scalars:

    x[i, j]            x[(i * u.n + j) >> 2u]                     vectors, aligned
    x[i, j + 1]        vec4f(x[at], x[at + 1u], ...)              scalars, a run
    x[ids[j]]          vec4f(x[x_at.x], x[x_at.y], ...)           anywhere
    x[i, 0]            x[i * u.n]                                 narrow: no j in it
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kerngen.ir.analysis.reads import is_at
from kerngen.ir.nodes import Load
from kerngen.ir.types import Scalar
from kerngen.layout.types import Laid
from kerngen.schedule.lowering import memory
from kerngen.schedule.lowering.addresses import (
    is_contiguous,
    is_run,
    row_major,
    vector_address,
)
from kerngen.schedule.lowering.builder import StorageBinding, wgsl_type
from kerngen.schedule.lowering.subscripts import lower_subscript
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer


def lower_load(to: Lowerer, load: Load) -> Value:
    """Return the element that is read; four if it depends on the vector index."""
    buffer = to.shader.buffer(load.tensor)
    if not isinstance(load.tensor.element, Scalar):
        return Value(memory.read(*place_of_load(to, load)))
    # From the cheapest address to the dearest: the own element, four neighbours, four anywhere.
    if to.element is not None and is_at(load, to.element[0]):
        return _own(to, load, buffer, to.element[1])
    if to.vector is not None and is_contiguous(load, to.vector):
        return _neighbours(to, load, buffer)
    if to.vector is not None and buffer.lanes == 1 and is_run(load, to.vector):
        return _neighbours(to, load, buffer)
    values = _subscripts(to, load)
    if any(value.wide for value in values):
        return _scattered(to, load, buffer, values)
    at = [value.expr for value in values]
    return Value(_element(to, buffer, _address(to, load, at)))


def place_of_load(to: Lowerer, load: Load) -> tuple[t.Expr, Laid]:
    """Return the place in its buffer of the element or part that is read, and its layout."""
    buffer = to.shader.buffer(load.tensor)
    if to.element is not None and is_at(load, to.element[0]):
        address: t.Expr = to.element[1]
    else:
        values = _subscripts(to, load)
        address = _address(to, load, [value.expr for value in values])
    return memory.follow(to, buffer.expr[address], buffer.laid, load.path)


def _own(to: Lowerer, load: Load, buffer: StorageBinding, element: t.Expr) -> Value:
    """Read the invocation's own element, or its own four, by their number."""
    if to.vector is None or buffer.lanes == LANES:
        return Value(buffer.load(element), wide=buffer.lanes == LANES)
    return _four(load, buffer, element * LANES)


def _neighbours(to: Lowerer, load: Load, buffer: StorageBinding) -> Value:
    """Read four neighbours; their vector is aligned where the buffer is wide."""
    first = replace(to, vector=None)
    at = [value.expr for value in _subscripts(first, load)]
    if buffer.lanes == LANES and to.counts_vectors:
        address = vector_address(to.shader, load.tensor.extents, at)
        return Value(buffer.load(address), wide=True)
    address = _address(to, load, at)
    if buffer.lanes == LANES:
        return Value(buffer.load(address // LANES), wide=True)
    return _four(load, buffer, address)


def _four(load: Load, buffer: StorageBinding, address: t.Expr) -> Value:
    """Read four elements from a buffer that is bound as scalars."""
    reads = tuple(buffer.load(address + n) for n in range(LANES))
    return Value(t.Call(wgsl_type(load.type, LANES), reads), wide=True)


def _scattered(
    to: Lowerer, load: Load, buffer: StorageBinding, at: list[Value]
) -> Value:
    """Read four elements one by one, each at its own subscripts."""
    named = [to.named(value, f"{load.tensor.name}_at") for value in at]
    reads: list[t.Expr] = []
    for component in COMPONENTS:
        address = _address(to, load, [value.lane(component) for value in named])
        reads.append(_element(to, buffer, address))
    return Value(t.Call(wgsl_type(load.type, LANES), tuple(reads)), wide=True)


def _element(to: Lowerer, buffer: StorageBinding, address: t.Expr) -> t.Expr:
    """Read one element from a buffer that is bound as scalars or as vectors."""
    if buffer.lanes == 1:
        return buffer.load(address)
    at = to.named(Value(address, wide=True), f"{buffer.name}_at").expr
    return buffer.element(at)


def _address(to: Lowerer, load: Load, at: list[t.Expr]) -> t.Expr:
    return row_major(to.shader, load.tensor.extents, at)


def _subscripts(to: Lowerer, load: Load) -> list[Value]:
    extents = load.tensor.extents
    pairs = zip(load.subscripts, extents, strict=False)
    return [lower_subscript(to, subscript, extent) for subscript, extent in pairs]
