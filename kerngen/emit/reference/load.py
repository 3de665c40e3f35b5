"""Print reads of tensors: views for bare subscripts, gathers for others.

Gathers clamp their places to the axis.  Affine subscripts are checked before, at the call, so
that clamping changes nothing there.

    x[i, j]              ->    x                      a view
    x[i, 2 * j + 1]      ->    x[:, 1 : 1 + 2 * n : 2]
    table[ids[t], d]     ->    ref.take(table, ids, 0)
    x[i, ids[i]]         ->    ref.at(x, i, ids)
"""

from __future__ import annotations

from kerngen.emit.members import fields
from kerngen.emit.python_code import Code, call
from kerngen.emit.reference.axes import align, subscript
from kerngen.emit.reference.runs import (
    AxisSlice,
    Frame,
    axes_read,
    read_axes,
    run_of,
    run_text,
)
from kerngen.emit.reference.scope import ExpressionPrinter, FunctionBody
from kerngen.emit.reference.types import is_float
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Extent, Index, Load, Role, Subscript
from kerngen.ir.walk import subscript_value


def print_load(printer: ExpressionPrinter, load: Load, frame: Frame) -> Code:
    """Return the code of the values of a read, aligned with the frame."""
    # 1. All subscripts are slices, of different indices; 2. one is a gather, apart from the
    # slices; 3. others, such as several gathers, or x[i, i].
    loops = printer.scope.loops
    axes = read_axes(load, loops)
    if axes is not None and len(set(axes)) == len(axes):
        return _view(printer.scope, load, axes, frame)
    gathers = [s for s, _ in axes_read(load) if run_of(s, loops) is None]
    if len(gathers) == 1 and _is_apart(printer.scope, gathers[0], load, frame):
        return _take(printer, load, gathers[0], frame)
    return _gather(printer, load, frame)


def print_index(scope: FunctionBody, index: Index, frame: Frame) -> Code:
    """Return the code of all values of an index; in a loop over it, of the current value."""
    if index in scope.loops:
        return Code(scope.loops[index], weak=True)
    return align(Code(scope.range_of(index)), [index], frame)


def sliced(scope: FunctionBody, load: Load) -> Code:
    """Return the code of the tensor that is read: `x[:, 1:n]`, or `x` if all axes are whole.

    An axis has a slice where the read takes a part of it that is one.
    """
    parts = [
        run_text(scope, run, extent) if run else ":"
        for run, extent in _runs(scope, load)
    ]
    return subscript(_whole(scope, load), parts)


def _whole(scope: FunctionBody, load: Load) -> Code:
    """Return a tensor, or a member of its elements, as an array of what is read.

    Its axes are those of the tensor, then those of fixed arrays on the load's path.
    """
    tensor = load.tensor
    array = Code(scope.names[tensor.name] + fields(tensor.memory, load.path))
    if isinstance(tensor.element, Struct):
        return scope.typed(array, load.type) if is_float(load.type) else array
    is_narrow = tensor.is_half or tensor.narrow
    is_read_as_it_is = tensor.role is Role.INPUT or not is_narrow
    return array if is_read_as_it_is else scope.typed(array, load.type)


def _runs(scope: FunctionBody, load: Load) -> list[tuple[AxisSlice | None, Extent]]:
    return [(run_of(place, scope.loops), extent) for place, extent in axes_read(load)]


def _view(scope: FunctionBody, load: Load, axes: Frame, frame: Frame) -> Code:
    """
    Slice by the loops and lay out the rest.

    Before:  x[i, p, k], loop p, frame (i, j, k)
    After:   x[:, p, None, :]
    """
    if list(axes) != sorted(axes, key=frame.index):
        return align(sliced(scope, load), axes, frame, load.type)
    # The axes are in the frame's order: one subscript slices, and adds the axes between them.
    parts: list[str] = []
    rest = list(frame[frame.index(axes[0]) :]) if axes else []
    for run, extent in _runs(scope, load):
        assert run is not None, "every axis is read in a run"
        if run.index is not None:
            while rest.pop(0) != run.index:
                parts.append("None")
        parts.append(run_text(scope, run, extent))
    parts += ["None"] * len(rest)
    return subscript(_whole(scope, load), parts)


def _is_apart(scope: FunctionBody, gather: Subscript, load: Load, frame: Frame) -> bool:
    """Return whether the gather's axes and those of the runs are distinct."""
    indices = (run.index for run, _ in _runs(scope, load) if run and run.index)
    axes = [index for index in indices if index in frame]
    inner = free_indices(subscript_value(gather))
    return len(set(axes)) == len(axes) and inner.isdisjoint(axes)


def _take(
    printer: ExpressionPrinter, load: Load, gather: Subscript, frame: Frame
) -> Code:
    """
    Subscript one axis by an array; its axes replace that axis.

    Before:  table[ids[t], d], frame (t, d)
    After:   ref.take(table, ids, 0)
    """
    scope = printer.scope
    own = free_indices(subscript_value(gather))
    inner = tuple(index for index in frame if index in own)
    # The axes that are left once others are subscripted by numbers; None is the gather's.
    kept = [run for run, _ in _runs(scope, load) if run is None or run.index]
    axis = kept.index(None)
    before, after = (
        tuple(run.index for run in part if run and run.index)
        for part in (kept[:axis], kept[axis + 1 :])
    )
    place = printer.print(subscript_value(gather), inner)
    arguments = [sliced(scope, load).text, place.text, str(axis)]
    taken = call("ref.take", arguments, fresh=bool(inner))
    return align(taken, (*before, *inner, *after), frame, load.type)


def _gather(printer: ExpressionPrinter, load: Load, frame: Frame) -> Code:
    """
    Subscript every axis by an array laid along the frame.

    Before:  logits[i, labels[i]], frame (i)
    After:   ref.at(logits, i, labels)
    """
    values = [subscript_value(place) for place, _ in axes_read(load)]
    places = [printer.print(value, frame).text for value in values]
    array = _whole(printer.scope, load).text
    fresh = any(index in frame for index in free_indices(load))
    return call("ref.at", [array, *places], fresh=fresh)
