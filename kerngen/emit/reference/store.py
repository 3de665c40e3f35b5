"""Print stores at a position: as slices where possible, else element by element."""

from __future__ import annotations

from kerngen.emit.members import fields
from kerngen.emit.python_code import call
from kerngen.emit.reference.expr import ReferencePrinter
from kerngen.emit.reference.runs import read_regardless, run_of, run_text
from kerngen.emit.reference.scope import Scope
from kerngen.ir.analysis.positions import moving_index
from kerngen.ir.analysis.subscript_checks import may_be_empty
from kerngen.ir.nodes import At, Statement
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import subscript_value


def write_store(scope: Scope, statement: Statement, stored: StoreAt) -> None:
    """Write a store at a position.

    Before:  cache[at + i, g] = k[i, g];     m[pos[0], j] = v[j];
    After:   cache[at : at + s, :] = k       if n:
                                                 ref.store(m, v, pos[0], ref.index(n))
    """
    indices = statement.indices
    fixed = any(moving_index(place) is None for place in stored.places)
    extents = dict.fromkeys(i.extent for i in indices if may_be_empty(i.extent))
    if not extents or not (fixed or read_regardless(stored, indices)):
        scope.writer.line(_store_text(scope, statement, stored))
        return
    with scope.block(f"if {' and '.join(map(scope.extent, extents))}:"):
        scope.writer.line(_store_text(scope, statement, stored))


def _store_text(scope: Scope, statement: Statement, stored: StoreAt) -> str:
    """Return the line that stores: in a slice, or element by element."""
    target = statement.target
    printer = ReferencePrinter(scope)
    value = printer.array(stored.value, statement.indices)
    array = scope.names[target.name] + fields(target.memory, statement.path)
    inner = [
        (step.place, step.length) for step in statement.path if isinstance(step, At)
    ]
    axes = [*zip(stored.places, target.extents, strict=True), *inner]
    runs = [(run_of(place, ()), extent) for place, extent in axes]
    parts = [run_text(scope, run, extent) for run, extent in runs if run is not None]
    component = str("xyzw".index(statement.component)) if statement.component else ""
    if len(parts) == len(axes):
        key = ", ".join([*parts, component] if component else parts)
        return f"{array}[{key}] = {value.text}"
    if component:
        array += f"[..., {component}]"
    frame = statement.indices
    places = (printer.array(subscript_value(place), frame).text for place, _ in axes)
    return call("ref.store", [array, value.text, *places]).text
