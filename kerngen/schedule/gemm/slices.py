"""Slices of a turn: several invocations share the terms of an element (sliced-K).

A small product has few tiles, and so few invocations, which wait for what they load.  With
two slices a workgroup has twice the invocations, each for half the terms of a turn:

    invocations   0 .. 63       terms  0 .. 31 of each turn
    invocations  64 .. 127      terms 32 .. 63

After the loop the sums of the slices are added in pairs, in workgroup memory, and slice 0 goes
on with them:

    if (slice == 1u) {
        a_tile[kept_line][kept_at] = acc_0;
        a_tile[kept_line + 8u][kept_at] = acc_1;
        ...
    }
    workgroupBarrier();
    if (slice == 0u) {
        acc_0 += a_tile[kept_line][kept_at];
        ...
    }
    workgroupBarrier();
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from kerngen.schedule.gemm.tiling import Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.identities import accumulate
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.contraction import Contraction
    from kerngen.schedule.gemm.operand import Operand


@final
class Slices:
    """The WGSL of an invocation's slice: its terms, and how the sums of all are joined."""

    def __init__(
        self, builder: ShaderBuilder, tiling: Tiling, left: Operand, right: Operand
    ) -> None:
        """Name the number of the slice, and the number of the invocation within it."""
        self._builder = builder
        self._tiling = tiling
        self._operands = left, right
        self._keeper = max(left, right, key=lambda each: each.line)
        self._number = t.Ident(builder.fresh("slice"))
        self.lane = t.Ident(builder.fresh("slice_lane"))
        self.first_term = t.Ident(builder.fresh("slice_term"))
        self.places: tuple[t.Expr, t.Expr] = (t.ZERO, t.ZERO)

    def place(self) -> list[t.Stmt]:
        """Return `let`s of the slice, the number in it, and the first term of each turn."""
        lane, count = self._builder.lane, self._tiling.slice_invocations
        return [
            t.Let(self._number.name, lane // count),
            t.Let(self.lane.name, lane % count),
            t.Let(self.first_term.name, self._number * self._tiling.slice_terms),
        ]

    def turn(self, row: t.Expr, column: t.Expr) -> list[t.Stmt]:
        """Name the places of the invocation's vectors in lines of the tiles (`places`).

        They are its row and column, XORed with what those of its first term are
        (`Operand.exchange`).  The number of a term is the sum of two without a common bit, so
        that the other part is XORed for each term, as a constant.
        """
        body: list[t.Stmt] = []
        left, right = (
            self._turned(operand, at, body)
            for operand, at in zip(self._operands, (row, column), strict=True)
        )
        self.places = left, right
        return body

    def _turned(self, operand: Operand, at: t.Expr, body: list[t.Stmt]) -> t.Expr:
        place = operand.turned(at, self.first_term)
        if place is at:
            return at
        return self._builder.let(body, f"{operand.name}_place", place)

    def join(self, found: Contraction, totals: Sequence[t.Expr]) -> list[t.Stmt]:
        """Return the additions of all slices' sums to those of slice 0, in pairs of slices."""
        body: list[t.Stmt] = []
        line = self._builder.let(body, "kept_line", self.lane // self._keeper.line)
        at = self._builder.let(body, "kept_at", self.lane % self._keeper.line)
        half = self._tiling.slices // 2
        while half:
            for first in range(0, len(totals), self._tiling.sums_at_once):
                some = totals[first : first + self._tiling.sums_at_once]
                body += self._join_half(found, some, half, (line, at))
            half //= 2
        return body

    def _join_half(
        self,
        found: Contraction,
        totals: Sequence[t.Expr],
        half: int,
        own: tuple[t.Expr, t.Expr],
    ) -> list[t.Stmt]:
        """Return the additions of the sums of `half` of the slices to those of as many before.

        Each vector is kept in lines of its own, in which the invocations of a slice have places.
        """
        lines, (line, at) = self._tiling.slice_lines, own
        first = self._number % half * (lines * len(totals)) + line
        kept = [
            (total, self._keeper.place_in(first + lines * n, at))
            for n, total in enumerate(totals)
        ]
        stored = (t.Assign(place, total) for total, place in kept)
        added = (accumulate(found.kind, total, place) for total, place in kept)
        pair = self._number // half  # 1 is added to 0; any others have been before.
        return [
            t.If(pair.equals(1), (*stored,)),
            t.BARRIER,
            t.If(pair.equals(0), (*added,)),
            t.BARRIER,
        ]

    def first(self, body: Sequence[t.Stmt]) -> list[t.Stmt]:
        """Return statements for slice 0 alone."""
        return [t.If(self._number.equals(0), (*body,))]
