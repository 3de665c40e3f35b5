"""Print reads of tensors: views where subscripts are bare, gathers where they aren't."""

from __future__ import annotations

from kerngen.emit.python_code import Code
from kerngen.emit.reference_axes import (
    Frame,
    align,
    bare_indices,
    subscript,
)
from kerngen.emit.reference_scope import Printer, Scope
from kerngen.ir.nodes import Expr, Index, IndexValue, Load
from kerngen.ir.reads import free_indices


def print_load(printer: Printer, load: Load, frame: Frame) -> Code:
    """Return the elements that the load reads, laid along the frame."""
    indices = bare_indices(load)
    if indices is not None:
        axes = tuple(index for index in indices if index not in printer.scope.loops)
        if len(set(axes)) == len(axes):
            return _view(printer.scope, load, axes, frame)
    gathers = [s for s in load.subscripts if not isinstance(s, IndexValue)]
    if len(gathers) == 1 and _is_apart(gathers[0], load, frame):
        return _take(printer, load, gathers[0], frame)
    return _gather(printer, load, frame)


def print_index(scope: Scope, index: Index, frame: Frame) -> Code:
    """Return the values of an index; within its own loop, its value."""
    if index in scope.loops:
        return Code(scope.loops[index], weak=True)
    return align(Code(scope.range_of(index)), [index], frame)


def sliced(scope: Scope, load: Load) -> Code:
    """Return the tensor at the current values of the loops that subscript it."""
    parts = [
        _part(scope, load, axis) if isinstance(s, IndexValue) else ":"
        for axis, s in enumerate(load.subscripts)
    ]
    return subscript(Code(scope.names[load.tensor.name]), parts)


def _part(scope: Scope, load: Load, axis: int) -> str:
    """Return the part of an axis that a bare index ranges over, or its loop's place.

    An axis may be longer than the index that subscripts it.
    """
    part, extent = load.subscripts[axis], load.tensor.extents[axis]
    assert isinstance(part, IndexValue), "gathers take parts of their own"
    if part.index in scope.loops:
        return scope.loops[part.index]
    same = part.index.extent == extent
    return ":" if same else f":{scope.extent(part.index.extent)}"


def _view(scope: Scope, load: Load, axes: Frame, frame: Frame) -> Code:
    """
    Slice by the loops and lay out the rest.

    Before:  x[i, p, k], loop p, frame (i, j, k)
    After:   x[:, p, None, :]
    """
    if list(axes) != sorted(axes, key=frame.index):
        return align(sliced(scope, load), axes, frame)
    parts: list[str] = []
    rest = list(frame[frame.index(axes[0]) :]) if axes else []
    for axis, index in enumerate(bare_indices(load) or ()):
        if index not in scope.loops:
            while rest.pop(0) != index:
                parts.append("None")
        parts.append(_part(scope, load, axis))
    parts += ["None"] * len(rest)
    return subscript(Code(scope.names[load.tensor.name]), parts)


def _is_apart(gather: Expr, load: Load, frame: Frame) -> bool:
    """Return whether the gather's axes and those of the bare subscripts are distinct."""
    bare = [s.index for s in load.subscripts if isinstance(s, IndexValue)]
    axes = [index for index in bare if index in frame]
    return len(set(axes)) == len(axes) and free_indices(gather).isdisjoint(axes)


def _take(printer: Printer, load: Load, gather: Expr, frame: Frame) -> Code:
    """
    Subscript one axis by an array; its axes replace that axis.

    Before:  table[ids[t], d], frame (t, d)
    After:   table[ref.clamp(ids, v)]
    """
    scope = printer.scope
    inner = tuple(index for index in frame if index in free_indices(gather))
    axes: list[Index] = []
    parts: list[str] = []
    for axis, part in enumerate(load.subscripts):
        if not isinstance(part, IndexValue):
            parts.append(_clamped(printer, load, axis, inner))
            axes += inner
        elif part.index not in scope.loops:
            parts.append(":")
            axes.append(part.index)
    taken = subscript(sliced(scope, load), parts)
    return align(Code(taken.text, fresh=bool(inner)), axes, frame)


def _gather(printer: Printer, load: Load, frame: Frame) -> Code:
    """
    Subscript every axis by an array laid along the frame.

    Before:  logits[i, labels[i]], frame (i)
    After:   logits[i, ref.clamp(labels, n)]
    """
    parts = [
        (
            print_index(printer.scope, part.index, frame).text
            if isinstance(part, IndexValue)
            else _clamped(printer, load, axis, frame)
        )
        for axis, part in enumerate(load.subscripts)
    ]
    name = printer.scope.names[load.tensor.name]
    fresh = any(index in frame for index in free_indices(load))
    return Code(f"{name}[{', '.join(parts)}]", fresh=fresh)


def _clamped(printer: Printer, load: Load, axis: int, frame: Frame) -> str:
    part = printer.print(load.subscripts[axis], frame).text
    length = printer.scope.extent(load.tensor.extents[axis])
    return f"ref.clamp({part}, {length})"
