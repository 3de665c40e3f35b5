"""Recurrences in stages: which of them a loop in registers can compute.

    let x[i, s < 9] = if s > 0 { x[i, s - 1] / 2.0 } else { a[i] };    y[i] = x[i, 8];

Registers are enough if the let reads itself at its own element of the other indices alone,
here i, and if later statements of the group read it at one step along the loop's index,
here 8.
"""

from __future__ import annotations

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form, as_literal
from kerngen.ir.analysis.linear import Lengths, length_of
from kerngen.ir.analysis.reads import holds_reduce, loads
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value

_ONE = ir.Constant(1, Scalar.I32)


def own_loads(statement: ir.Statement) -> list[ir.Load]:
    """Return the reads that a statement makes of its own target."""
    return [x for x in loads(statement.value) if x.tensor == statement.target]


def fits_loop(statement: ir.Statement) -> bool:
    """Whether a let is a recurrence that reads itself only at its own other indices.

    Along the recurrence's axis it may read any step before: `x[i, s - 1]`, but not
    `x[i - 1, s - 1]`.
    """
    along = statement.along
    return along is not None and all(
        _is_own_but(load, along.axis, statement.indices)
        for load in own_loads(statement)
    )


def distance(load: ir.Load, statement: ir.Statement) -> int:
    """Return how many steps back a recurrence reads itself by `load`: 2 for `h[t - 2]`."""
    along = statement.along
    assert along is not None, "a let that reads itself"
    form = affine_form(subscript_value(load.subscripts[along.axis]))
    offset = form and as_literal(form.offset)
    assert offset, "checked where it was made"
    return abs(offset)


def place_read(
    load: ir.Load, let: ir.Statement, indices: tuple[ir.Index, ...]
) -> ir.Expr | None:
    """Return the step at which a later statement reads the recurrence `let` by `load`.

    None if that is no single step, known before the loop.  `indices` are those of the reading
    statement: the let's without the recurrence's.  The step may depend on them, as in
    `x[i, last[i]]`.
    """
    along = let.along
    if along is None or len(indices) != len(let.indices) - 1:
        return None
    domain = (*indices[: along.axis], let.indices[along.axis], *indices[along.axis :])
    place = load.subscripts[along.axis]
    if isinstance(place, ir.IndexValue) or not _is_own_but(load, along.axis, domain):
        return None
    value = subscript_value(place)
    # The step is computed before the loop: it must not depend on what the kernel writes.
    computed = any(inner.tensor.role is not ir.Role.INPUT for inner in loads(value))
    if computed or holds_reduce(value):
        return None
    return (
        value if isinstance(place, ir.Affine) else _clamped(value, _extent(load, let))
    )


def is_last(place: ir.Expr, let: ir.Statement, lengths: Lengths) -> bool:
    """Whether `place` is proven to be the last step of the recurrence `let`."""
    assert let.along is not None, "a let that reads itself"
    extent = let.indices[let.along.axis].extent
    return _is_end(place, extent, lengths, descending=let.along.descending)


def is_end(
    place: ir.Subscript, extent: ir.Extent, lengths: Lengths, *, descending: bool
) -> bool:
    """Whether a subscript is proven to be the last step of a loop along its axis.

    That is 0 for a `descending` loop.  `extent` is the length of the axis.
    """
    if isinstance(place, ir.IndexValue):
        return False
    return _is_end(subscript_value(place), extent, lengths, descending=descending)


def _is_end(
    place: ir.Expr, extent: ir.Extent, lengths: Lengths, *, descending: bool
) -> bool:
    end: ir.Expr = ir.Constant(0, Scalar.I32)
    if not descending:
        end = ir.Binary("-", length_of(extent), _ONE, Scalar.I32)
    # Equal, as neither difference is ever negative.
    sides = ir.Binary("-", place, end, Scalar.I32), ir.Binary(
        "-", end, place, Scalar.I32
    )
    return all(map(lengths.never_negative, sides))


def _is_own_but(load: ir.Load, axis: int, indices: tuple[ir.Index, ...]) -> bool:
    pairs = enumerate(zip(load.subscripts, indices, strict=True))
    return all(n == axis or s == ir.IndexValue(index) for n, (s, index) in pairs)


def _extent(load: ir.Load, let: ir.Statement) -> ir.Extent:
    assert let.along is not None, "a let that reads itself"
    return load.tensor.extents[let.along.axis]


def _clamped(value: ir.Expr, extent: ir.Extent) -> ir.Expr:
    last = ir.Binary("-", length_of(extent), _ONE, Scalar.I32)
    if value.type is Scalar.U32:
        known = ir.BuiltinCall("min", (value, ir.Cast(last, Scalar.U32)), Scalar.U32)
        return ir.Cast(known, Scalar.I32)
    zero = ir.Constant(0, Scalar.I32)
    return ir.BuiltinCall("clamp", (value, zero, last), Scalar.I32)
