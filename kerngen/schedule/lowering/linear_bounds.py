"""Conditions that bound one index by another: `p <= i + (t - s)` bounds p by its row i.

A bound is linear in the row, `slope * row + offset`.  So over a tile of neighbouring rows it
is loosest at the first or the last row, and tightest at the other one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.subscripts import lower_fixed
from kerngen.shader import tree as t

_OPPOSITE: Final[dict[ir.BinaryOp, ir.BinaryOp]] = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}

# WGSL has no literal -2147483648i: it would be the negation of a literal that overflows.
_LEAST: Final = t.Literal("i32(-2147483648)")
_MOST: Final = t.Literal("2147483647i")


@final
@dataclass(frozen=True, slots=True)
class LinearBound:
    """A bound of a key by its row: at most (`is_upper`) or at least `slope * row + offset`."""

    is_upper: bool
    slope: int
    offset: ir.Expr

    @property
    def is_read(self) -> bool:
        """Whether `offset` reads a tensor or a scalar parameter: then the sum may overflow."""
        read = (isinstance(x, ir.Load | ir.UniformValue) for x in walk(self.offset))
        return any(read)

    def at(self, lowerer: Lowerer, row: t.Expr) -> t.Expr:
        """Return the bound at a row, as an i32."""
        offset = t.call("i32", lower_fixed(lowerer, self.offset))
        match self.slope:
            case 0:
                return offset
            case 1:
                return t.Binary("+", row, offset)
            case slope:
                scaled = t.Binary("*", row, t.Literal(f"{slope}i"))
                return t.Binary("+", scaled, offset)

    # Integers wrap: `i + at` may grow from row to row, and then be negative.  So the two
    # functions below compare what the bound is at both ends of the rows.

    def loosest(self, lowerer: Lowerer, first: t.Expr, last: t.Expr) -> t.Expr:
        """Return a bound that is at least as loose as that of each row from `first` to `last`.

        For `p <= i + at`, it is `max(first + at, last + at)`.
        """
        if self.slope == 0 or not self.is_read:
            return self._looser(lowerer, first, last)
        ends = (self.at(lowerer, row) for row in (first, last))
        return t.call("max" if self.is_upper else "min", *ends)

    def extremes(
        self, lowerer: Lowerer, first: t.Expr, last: t.Expr
    ) -> tuple[t.Expr, t.Expr]:
        """Return the loosest and the tightest key bound over the rows `first` to `last`.

        The bound is linear in the row, so both are at the ends.  If its integer arithmetic
        overflows in between, the first result excludes no key, and the second one every key.
        """
        looser = self._looser(lowerer, first, last)
        tighter = self._looser(lowerer, last, first)
        if self.slope == 0:
            return looser, tighter
        # If the bound at the looser end is the tighter one, it has wrapped between the ends.
        names = ("some_most", "every_most") if self.is_upper else ("some", "every")
        some, every = (t.Ident(lowerer.shader.fresh(name)) for name in names)
        lowerer.block.extend([t.Let(some.name, looser), t.Let(every.name, tighter)])
        is_exact = t.Binary(">=" if self.is_upper else "<=", some, every)
        nothing, everything = (_MOST, _LEAST) if self.is_upper else (_LEAST, _MOST)
        return (
            t.call("select", nothing, some, is_exact),
            t.call("select", everything, every, is_exact),
        )

    def _looser(self, lowerer: Lowerer, first: t.Expr, last: t.Expr) -> t.Expr:
        """Return the bound at `first` or `last`, whichever is looser if none wraps."""
        falls = (self.slope < 0) == self.is_upper
        return self.at(lowerer, first if falls else last)


def later_rows_have_more(bounds: Iterable[LinearBound]) -> bool:
    """Whether later rows have more keys, as with `p <= i`, or `p >= n - i`.

    Bounds that are the same for all rows, as `p < at`, don't count.  Of a window, as `p <= i`
    and `p > i - w`, the first rows have fewer keys, as it begins before the first key.
    """
    moving = [bound for bound in bounds if bound.slope]
    uppers = [bound.slope > 0 for bound in moving if bound.is_upper]
    lowers = [bound.slope < 0 for bound in moving if not bound.is_upper]
    return any(uppers or lowers)


def bound_of(
    condition: ir.Expr, row: ir.Index, key: ir.Index, *, holds: bool
) -> LinearBound | None:
    """Return the bound on `key` that a comparison sets where it holds, or fails (not `holds`).

    `p <= i` bounds p from above by i; where it does not hold, from below by i + 1.  None if the
    condition sets no linear bound.
    """
    if not isinstance(condition, ir.Binary) or condition.op not in _OPPOSITE:
        return None
    if condition.left.type is not Scalar.I32:
        return None
    # Brought to the form less <= more: `a < b` is `a + 1 <= b`.
    op = condition.op if holds else _OPPOSITE[condition.op]
    sides = condition.left, condition.right
    less, more = sides if op in ("<", "<=") else (sides[1], sides[0])
    if op in ("<", ">"):
        less = ir.Binary("+", less, ir.Constant(1, Scalar.I32), Scalar.I32)
    upper = _solved(more, less, row, key)
    lower = _solved(less, more, row, key)
    return upper or (lower and replace(lower, is_upper=False))


def _solved(
    left: ir.Expr, right: ir.Expr, row: ir.Index, key: ir.Index
) -> LinearBound | None:
    """Return `left - right + key`, if that is free of the key: it is an upper bound of it.

    Where the left side is the smaller one, it is a lower bound.
    """
    numbers: list[ir.Expr] = []
    rest = _without_numbers(ir.Binary("-", left, right, Scalar.I32), numbers)
    form = affine_form(rest)
    if form is None or not {row, key} >= set(form.terms):
        return None
    # The key must have the coefficient -1: `left - right = slope * row + offset - key`.
    slope = form.coefficient(row)
    if slope is None or form.coefficient(key) != -1:
        return None
    offset = form.offset
    for number in numbers:
        offset = ir.Binary("+", offset, number, Scalar.I32)
    return LinearBound(is_upper=True, slope=slope, offset=offset)


def _without_numbers(
    expr: ir.Expr, taken: list[ir.Expr], *, is_less: bool = False
) -> ir.Expr:
    """Move the numbers that only the device has from a sum to `taken`; return the rest.

    Such a number is an input of rank 0, negated in `taken` if it is subtracted.  Inputs are
    read-only buffers: WGSL's analysis takes a value that is read of one at the same address
    for uniform, and so allows barriers in a loop that ends there.
    """
    match expr:
        case ir.Load(tensor=ir.Tensor(role=ir.Role.INPUT), subscripts=()):
            taken.append(ir.Unary("-", expr, Scalar.I32) if is_less else expr)
            return ir.Constant(0, Scalar.I32)
        case ir.Binary("+" | "-" as op, left, right):
            sides = (
                _without_numbers(left, taken, is_less=is_less),
                _without_numbers(right, taken, is_less=is_less != (op == "-")),
            )
            return ir.Binary(op, *sides, expr.type)
        case _:
            return expr
