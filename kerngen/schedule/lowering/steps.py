"""Write the steps of a stage for one element of its domain, or for four neighbours."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import is_at, loads
from kerngen.ir.staging.stages import Define, Stage, Write
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children, places_in, subscript_value
from kerngen.layout.types import LeafLayout
from kerngen.schedule.lowering.addresses import is_contiguous, row_major, varies
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.composites import named, variable
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.memory import follow, stored
from kerngen.schedule.lowering.subscripts import lower_subscript
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.shader import tree as t


def write_steps(lowerer: Lowerer, stage: Stage) -> None:
    """Emit every step of the stage, in order, into the lowerer's block."""
    for step in stage.steps:
        match step:
            case Define(local, value):
                lowerer.define(local, value)
            case Write():
                _write(lowerer, stage, step)
            case _:
                assert_never(step)


def stored_value(lowerer: Lowerer, stage: Stage) -> Value:
    """Emit the steps in front of a stage's only store, its last step; return what it stores."""
    *before, store = stage.steps
    assert isinstance(store, Write), "the last step stores"
    for step in before:
        assert isinstance(step, Define), "it is the only one that stores"
        lowerer.define(step.local, step.value)
    return _value_of(
        replace(lowerer, label=store.tensor.name), store.tensor, store.value
    )


def _value_of(lowerer: Lowerer, tensor: ir.Tensor, value: ir.Expr) -> Value:
    """Return the value of a scalar that is stored in a tensor."""
    return (lowerer.storable if tensor.is_half else lowerer.lower)(value)


def _write(lowerer: Lowerer, stage: Stage, step: Write) -> None:
    named = replace(lowerer, label=step.tensor.name)
    if isinstance(step.value, StoreAt):
        _write_at(named, step, step.value)
    else:
        _write_to(named, step, step.value, _own_address(named, stage, step))


def _write_at(lowerer: Lowerer, step: Write, at: StoreAt) -> None:
    """Write at a position (`m[row, j] = ...`), if that is inside of the tensor."""
    tensor = step.tensor
    if isinstance(tensor.element, Scalar):
        store_at(lowerer, tensor, at.places, _value_of(lowerer, tensor, at.value))
        return
    places = _places(lowerer, tensor, at.places)
    address, inside = _addressed(lowerer, tensor, at.places, places)
    inner = replace(lowerer, block=[])
    _write_part(inner, step, at.value, address)
    lowerer.block.extend(_where(inside, inner.block))


def store_at(
    lowerer: Lowerer, tensor: ir.Tensor, at: tuple[ir.Subscript, ...], value: Value
) -> None:
    """Emit the store of a scalar, or of four, at position `at`; nothing is stored outside.

    Four elements that are not contiguous are stored one by one.  For `y[at[0]] = v`:

        let y_at = u32(at[0u]);
        if (y_at < u.n) { y[y_at] = v; }
    """
    buffer = lowerer.shader.buffer(tensor)
    # One element, or an aligned vector of four.
    if lowerer.vector is None or buffer.lanes == LANES:
        places = _places(replace(lowerer, vector=None), tensor, at)
        address, inside = _addressed(lowerer, tensor, at, places)
        stored = value.expr
        if buffer.lanes == LANES:
            address, stored = address // LANES, lowerer.widen(value, tensor.element)
        lowerer.block.extend(_where(inside, [buffer.store(address, stored)]))
        return
    # Four elements apart: each is stored at its own address, under its own condition.
    value = lowerer.named(value, f"{tensor.name}_value")
    places = _places(lowerer, tensor, at)
    for component in COMPONENTS:
        address, inside = _addressed(lowerer, tensor, at, places, component)
        store = buffer.store(address, value.lane(component))
        lowerer.block.extend(_where(inside, [store]))


def _where(inside: list[t.Expr], block: list[t.Stmt]) -> list[t.Stmt]:
    return [t.If(t.all_of(*inside), tuple(block))] if inside else block


def _places(
    lowerer: Lowerer, tensor: ir.Tensor, places: tuple[ir.Subscript, ...]
) -> list[Value]:
    """Name where a position is along each axis: as a u32, so -1 is past every end."""
    found: list[Value] = []
    for place, extent in zip(places, tensor.extents, strict=True):
        value = lower_subscript(lowerer, place, extent)
        # The subscript itself instead of the clamped one: outside, nothing is stored.
        if isinstance(place, ir.Clamped):
            value = lowerer.lower(place.value)
            type_ = wgsl_type(Scalar.U32, value.lanes)
            value = Value(t.call(type_, value.expr), value.wide)
        if value.wide or isinstance(place, ir.Clamped):
            name = lowerer.shader.let(lowerer.block, f"{tensor.name}_at", value.expr)
            value = Value(name, value.wide)
        found.append(value)
    return found


def _addressed(
    lowerer: Lowerer,
    tensor: ir.Tensor,
    places: tuple[ir.Subscript, ...],
    named: list[Value],
    component: str = "",
) -> tuple[t.Expr, list[t.Expr]]:
    """Return the address of a position, and the conditions that it is in the tensor.

    There is a condition for each subscript that the host can't check.  Of four elements that
    are stored one by one, `component` chooses one.
    """
    shader, at = lowerer.shader, [value.lane(component) for value in named]
    inside = [
        lane < shader.extent(extent)
        for lane, place, extent in zip(at, places, tensor.extents, strict=True)
        if isinstance(place, ir.Clamped)
    ]
    return row_major(shader, tensor.extents, at), inside


