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
    """Return the axes, in their order, of a tensor that is read at just these indices.

    To compute an expression over these axes takes as much memory as that tensor.
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
    """Return an array with its axes reordered and extended to match a frame.

    A vector's or matrix's own axes stay last.

    Before:  x, axes (j, i), frame (i, j, k)
    After:   x.T[:, :, None]
    """
    ordered = sorted(axes, key=frame.index)
    turned = _permute(
        array, [axes.index(index) for index in ordered], len(components(type_))
    )
    return subscript(turned, spread(ordered, frame))


def spread(ordered: Sequence[Index], frame: Frame) -> list[str]:
    """Return the subscripts that put axes, in the frame's order, in their places."""
    first = frame.index(ordered[0]) if ordered else len(frame)
    return [":" if index in ordered else "None" for index in frame[first:]]


def subscript(array: Code, parts: Sequence[str]) -> Code:
    """Return `array[parts]`, without a `:` at the end, or the array if nothing is left."""
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
