"""Print stores at a position: slices where the host knows it, else element by element."""

from __future__ import annotations

from kerngen.emit.members import fields
from kerngen.emit.python_code import call
from kerngen.emit.reference_expr import ReferencePrinter
from kerngen.emit.reference_runs import run_of, run_text
from kerngen.emit.reference_scope import Scope
from kerngen.ir.nodes import At, Statement, StoreAt
from kerngen.ir.walk import subscript_value


def store_text(scope: Scope, statement: Statement, stored: StoreAt) -> str:
    """
    Return the line that stores a value at a position.

    Before:  cache[at + i, g] = k[i, g];     cache[pos[0] + i, g] = k[i, g];
    After:   cache[at : at + s, :] = k       ref.store(cache, k, ref.index(s) + pos[0], ...)
    """
    target = statement.target
    printer = ReferencePrinter(scope)
    value = printer.array(stored.value, statement.indices)
    array = scope.names[target.name] + fields(target.memory, statement.path)
    inner = [(step.place, step.length) for step in statement.path if isinstance(step, At)]
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
