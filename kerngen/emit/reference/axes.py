"""Alignment of arrays in references: which axis of an array belongs to which index.

A frame is a tuple of indices, one per axis of the arrays being computed.  A value lies along
some of them: it is an array whose last axes match the frame's last axes, as NumPy's
broadcasting has it, with length 1 where the value does not depend on the index:

    frame (i, j, k):    x[i, j]   ->  x[:, :, None]    shape (m, n, 1)
                        v[k]      ->  v                shape (k,)
                        w[j]      ->  w[:, None]       shape (n, 1)
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from kerngen.emit.python_code import Code
from kerngen.emit.reference.runs import Frame, read_axes
from kerngen.emit.reference.types import components
from kerngen.ir.nodes import Expr, Index
from kerngen.ir.types import Scalar, ValueType
from kerngen.ir.walk import walk


def find_carrier(
    expr: Expr, wanted: frozenset[Index], loops: Container[Index]
) -> Frame | None:
    """Return the indices along the axes of a tensor that `expr` reads at all `wanted` indices.

    To compute the expression over these axes takes as much memory as that tensor.  None if no
    tensor is read at just these indices.
    """
    # The first tensor that is read with exactly these indices, each along one axis.
    for node in walk(expr):
        axes = read_axes(node, loops) or ()
        if len(axes) == len(wanted) and wanted == frozenset(axes):
            return axes
    return None


def align(
    array: Code, axes: Sequence[Index], frame: Frame, type_: ValueType = Scalar.I32
) -> Code:
    """Return an array, whose axes lie along the indices `axes`, as it broadcasts in a frame.

    Axes are reordered, and axes of length 1 added.  A vector's or matrix's own axes stay last.

    Before:  x, axes (j, i), frame (i, j, k)
    After:   x.T[:, :, None]
    """
    ordered = sorted(axes, key=frame.index)
    turned = _permute(
        array, [axes.index(index) for index in ordered], len(components(type_))
    )
    return subscript(turned, spread(ordered, frame))


def spread(ordered: Sequence[Index], frame: Frame) -> list[str]:
    """Return the subscripts that put an array's axes in their places in a frame.

    `ordered` are the indices of the axes, in the frame's order.  Each index of the frame from
    the first of them on has a `:`, or `None` where the array has no axis.
    """
    first = frame.index(ordered[0]) if ordered else len(frame)
    return [":" if index in ordered else "None" for index in frame[first:]]


def subscript(array: Code, parts: Sequence[str]) -> Code:
    """Return `array[parts]`, without `:` at the end; the array itself if all parts are `:`.

    If parts are only `:` and `None`, all are written.
    """
    needed = list(parts)
    while needed and needed[-1] == ":":
        needed.pop()
    if not needed:
        return array
    # Where axes are only added, all are written: `inner` adds those of components to them.
    if all(part in (":", "None") for part in needed):
        needed = list(parts)
    return Code(f"{array.atom}[{', '.join(needed)}]", fresh=array.fresh)


def _permute(array: Code, order: list[int], inner: int) -> Code:
    """Return an array with its axes in an order; the last `inner` ones stay."""
    if order == sorted(order):
        return array
    if len(order) == 2 and not inner:
        return Code(f"{array.atom}.T", fresh=array.fresh)
    rank = len(order)
    places = ", ".join(map(str, (*order, *range(rank, rank + inner))))
    return Code(f"{array.atom}.transpose({places})", fresh=array.fresh)
