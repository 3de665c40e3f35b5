"""The range of keys that a tile of queries attends to: masked tiles are skipped.

`j <= i + (t - s)`, as of a causal mask, bounds the keys j of row i from above.  A tile of rows
needs the keys of its last row then, and no more.  `j <= at + i` is such a bound, too, with a
position `at` that only the device has, as of a cache with room:

    let end = u32(max(min(all_keys - 1i, last_row + ...) + 1i, 0i));
    for (var first_key = 0u; first_key < end; first_key += 64u) { ... }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.builtins.evaluate import NotFiniteError, constant_value
from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Expr,
    Index,
    Select,
)
from kerngen.ir.types import Scalar
from kerngen.schedule.contraction import all_parts
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.linear_bounds import LinearBound, bound_of
from kerngen.shader import tree as t

NEGLIGIBLE: Final = -1e38
"""A finite score below this counts as a mask, like -inf: it has no weight beside any other.

f32 has steps of 1e31 there, so that the exponential of the difference of two scores is 1 or 0.
"""

Mask: TypeAlias = tuple[Expr, bool, bool]
"""A condition, whether it must be true or false for a key to count, and whether the score of
other keys is a finite number."""

_ZERO: Final = identity_of("sum", Scalar.F32)


@final
@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The bounds that a mask sets to the keys of a row.

    - `bounds`: bounds of the key that are linear in the row; empty if no key may be skipped
    - `needs_keys`: whether a tile may skip keys only if each of its rows has an unmasked key.
      That is so where masked scores are a finite number, not -inf: the softmax of a row without
      keys then has equal weights for all keys, and skipping some would lose these.
    - `turned`: the same bounds with rows and keys exchanged, where the keys of the pass are the
      rows of the softmax, as in the sums for dk and dv; else None
    """

    bounds: tuple[LinearBound, ...]
    needs_keys: bool
    row: Index
    key: Index
    turned: KeyBounds | None = None

    @classmethod
    def of(cls, score: Expr, row: Index, key: Index) -> KeyBounds:
        """Return the bounds that a score's mask sets; none if no mask is recognised."""
        return cls.of_mask(_masked(score), row, key)

    @classmethod
    def of_mask(
        cls, mask: Mask | None, row: Index, key: Index, *, is_turned: bool = False
    ) -> KeyBounds:
        """Return the bounds of a mask; `is_turned` if the keys are the softmax's rows.

        Parts of the mask that are no linear bound are left out, as the score itself is computed
        with the mask.  If masked scores are finite, a mask with such a part sets no bounds:
        whether a row has keys can't be found out.
        """
        none = cls((), needs_keys=False, row=row, key=key)
        if mask is None:
            return none
        condition, holds, is_finite = mask
        parts = [
            bound_of(part, row, key, holds=each)
            for part, each in all_parts(condition, holds=holds)
        ]
        found = tuple(bound for bound in parts if bound is not None)
        if is_finite and len(found) < len(parts):
            return none
        turned = cls.of_mask(mask, key, row) if is_turned else None
        if turned and is_finite and not turned.bounds:
            return none
        return cls(found, needs_keys=is_finite, row=row, key=key, turned=turned)

    def write(
        self,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        rows: tuple[t.Expr, t.Expr],
        step: int,
    ) -> tuple[t.Expr, t.Expr]:
        """Append to `body` the range of keys that a tile needs; return its begin and end.

        `rows` are the first and the last row of the tile.  The begin is a multiple of `step`.
        Without bounds nothing is appended: the range is all keys.
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
        lowerer = Lowerer(shader, {}, body)
        low, high = self._loosest(lowerer, (first, last), keys)
        # With a finite mask, a tile in which some row may have no key takes all keys.
        if self.needs_keys:
            some = t.Ident(shader.fresh("have_keys"))
            checks = [*self._all_have_keys(lowerer, (first, last), keys)]
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

    def _loosest(
        self, lowerer: Lowerer, rows: tuple[t.Expr, t.Expr], keys: t.Expr
    ) -> tuple[t.Expr, t.Expr]:
        """Return the first key that any row needs, and the end of the keys, as i32."""
        low: t.Expr = t.Literal("0i")
        final: t.Expr = t.Binary("-", keys, t.Literal("1i"))
        for bound in self.bounds:
            at = bound.loosest(lowerer, *rows)
            if bound.is_upper:
                final = t.call("min", final, at)
            else:
                low = t.call("max", low, at)
        return low, t.call("max", final + t.Literal("1i"), t.Literal("0i"))

    def _all_have_keys(
        self, lowerer: Lowerer, ends: tuple[t.Expr, t.Expr], keys: t.Expr
    ) -> Iterator[t.Expr]:
        """Yield conditions that all hold if every row of the softmax has a key.

        Where the keys are those rows, all of them count, not those of a tile.
        """
        if self.turned is None:
            return self.checks(lowerer, ends, keys)
        shader = lowerer.shader
        count = t.call("i32", shader.extent(self.turned.row.extent))
        rows = t.Literal("0i"), t.Binary("-", count, t.Literal("1i"))
        total = t.call("i32", shader.extent(self.turned.key.extent))
        return self.turned.checks(lowerer, rows, total)

    def checks(
        self, lowerer: Lowerer, ends: tuple[t.Expr, t.Expr], keys: t.Expr
    ) -> Iterator[t.Expr]:
        """Yield WGSL conditions: all hold if each row between the `ends` has an unmasked key.

        As the bounds are linear, it is enough to test the first and the last row.
        """
        for row in ends:
            lows = [t.Literal("0i"), *self._sides(lowerer, row, is_upper=False)]
            highs = [
                t.Binary("-", keys, t.Literal("1i")),
                *self._sides(lowerer, row, is_upper=True),
            ]
            yield from (t.Binary("<=", low, high) for low in lows for high in highs)

    def _sides(self, lowerer: Lowerer, row: t.Expr, *, is_upper: bool) -> list[t.Expr]:
        return [
            bound.at(lowerer, row)
            for bound in self.bounds
            if bound.is_upper == is_upper
        ]


def mask_of(weight: Expr) -> Mask | None:
    """Return the mask of a weight, the condition without which it is 0; None if it has none.

    For `exp(score - top)` that is the mask of the score, as exp(-inf) is 0.  If masked scores
    are a finite number, their weights are 0, too, in rows that have other keys.
    """
    match weight:
        case Select(condition, _, otherwise) if otherwise == _ZERO:
            return condition, True, False
        case Select(condition, then, _) if then == _ZERO:
            return condition, False, False
        case Binary("*", left, right):
            return mask_of(left) or mask_of(right)
        case Binary("/", left, _):
            return mask_of(left)
        case BuiltinCall("exp", (Binary("-", score, _),)):
            return _masked(score)
        case _:
            return None


def _masked(score: Expr) -> Mask | None:
    """Return the mask of a score: of `if j <= i { s } else { -inf }`, or the other way round.

    The score of masked keys must be a constant below `NEGLIGIBLE`.
    """
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
