"""The checks of subscripts that the host makes before a kernel runs.

    x[i]          i may range over more than the axis       `BoundedSubscript`
    x[2 * i]      may leave the axis                        `BoundedSubscript`
    x[ids[i]]     is clamped, so the axis must not be empty    `ClampedRead`

Where an index around a read ranges over nothing, nothing is read, and nothing is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import subscript_form
from kerngen.ir.analysis.extremes import stays_inside
from kerngen.ir.analysis.requirements import Known, known_of
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import children


@final
@dataclass(frozen=True, slots=True)
class ClampedRead:
    """A read at a clamped subscript: its axis, of length `extent`, must not be empty.

    `around` are the lengths over which the indices around the read range: if one of them is
    0, nothing is read.
    """

    tensor: str
    axis: int
    extent: ir.Extent
    around: tuple[ir.Extent, ...]


@final
@dataclass(frozen=True, slots=True)
class BoundedSubscript:
    """A subscript that must stay inside an axis, of length `extent`.

    Its value is `offset` plus a coefficient times each of its indices: `terms` has the length
    of the index's range, and the coefficient.  `around` is as in `ClampedRead`, `text` is the
    subscript's source.  If `is_guarded`, the read is under a condition, which the check does
    not evaluate.
    """

    tensor: str
    axis: int
    extent: ir.Extent
    offset: ir.Expr
    terms: tuple[tuple[ir.Extent, ir.Expr], ...]
    around: tuple[ir.Extent, ...]
    text: str = field(compare=False)
    is_guarded: bool = field(default=False, compare=False)


Check: TypeAlias = ClampedRead | BoundedSubscript


def checks_of(kernel: ir.Kernel) -> tuple[Check, ...]:
    """Return the subscript checks of a kernel, each once, in the order of its statements.

    Stages need no checks of their own: they make the same reads, and others only for a
    statement over an empty domain, whose result nothing reads.
    """
    known = known_of(kernel)
    checks = (check for statement in kernel.body for check in _of(statement, known))
    return tuple(dict.fromkeys(checks))


def _of(statement: ir.Statement, known: Known) -> Iterator[Check]:
    around = _extents(statement.indices)
    for _, check in checked(statement.value, around, known):
        yield check
    if isinstance(statement.value, StoreAt):
        target = statement.target
        for axis, place in enumerate(statement.value.places):
            extent = target.extents[axis]
            needed = _check(target.name, axis, extent, place, around, known)
            # A position that the device computes is not checked: such stores are left out.
            if isinstance(needed, BoundedSubscript):
                yield needed


def checked(
    expr: ir.Expr,
    around: tuple[ir.Extent, ...],
    known: Known,
    *,
    is_guarded: bool = False,
) -> Iterator[tuple[ir.Subscript, Check]]:
    """Yield every subscript of an expression that must be checked, with its check.

    `around` are the lengths over which the indices around the expression range;
    `is_guarded` is whether a condition is around it.
    """
    if isinstance(expr, ir.Reduce):
        inner = (*around, *_extents(expr.indices))
        if expr.condition is not None:
            yield from checked(expr.condition, inner, known, is_guarded=is_guarded)
            is_guarded = True
        yield from checked(expr.body, inner, known, is_guarded=is_guarded)
        return
    # The node's own subscripts, then its parts: behind a condition these are guarded.
    distinct = tuple(dict.fromkeys(around))
    for name, axis, extent, subscript in _subscripted(expr):
        check = _check(name, axis, extent, subscript, distinct, known)
        if isinstance(check, BoundedSubscript):
            yield subscript, replace(check, is_guarded=is_guarded)
        elif check is not None:
            yield subscript, check
    for place, child in enumerate(children(expr)):
        guards = place > 0 and _guards(expr)
        yield from checked(child, around, known, is_guarded=is_guarded or guards)


def _guards(expr: ir.Expr) -> bool:
    """Whether the first part of an expression is a condition for the others."""
    return isinstance(expr, ir.Select) or (
        isinstance(expr, ir.Binary) and expr.op in {"and", "or"}
    )


def _subscripted(expr: ir.Expr) -> Iterator[tuple[str, int, ir.Extent, ir.Subscript]]:
    """Yield the tensor's name, axis, extent and subscript, for each of a node's subscripts."""
    match expr:
        case ir.Load(tensor=tensor, subscripts=subscripts, path=path):
            for axis, subscript in enumerate(subscripts):
                yield tensor.name, axis, tensor.extents[axis], subscript
            yield from _in_path(tensor.name, path)
        case ir.UniformValue(name=name, path=path):
            yield from _in_path(name, path)
        case ir.Part(at=at):
            yield from _in_path("the vector or matrix", (at,))
        case _:
            return


def _in_path(
    name: str, path: ir.Path
) -> Iterator[tuple[str, int, ir.Extent, ir.Subscript]]:
    """Yield the subscripts of a path; an array in an array is its second axis."""
    axis = 0
    for step in path:
        match step:
            case ir.Field(field):
                name, axis = f"{name}.{field}", 0
            case ir.At(place=place, length=length):
                yield name, axis, length, place
                axis += 1
            case _:
                assert_never(step)


def _extents(indices: tuple[ir.Index, ...]) -> tuple[ir.Extent, ...]:
    return tuple(index.extent for index in indices)


def may_be_empty(extent: ir.Extent) -> bool:
    """Whether an axis has length 0 in some call."""
    return isinstance(extent, str) or extent == 0


def _check(
    tensor: str,
    axis: int,
    extent: ir.Extent,
    subscript: ir.Subscript,
    around: tuple[ir.Extent, ...],
    known: Known,
) -> Check | None:
    """Return how to check a subscript; None where it can't leave its axis."""
    if isinstance(subscript, ir.IndexValue) and subscript.index.extent == extent:
        return None
    # A clamped one: if an index around ranges over the same length, nothing is read where
    # that is 0.
    form = subscript_form(subscript)
    if form is None:
        needed = may_be_empty(extent) and extent not in around
        return ClampedRead(tensor, axis, extent, around) if needed else None
    if stays_inside(form, extent) or known.keeps_inside(form, extent):
        return None
    terms = tuple((index.extent, c) for index, c in form.terms.items())
    text = _text(subscript)
    return BoundedSubscript(tensor, axis, extent, form.offset, terms, around, text)


def _text(subscript: ir.Subscript) -> str:
    match subscript:
        case ir.IndexValue(index=index):
            return index.name
        case ir.Affine(text=text):
            return text
        case _:
            raise AssertionError(subscript)
