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
    IndexValue,
    Load,
    Reduce,
    Subscript,
    Tensor,
)
from kerngen.ir.stages import StagedKernel
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


def checks_of(staged: StagedKernel) -> tuple[Check, ...]:
    """Return every check of a kernel once, in order.

    Statements say what the user wrote; stages are what runs: one may run where its
    statement is empty.
    """
    statements = (
        check
        for statement in staged.kernel.body
        for check in _checks(
            statement.value, tuple(index.extent for index in statement.indices)
        )
        if isinstance(check, RangeCheck)
    )
    stages = (
        check
        for stage in staged.stages
        for step in stage.steps
        for check in _checks(step.value, tuple(index.extent for index in stage.domain))
    )
    return tuple(dict.fromkeys((*statements, *stages)))


def _checks(expr: Expr, around: tuple[Extent, ...]) -> Iterator[Check]:
    if isinstance(expr, Reduce):
        inner = (*around, *(index.extent for index in expr.indices))
        yield from _checks(expr.body, inner)
        return
    if isinstance(expr, Load):
        distinct = tuple(dict.fromkeys(around))
        for axis, subscript in enumerate(expr.subscripts):
            yield from _check(expr.tensor, axis, subscript, distinct)
    for child in children(expr):
        yield from _checks(child, around)


def _check(
    tensor: Tensor, axis: int, subscript: Subscript, around: tuple[Extent, ...]
) -> Iterator[Check]:
    extent = tensor.extents[axis]
    if isinstance(subscript, IndexValue) and subscript.index.extent == extent:
        return
    form = subscript_form(subscript)
    if form is None:
        yield Gather(tensor.name, axis, extent, around)
    elif not stays_inside(form, extent):
        terms = tuple((index.extent, c) for index, c in form.terms.items())
        text = _text(subscript)
        yield RangeCheck(tensor.name, axis, extent, form.offset, terms, around, text)


def _text(subscript: Subscript) -> str:
    match subscript:
        case IndexValue(index=index):
            return index.name
        case Affine(text=text):
            return text
        case _:
            raise AssertionError(subscript)
