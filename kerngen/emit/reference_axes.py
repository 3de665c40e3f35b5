"""Axes of arrays in references: how an array is laid along the indices of a frame.

A frame is a tuple of indices, one per axis of the arrays being computed.  A value
lies along some of them: it is an array whose last axes match the frame's last axes, as
NumPy's broadcasting has it, with length 1 where the value does not depend on the index.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeAlias

from kerngen.emit.python_code import Code
from kerngen.ir.nodes import Expr, Index, IndexValue, Load
from kerngen.ir.walk import walk

Frame: TypeAlias = tuple[Index, ...]


def bare_indices(expr: Expr) -> Frame | None:
    """Return the subscripts of a read whose subscripts are all bare; None of others."""
    if not isinstance(expr, Load):
        return None
    indices = tuple(s.index for s in expr.subscripts if isinstance(s, IndexValue))
    return indices if len(indices) == len(expr.subscripts) else None


def find_carrier(
    expr: Expr, wanted: frozenset[Index], loops: Container[Index]
) -> Frame | None:
    """Return the axes, in their order, of a tensor read along just the wanted indices.

    Computing the expression over them takes memory like that tensor's.
    """
    for node in walk(expr):
        axes = tuple(i for i in bare_indices(node) or () if i not in loops)
        if len(axes) == len(wanted) and wanted == frozenset(axes):
            return axes
    return None


def align(array: Code, axes: Sequence[Index], frame: Frame) -> Code:
    """Lay an array whose axes are the indices `axes` along the frame.

    Before:  x, axes (j, i), frame (i, j, k)
    After:   x.T[:, :, None]
    """
    ordered = sorted(axes, key=frame.index)
    turned = _permute(array, [axes.index(index) for index in ordered])
    return subscript(turned, spread(ordered, frame))


def spread(ordered: Sequence[Index], frame: Frame) -> list[str]:
    """Return the subscripts that put axes, in the frame's order, in their places."""
    first = frame.index(ordered[0]) if ordered else len(frame)
    return [":" if index in ordered else "None" for index in frame[first:]]


def subscript(array: Code, parts: Sequence[str]) -> Code:
    """Return `array[parts]`, without what changes nothing."""
    needed = list(parts)
    while needed and needed[-1] == ":":
        needed.pop()
    if not needed:
        return array
    if all(part in (":", "None") for part in needed):
        needed = list(parts)
    return Code(f"{array.atom}[{', '.join(needed)}]", fresh=array.fresh)


def _permute(array: Code, order: list[int]) -> Code:
    if order == sorted(order):
        return array
    if len(order) == 2:
        return Code(f"{array.atom}.T", fresh=array.fresh)
    places = ", ".join(map(str, order))
    return Code(f"{array.atom}.transpose({places})", fresh=array.fresh)
