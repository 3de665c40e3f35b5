"""Products of a part of the terms, as with a triangular matrix.

`sum[p when p <= i] a[i, p] * b[p, j]` takes p up to the row i.  A workgroup takes the turns in
which any element of its tile has a term.  Of these, turns in which all elements have all
terms add as without a condition; turns at the edge test each term for each element.  For
tiles of 16 rows and turns of 16 terms:

                    terms 0    16      32      48
    rows 0 to 15      │ edge │ none  │ none  │
    rows 16 to 31     │ all  │ edge  │ none  │
    rows 32 to 47     │ all  │ all   │ edge  │

A term that is left out may be NaN.  So it is not enough to set its factors to 0: the term
itself is replaced by 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, TypeAlias, final

from kerngen.ir.nodes import Index
from kerngen.schedule.contraction import Contraction
from kerngen.schedule.gemm.register_tile import RegisterTile, TermConditions
from kerngen.schedule.gemm.stream import ProductTiles
from kerngen.schedule.gemm.tiling import Tiling
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.linear_bounds import LinearBound, later_rows_have_more
from kerngen.shader import tree as t

Ends: TypeAlias = tuple[t.Expr, t.Expr]
"""A pair of places: a first and a last one, or those of a row and a column."""

_Bounds: TypeAlias = dict[bool, list[t.Expr]]
"""Lower bounds (False) and upper ones (True)."""

# Bounds are computed in i32, as they may be negative: `p <= i - 9`.
_ONE: Final = t.Literal("1i")
_ZERO: Final = t.Literal("0i")


@final
@dataclass
class TermRange:
    """The range of terms that a tile needs, from the contraction's bounds by row and column.

    - `row`: the index of the rows
    - `origin`: the tile's first row and column
    - `padding`: how many zeros are padded in front of the first term
    """

    tiles: ProductTiles
    tiling: Tiling
    found: Contraction
    row: Index
    origin: Ends = (t.ZERO, t.ZERO)
    padding: t.Expr = t.ZERO
    _all: dict[bool, t.Expr] = field(default_factory=dict[bool, t.Expr])

    @property
    def grow(self) -> tuple[bool, bool]:
        """Whether later rows of tiles need more terms, and whether later columns do."""
        row_bounds, column_bounds = self.found.row_bounds, self.found.column_bounds
        return later_rows_have_more(row_bounds), later_rows_have_more(column_bounds)

    def write(self, origin: Ends, begin: t.Expr, end: t.Expr, padding: t.Expr) -> Ends:
        """Append variables for the tile's first term and the end of its turns; return both.

        Without bounds, the turns go from term `begin` to `end`.  `origin` is the tile's first
        row and column; `padding` terms come before the first.  For `p <= i`:

            let first_row = i32(tile_row);
            let last_row = i32(min(tile_row + 32u, u.m)) - 1i;
            let tile_end = min(u.k, ...);       // the end of the turn that has term last_row
            let all_end = ...;                  // first_row: all rows have all terms up to it
        """
        self.origin, self.padding = origin, padding
        let, k = self.tiles.let, self.tiling.k
        # Loosest bounds: outside of them, no element of the tile has a term.
        some, every = self._of_tile()
        terms = self.tiles.shader.size(self.found.over)
        last = let("last", t.Binary("-", t.call("i32", terms), _ONE))
        if some[False]:
            low = _clamp(_extreme("max", some[False]), _ZERO, last)
            first = (t.call("u32", low) + padding) // k * k
            begin = let("tile_begin", t.call("max", begin, first))
        if some[True]:
            high = _clamp(_extreme("min", some[True]), t.Literal("-1i"), last)
            count = t.call("u32", t.Binary("+", high, _ONE))
            past = (count + padding + (k - 1)) // k * k
            if padding != t.ZERO:
                past = t.Binary("-", past, padding)
            end = let("tile_end", t.call("min", end, past))
        # Tightest bounds: inside of them, every element has all terms.
        self._all = {
            is_upper: let(
                "all_end" if is_upper else "all_begin",
                _extreme("min" if is_upper else "max", every[is_upper]),
            )
            for is_upper in (False, True)
            if every[is_upper]
        }
        return begin, end

    def has_all(self, following: t.Expr) -> t.Expr:
        """Return the condition that all elements need all terms of the turn before `following`.

        It is the same in all invocations of a workgroup: they take the same branch.
        """
        end, first = t.call("i32", following), t.call("i32", self._first(following))
        return t.all_of(
            *(
                (
                    t.Binary("<=", end, t.Binary("+", bound, _ONE))
                    if is_upper
                    else t.Binary(">=", first, bound)
                )
                for is_upper, bound in self._all.items()
            )
        )

    def some_terms(
        self,
        registers: RegisterTile,
        following: t.Expr,
        buffer: t.Expr | None,
        left_over: t.Expr | None,
    ) -> list[t.Stmt]:
        """Return the loop over a turn's terms that tests for each element if a term counts.

        The loop is not unrolled, as few turns need it.  Of `p <= i` in turns of 32 terms:

            let most = i32(tile_row + row * 4u);
            for (var p = 0u; p < 32u; p += 1u) {
                let term = i32(following - 32u + p);
                let in_row = term <= most;
                acc_0 += select(vec4f(0.0), a_0.x * b_0, in_row);
                ...
            }
        """
        body: list[t.Stmt] = []
        s = self.tiles.shader
        lowerer = Lowerer(s, {}, body)
        rows = self._by_row(lowerer, registers)
        columns = self._by_column(lowerer, registers)
        p = t.Ident(s.fresh("p"))
        at = t.Ident(s.fresh("term"))
        place = t.call("i32", self._first(following) + p)
        inner: list[t.Stmt] = [t.Let(at.name, place)]
        wide = t.Call("vec4i", (at,)) if columns else at
        kept = TermConditions(
            (*(_named(s.fresh("in_row"), inner, _within(at, x)) for x in rows),),
            (
                *(
                    _named(s.fresh("in_columns"), inner, _within(wide, x, wide=True))
                    for x in columns
                ),
            ),
        )
        inner += registers.accumulate_some(p, buffer, kept)
        first = registers.first_term
        end = first + self.tiling.slice_terms
        if left_over is not None:
            end = t.call("min", end, left_over)
        return [*body, t.count_up(p.name, first, end, 1, *inner)]

    def _first(self, following: t.Expr) -> t.Expr:
        """Return the first term of the turn before `following`.

        The first turn of a padded sum begins at term 0, with the padding behind its terms:
        `following` is less than k then.
        """
        k = t.u32(self.tiling.k)
        if self.padding != t.ZERO:
            following = t.call("max", following, k)
        return t.Binary("-", following, k)

    # Bounds

    def _of_tile(self) -> tuple[_Bounds, _Bounds]:
        """Return the loosest bounds of the tile's elements, and the tightest.

        A term outside of the loosest bounds is of no element; one inside of the tightest is
        of every element.
        """
        s, found = self.tiles.shader, self.found
        lowerer = Lowerer(s, {}, self.tiles.body)
        some, every = _none(), _none()
        sides = (
            ("row", self.row, found.row_bounds, self.tiling.m),
            ("column", found.column, found.column_bounds, self.tiling.n),
        )
        for (name, index, bounds, size), origin in zip(sides, self.origin, strict=True):
            if not bounds:
                continue
            past = t.call("min", origin + size, s.extent(index.extent))
            first = self.tiles.let(f"first_{name}", t.call("i32", origin))
            last = t.Binary("-", t.call("i32", past), _ONE)
            ends = first, self.tiles.let(f"last_{name}", last)
            for bound in bounds:
                loosest, tightest = bound.extremes(lowerer, *ends)
                some[bound.is_upper].append(loosest)
                every[bound.is_upper].append(tightest)
        return some, every

    def _by_row(
        self, lowerer: Lowerer, registers: RegisterTile
    ) -> list[dict[bool, t.Expr]]:
        if not self.found.row_bounds:
            return []
        places = (
            t.call("i32", self.origin[0] + registers.tile_row(r))
            for r in range(self.tiling.micro_m)
        )
        return [_limits(lowerer, self.found.row_bounds, at) for at in places]

    def _by_column(
        self, lowerer: Lowerer, registers: RegisterTile
    ) -> list[dict[bool, t.Expr]]:
        if not self.found.column_bounds:
            return []
        places = (
            t.Call(
                "vec4i",
                (
                    *(
                        t.call("i32", self.origin[1] + x)
                        for x in registers.tile_columns(v)
                    ),
                ),
            )
            for v in range(self.tiling.micro_n // 4)
        )
        return [_limits(lowerer, self.found.column_bounds, at) for at in places]


def _none() -> _Bounds:
    return {False: [], True: []}


def _limits(
    lowerer: Lowerer, bounds: Iterable[LinearBound], at: t.Expr
) -> dict[bool, t.Expr]:
    """Name the least and the most term of the row, or of the four columns, at a place."""
    found = _none()
    for bound in bounds:
        found[bound.is_upper].append(bound.at(lowerer, at))
    fresh = lowerer.shader.fresh
    return {
        is_upper: _named(
            fresh("most" if is_upper else "least"),
            lowerer.block,
            _extreme("min" if is_upper else "max", limits),
        )
        for is_upper, limits in found.items()
        if limits
    }


def _within(at: t.Expr, limits: dict[bool, t.Expr], *, wide: bool = False) -> t.Expr:
    """Return whether a term is within limits, or for which of four columns."""
    tests = [
        t.Binary("<=" if is_upper else ">=", at, limit)
        for is_upper, limit in limits.items()
    ]
    if not wide:
        return t.all_of(*tests)
    return reduce(lambda left, right: t.Binary("&", left, right), tests)


def _named(name: str, block: list[t.Stmt], value: t.Expr) -> t.Expr:
    block.append(t.Let(name, value))
    return t.Ident(name)


def _extreme(function: str, values: Sequence[t.Expr]) -> t.Expr:
    """Return the largest or the smallest of values."""
    return reduce(lambda one, other: t.call(function, one, other), values)


def _clamp(value: t.Expr, least: t.Expr, most: t.Expr) -> t.Expr:
    """Return a value moved into bounds; the lower one, where they exclude each other."""
    return t.call("max", least, t.call("min", value, most))
