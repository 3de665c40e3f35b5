"""Which keys a tile of queries attends to: tiles that a mask leaves empty are skipped.

`j <= i + (t - s)`, as of a causal mask, bounds the keys j from above: by its last row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.builtins.evaluate import NotFiniteError, constant_value
from kerngen.ir.nodes import (
    Binary,
    BinaryOp,
    Constant,
    Expr,
    Index,
    Select,
)
from kerngen.ir.types import Scalar
from kerngen.schedule.conjunctions import all_parts
from kerngen.schedule.lowering.affine import lower_fixed
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.shader import tree as t

NEGLIGIBLE: Final = -1e38
"""A score below this has no weight beside any other.

f32 has steps of 1e31 there: the exponential of a difference is 1 or 0.
"""

_OPPOSITE: Final[dict[BinaryOp, BinaryOp]] = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


@final
@dataclass(frozen=True, slots=True)
class _Bound:
    """`slope * row + offset`: a key is at most that, or at least."""

    is_upper: bool
    slope: int
    offset: Expr


@final
@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The bounds that a mask sets to the keys of a row.

    Rows without keys, where a mask gives a number instead of none, attend to all keys
    alike.  So where this `needs_keys`, a tile with such a row skips nothing.
    """

    bounds: tuple[_Bound, ...]
    needs_keys: bool
    row: Index
    key: Index

    @classmethod
    def of(cls, score: Expr, row: Index, key: Index) -> KeyBounds:
        """Return the bounds of a score; none, if it has no mask that is known."""
        none = cls((), needs_keys=False, row=row, key=key)
        masked = _masked(score)
        if masked is None:
            return none
        condition, holds, is_finite = masked
        parts = [_bound(*part, row, key) for part in all_parts(condition, holds=holds)]
        found = tuple(bound for bound in parts if bound is not None)
        if is_finite and len(found) < len(parts):
            return none
        return cls(found, needs_keys=is_finite, row=row, key=key)

    def write(
        self,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        rows: tuple[t.Expr, t.Expr],
        step: int,
    ) -> tuple[t.Expr, t.Expr]:
        """Name the first key of a tile, a multiple of `step`, and the one past its last.

        `rows` are the first row and the last one.
        """
        extent = shader.extent(self.key.extent)
        if not self.bounds:
            return t.ZERO, extent
        keys, first, last = (
            t.Ident(shader.fresh(name))
            for name in ("all_keys", "first_row", "last_row")
        )
        body += [
            t.Let(keys.name, t.call("i32", extent)),
            t.Let(first.name, t.call("i32", rows[0])),
            t.Let(last.name, t.call("i32", rows[1])),
        ]
        low: t.Expr = t.Literal("0i")
        high: t.Expr = keys
        lowerer = Lowerer(shader, {}, body)
        for bound in self.bounds:
            least_first = (bound.slope < 0) == bound.is_upper
            at = self._at(lowerer, bound, first if least_first else last)
            if bound.is_upper:
                high = t.call("min", high, at + t.Literal("1i"))
            else:
                low = t.call("max", low, at)
        high = t.call("max", high, t.Literal("0i"))
        if self.needs_keys:
            some = t.Ident(shader.fresh("have_keys"))
            checks = [*self._checks(lowerer, (first, last), keys)]
            body.append(t.Let(some.name, t.all_of(*checks)))
            low = t.call("select", t.Literal("0i"), low, some)
            high = t.call("select", keys, high, some)
        begin, end = (t.Ident(shader.fresh(n)) for n in ("begin", "end"))
        has_low = any(not bound.is_upper for bound in self.bounds)
        start = t.call("u32", low) // step * step if has_low else t.ZERO
        if has_low:
            body.append(t.Let(begin.name, start))
        body.append(t.Let(end.name, t.call("u32", high)))
        return begin if has_low else t.ZERO, end

    def _checks(
        self, lowerer: Lowerer, ends: tuple[t.Expr, t.Expr], keys: t.Expr
    ) -> Iterator[t.Expr]:
        """Yield what holds where every row has a key: bounds are linear, so at the ends."""
        for row in ends:
            lows = [t.Literal("0i"), *self._sides(lowerer, row, is_upper=False)]
            highs = [
                t.Binary("-", keys, t.Literal("1i")),
                *self._sides(lowerer, row, is_upper=True),
            ]
            yield from (t.Binary("<=", low, high) for low in lows for high in highs)

    def _sides(self, lowerer: Lowerer, row: t.Expr, *, is_upper: bool) -> list[t.Expr]:
        return [
            self._at(lowerer, bound, row)
            for bound in self.bounds
            if bound.is_upper == is_upper
        ]

    def _at(self, lowerer: Lowerer, bound: _Bound, row: t.Expr) -> t.Expr:
        """Return the bound of a row, in i32."""
        offset = t.call("i32", lower_fixed(lowerer, bound.offset))
        match bound.slope:
            case 0:
                return offset
            case 1:
                return t.Binary("+", row, offset)
            case slope:
                scaled = t.Binary("*", row, t.Literal(f"{slope}i"))
                return t.Binary("+", scaled, offset)


def _masked(score: Expr) -> tuple[Expr, bool, bool] | None:
    """Return the condition of a score, whether it must hold, and if else it is finite."""
    if not isinstance(score, Select):
        return None
    for other, holds in ((score.otherwise, True), (score.then, False)):
        try:
            value = constant_value(other)
        except NotFiniteError:
            continue
        if value is not None and value < NEGLIGIBLE:
            return score.condition, holds, value > -float("inf")
    return None


def _bound(condition: Expr, holds: bool, row: Index, key: Index) -> _Bound | None:
    """Return the bound that a comparison sets to the keys."""
    if not isinstance(condition, Binary) or condition.op not in _OPPOSITE:
        return None
    if condition.left.type is not Scalar.I32:
        return None
    op = condition.op if holds else _OPPOSITE[condition.op]
    sides = condition.left, condition.right
    less, more = sides if op in ("<", "<=") else (sides[1], sides[0])
    if op in ("<", ">"):
        less = Binary("+", less, Constant(1, Scalar.I32), Scalar.I32)
    upper = _solved(more, less, row, key)
    lower = _solved(less, more, row, key)
    return upper or (lower and replace(lower, is_upper=False))


def _solved(left: Expr, right: Expr, row: Index, key: Index) -> _Bound | None:
    """Return `left - right + key`, if that is free of the key: it is an upper bound of it.

    Where the left side is the smaller one, it is a lower bound.
    """
    form = affine_form(Binary("-", left, right, Scalar.I32))
    if form is None or not {row, key} >= set(form.terms):
        return None
    slope = form.coefficient(row)
    if slope is None or form.coefficient(key) != -1:
        return None
    return _Bound(is_upper=True, slope=slope, offset=form.offset)
