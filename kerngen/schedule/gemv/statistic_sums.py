"""The statistics of a product's rows, summed by the lanes that multiply the rows.

`row_statistic.py` finds them.  With the sum of squares of each row, and three columns of a lane:

    for (var p = lane * 4u; p < u.d; p += 512u) {
        ...                                       // as in `rowwise_block.py`
        let scale_term = x[p >> 2u] * x[p >> 2u];
        scale_sum += scale_term.x + scale_term.y + (scale_term.z + scale_term.w);
    }
    ...                                           // the lanes are joined
    scale_sums[0u] = ...;
    workgroupBarrier();
    let scale = 1.0 / sqrt(scale_sums[0u] / f32(i32(u.d)) + u.eps);
    y[i * u.f + j] = scale * ...;
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import final

from kerngen.schedule.gemv.row_block import suffix
from kerngen.schedule.gemv.row_statistic import STATISTIC, RowStatistic
from kerngen.schedule.gemv.rowwise_join import LaneGroups, Round
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import BYTES
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, across, identity
from kerngen.schedule.lowering.values import Value
from kerngen.shader import tree as t


@final
class StatisticSums:
    """The sums of a lane for the statistics of the rows that it multiplies.

    - `totals`: the lane's sums, one for each row; `sums`: those of all lanes, in workgroup
      memory, of which they take `held_bytes`
    """

    def __init__(self, shader: ShaderBuilder, found: RowStatistic, rows: int) -> None:
        """Name the sums, and declare the array."""
        self.found = found
        self._shader = shader
        self._label = found.stage.name
        self.totals = tuple(
            t.Ident(shader.fresh(f"{self._label}_sum{suffix((row, rows))}"))
            for row in range(rows)
        )
        self.held_bytes = BYTES * rows
        name, type_ = f"{self._label}_sums", f"array<f32, {rows}>"
        self.sums = shader.workgroup_array(name, type_, self.held_bytes)

    def start(self) -> list[t.Stmt]:
        """Return the statements that begin the sums."""
        zero = identity(self._shader, "sum", self.found.reduce.type)
        return [t.Var(total.name, zero) for total in self.totals]

    def take(self, rows: Sequence[Lowerer], *which: tuple[int, int]) -> None:
        """Add a term to the sum of each row, or a vector of four, at the places of lowerers.

        `which` is the number of the term in a turn, among how many, for its name.
        """
        for row, (total, there) in enumerate(zip(self.totals, rows, strict=True)):
            wide = there.vector is not None
            vector = self.found.last if wide else None
            own = replace(there, at=self.found.at(there.at), vector=vector)
            value = own.lower(self.found.reduce.body)
            expr = own.widen(value, self.found.reduce.type) if wide else value.expr
            own_name = f"{self._label}_term{suffix((row, len(rows)), *which)}"
            name = t.Ident(self._shader.name(own_name, "turn"))
            there.block.append(t.Let(name.name, expr))
            term = across("sum", name) if wide else name
            there.block.append(accumulate("sum", total, term))

    def store(self, held: Round, before: int, groups: LaneGroups) -> t.Stmt:
        """Return the statement in which the first of some groups stores a joined sum for all.

        In the round, the sums come behind `before` other totals.
        """
        row, rows, only = held.total, len(self.totals), [held.holds]
        if groups.across > 1:
            only.append(held.group.equals(0))
        if before:
            row = t.Binary("-", held.total, t.u32(before))
            only += [held.total >= before, held.total < before + rows]
        return t.If(t.all_of(*only), (t.Assign(self.sums[row], held.value),))

    def known(self, row: t.Expr, lowerer: Lowerer) -> dict[str, Value]:
        """Name the statistic of a row, by the row's place in the block of rows."""
        place = row if len(self.totals) > 1 else t.u32(0)
        return {STATISTIC: self.found.lower(lowerer, Value(self.sums[place]))}