def _write_to(lowerer: Lowerer, step: Write, expr: ir.Expr, address: t.Expr) -> None:
    """Write a value to an address."""
    if not isinstance(step.tensor.element, Scalar):
        _write_part(lowerer, step, expr, address)
        return
    value = _value_of(lowerer, step.tensor, expr)
    buffer = lowerer.shader.buffer(step.tensor)
    if lowerer.vector is None:
        lowerer.block.append(buffer.store(address, value.expr))
        return
    wide = lowerer.widen(value, step.tensor.element)
    if buffer.lanes == LANES:
        # The address of the own element counts vectors already.
        scale = 1 if lowerer.element is not None else LANES
        lowerer.block.append(buffer.store(address // scale, wide))
        return
    message = f"a wide write to '{step.tensor.name}', which is bound as scalars"
    raise AssertionError(message)


def _write_part(lowerer: Lowerer, step: Write, expr: ir.Expr, address: t.Expr) -> None:
    """Write a vector or matrix, or a part of a struct."""
    value = lowerer.storable(expr).expr
    buffer = lowerer.shader.buffer(step.tensor)
    place, laid = follow(lowerer, buffer.expr[address], buffer.laid, step.path)
    half = isinstance(laid, LeafLayout) and laid.leaf.is_half
    if step.component:
        place = place.member(step.component)
        value = t.call("f16", value) if half else value
    elif half:
        # A constant that no f16 holds is refused; at run time it becomes infinite.
        name = variable if ir.is_constant(expr) else named
        value = stored(name(lowerer, value), laid)
    lowerer.block.append(t.Assign(place, value))


def _own_address(lowerer: Lowerer, stage: Stage, step: Write) -> t.Expr:
    """Return where the element lies that is written: the domain's own."""
    if lowerer.element is not None:
        return lowerer.element[1]
    # Indices behind those of the axes are in the path, into the element.
    at = [lowerer.at[index] for index in stage.domain[: step.tensor.rank]]
    return row_major(lowerer.shader, step.tensor.extents, at)


def in_runs(
    tensor: ir.Tensor, places: tuple[ir.Subscript, ...], index: ir.Index
) -> bool:
    """Whether stores to `tensor` at `places` are contiguous and aligned along `index`."""
    return is_contiguous(ir.Load(tensor, places), index)


def _writes_runs(step: Write, index: ir.Index) -> bool:
    at = step.value
    return not isinstance(at, StoreAt) or in_runs(step.tensor, at.places, index)


def is_flat(stage: Stage) -> bool:
    """Whether every element is computed from the elements at its own indices alone.

    All tensors must have the domain's shape.  An element then has the same address in each, its
    number, and no index is needed: `y[i, j] = 2.0 * x[i, j]` is
    `y[element] = 2.0 * x[element]`.
    """
    extents = tuple(index.extent for index in stage.domain)

    def only_own(expr: ir.Expr) -> bool:
        match expr:
            case ir.IndexValue(index):
                return index not in stage.domain
            case ir.Load(tensor=tensor, path=path) if is_at(expr, stage.domain):
                inner = map(subscript_value, places_in(path))
                return tensor.extents == extents and all(map(only_own, inner))
            case _:
                return all(only_own(child) for child in children(expr))

    # Tensors that are written must have the domain's shape, too.
    fits = all(tensor.extents == extents for tensor in stage.tensors_written)
    return fits and all(only_own(step.value) for step in stage.steps)


def vector_tensors(
    stage: Stage, exprs: tuple[ir.Expr, ...], index: ir.Index
) -> set[str]:
    """Return the names of tensors that can be bound as vectors of four along `index`.

    Those are the tensors that `exprs` read in aligned runs, and, if `index` is the last index
    of the stage's domain, those that the stage writes so.
    """
    found = tensors_in_runs(exprs, index)
    if stage.domain and stage.domain[-1] == index:
        found |= {
            step.tensor.name
            for step in stage.steps
            if isinstance(step, Write) and _writes_runs(step, index)
        }
    return found


def tensors_in_runs(exprs: tuple[ir.Expr, ...], index: ir.Index) -> set[str]:
    """Return the names of tensors that `exprs` read contiguously and aligned along `index`.

    A tensor is left out if another of its reads depends on `index` in any other way.
    """
    reads = [load for expr in exprs for load in loads(expr)]
    found = {load.tensor.name for load in reads if is_contiguous(load, index)}
    return found - {
        load.tensor.name
        for load in reads
        if varies(load, index) and not is_contiguous(load, index)
    }


def last_extents(
    stage: Stage, exprs: tuple[ir.Expr, ...], names: set[str]
) -> list[str | int]:
    """Return the last extent of each tensor in `names` that is read by `exprs`, or written."""
    read = (load.tensor for expr in exprs for load in loads(expr))
    tensors = {*read, *stage.tensors_written}
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    return [x.extents[-1] for x in ordered if x.name in names]
