"""What the host must check before a kernel may read: where its subscripts lie.

A bare index may range over more than the axis that it subscripts, and an affine
subscript may leave it.  A clamped one can't, but there is nothing to clamp to in an
empty axis.  An empty domain reads nothing, and so checks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.ir.affine import subscript_form
from kerngen.ir.extremes import stays_inside
from kerngen.ir.nodes import (
    Affine,
    Expr,
    Extent,
    Index,
    IndexValue,
    Kernel,
    Load,
    Reduce,
    Subscript,
    Tensor,
)
from kerngen.ir.walk import children


@final
@dataclass(frozen=True, slots=True)
class Gather:
    """An axis that is gathered from, for every index whose extent is in `around`."""

    tensor: str
    axis: int
    extent: Extent
    around: tuple[Extent, ...]


@final
@dataclass(frozen=True, slots=True)
class RangeCheck:
    """A subscript that must stay inside an axis, of length `extent`.

    Its value is the offset, plus a coefficient times each index; `text` is the user's.
    """

    tensor: str
    axis: int
    extent: Extent
    offset: Expr
    terms: tuple[tuple[Extent, Expr], ...]
    around: tuple[Extent, ...]
    text: str = field(compare=False)


Check: TypeAlias = Gather | RangeCheck


def checks_of(kernel: Kernel) -> tuple[Check, ...]:
    """Return every check of a kernel once, in order.

    Statements say what they read, as the user wrote them.  Stages read no more where it
    counts: one that runs although its statement is empty computes what nobody reads.
    """
    checks = (
        check
        for statement in kernel.body
        for _, check in checked(statement.value, _extents(statement.indices))
    )
    return tuple(dict.fromkeys(checks))


def checked(
    expr: Expr, around: tuple[Extent, ...]
) -> Iterator[tuple[Subscript, Check]]:
    """Yield every subscript to check, with its check."""
    if isinstance(expr, Reduce):
        yield from checked(expr.body, (*around, *_extents(expr.indices)))
        return
    if isinstance(expr, Load):
        distinct = tuple(dict.fromkeys(around))
        for axis, subscript in enumerate(expr.subscripts):
            check = _check(expr.tensor, axis, subscript, distinct)
            if check is not None:
                yield subscript, check
    for child in children(expr):
        yield from checked(child, around)


def _extents(indices: tuple[Index, ...]) -> tuple[Extent, ...]:
    return tuple(index.extent for index in indices)


def may_be_empty(extent: Extent) -> bool:
    """Whether an axis has no elements in some call."""
    return isinstance(extent, str) or extent == 0


def _check(
    tensor: Tensor, axis: int, subscript: Subscript, around: tuple[Extent, ...]
) -> Check | None:
    """Return how to check a subscript; None where it can't leave its axis."""
    extent = tensor.extents[axis]
    if isinstance(subscript, IndexValue) and subscript.index.extent == extent:
        return None
    form = subscript_form(subscript)
    if form is None:
        needed = may_be_empty(extent) and extent not in around
        return Gather(tensor.name, axis, extent, around) if needed else None
    if stays_inside(form, extent):
        return None
    terms = tuple((index.extent, c) for index, c in form.terms.items())
    text = _text(subscript)
    return RangeCheck(tensor.name, axis, extent, form.offset, terms, around, text)


def _text(subscript: Subscript) -> str:
    match subscript:
        case IndexValue(index=index):
            return index.name
        case Affine(text=text):
            return text
        case _:
            raise AssertionError(subscript)
