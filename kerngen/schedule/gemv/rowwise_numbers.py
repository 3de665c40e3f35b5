"""Products along the reduction that sum a number of each row, too (`row_sum.py`).

With the sum of squares of each row, and four columns for each lane:

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
from typing import Any, final

from kerngen.ir.nodes import Index
from kerngen.schedule.gemv.row_block import suffix
from kerngen.schedule.gemv.row_sum import NUMBER, RowSum
from kerngen.schedule.gemv.rowwise_block import Rowwise
from kerngen.schedule.gemv.rowwise_join import Round, join_at_once, join_rounds
from kerngen.schedule.gemv.shape import GemvShape
from kerngen.schedule.lowering.cooperation import BYTES
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, across, identity
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.program import DispatchShader
from kerngen.shader import tree as t


@final
class RowwiseNumbers(Rowwise):
    """Builds a shader whose lanes sum the terms of a row's number beside those of the product."""

    def __init__(
        self,
        found: RowSum,
        shape: GemvShape,
        variant: str,
        width: int,
        names: set[str],
    ) -> None:
        """Begin with the names of the sums and of what has them for all lanes."""
        super().__init__(found.product, shape, variant, width, names)
        s, rows = self.builder, shape.rows
        self.found = found
        self.label = found.stage.name
        self.row_totals = tuple(
            t.Ident(s.fresh(f"{self.label}_sum{suffix((row, rows))}"))
            for row in range(rows)
        )
        self.held_bytes += BYTES * rows
        name, type_ = f"{self.label}_sums", f"array<f32, {rows}>"
        self.sums = s.workgroup_array(name, type_, BYTES * rows)

    def shader(self) -> DispatchShader:
        """Build and return the shader, with the equations of both stages."""
        shader = super().shader()
        own = (step.text for step in self.found.stage.steps if step.text)
        return replace(shader, equations=(*own, *shader.equations))

    def _summary(self) -> str:
        return f"{super()._summary()[:-1]}, and for the number of each row."

    def _start(self, at: dict[Index, t.Expr]) -> list[t.Expr]:
        columns = super()._start(at)
        zero = identity(self.builder, "sum", self.reduce.type)
        self.body += [t.Var(total.name, zero) for total in self.row_totals]
        return columns

    def _take(
        self, inner: Lowerer, rights: Sequence[Any], shift: tuple[int, int]
    ) -> None:
        """Add a term to every total and to every row's sum, or a vector of four."""
        super()._take(inner, rights, shift)
        vector = None if inner.vector is None else self.found.last
        rows = self.block.at_rows(inner)
        for row, (total, there) in enumerate(zip(self.row_totals, rows, strict=True)):
            own = replace(there, at=self.found.at(there.at), vector=vector)
            value = own.lower(self.found.reduce.body)
            if vector is not None:
                value = Value(own.widen(value, self.reduce.type), wide=True)
            name, which = f"{self.label}_term", (row, self.shape.rows)
            term = self._named_factor(inner, name, value, which, shift).expr
            if vector is not None:
                term = across("sum", term)
            inner.block.append(accumulate("sum", total, term))

    def _finish(self, at: dict[Index, t.Expr]) -> None:
        """Join all totals, in one round if there is room for it, and store the results."""
        s, reduce, groups = self.builder, self.reduce, self._groups
        rows, count = len(self.row_totals), len(self.totals)
        every = (*self.totals, *self.row_totals)
        once = join_at_once(s, reduce, every, groups)
        if once is not None:
            self.body += [*once.before, self._store_sum(once, count), t.BARRIER]
            holds = t.all_of(once.holds, once.total < count)
            self.body += self._store(at, replace(once, before=[], holds=holds))
            return
        self.partials = groups.memory(s, reduce, max(rows, count))
        for each in join_rounds(s, reduce, self.row_totals, groups, self.partials):
            self.body += [*each.before, self._store_sum(each, 0)]
        self.body.append(t.BARRIER)
        super()._finish(at)

    def _store_sum(self, held: Round, before: int) -> t.Stmt:
        """Return the store of a row's sum for all lanes: of a total behind the first `before`.

        All groups of lanes have the same sums, of which the first group stores its own.
        """
        number, rows = held.total, len(self.row_totals)
        only = [held.holds]
        if before:
            number = t.Binary("-", held.total, t.u32(before))
            only += [held.total >= before, held.total < before + rows]
        if self.shape.across > 1:
            only.append(held.group.equals(0))
        return t.If(t.all_of(*only), (t.Assign(self.sums[number], held.value),))

    def _known(self, held: Round, lowerer: Lowerer) -> dict[str, Value]:
        """Name the number of the result's row."""
        rows = len(self.row_totals)
        row = held.total // self.shape.columns if rows > 1 else t.u32(0)
        return {NUMBER: self.found.number(lowerer, Value(self.sums[row]))}
