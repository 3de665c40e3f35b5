"""Reading the terms of a scan, and writing its results: one or four neighbours at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.lowering.cooperation import finish_steps, reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import identity
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.scan.form import Scan
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class ScanTerms:
    """Reads the terms of a scan, and writes its stage's steps.

    `to` has the indices of the row. With a `vector` index four neighbours are read at
    once: along that index of the rows, or along the scan itself.
    """

    to: Lowerer
    scan: Scan
    vector: Index | None

    @property
    def width(self) -> int:
        """How many elements are read at once: 1 or 4."""
        return 1 if self.vector is None else LANES

    @property
    def nothing(self) -> t.Expr:
        """The neutral value: added to a term, it changes nothing."""
        reduce = self.scan.reduce
        return identity(self.to.shader, reduce.kind, reduce.type, self.width)

    def element(self, place: t.Expr, length: t.Expr) -> t.Expr:
        """Return the number of an element, in the scan's order, by its place.

        Places are counted in the order of the scan.
        """
        if not self.scan.is_backward:
            return place
        along = self.width if self.vector == self.scan.index else 1
        return t.Binary("-", length, place + along)

    def term(self, element: t.Expr, block: list[t.Stmt]) -> t.Expr:
        """Return an element's term; what it needs is written to `block` first."""
        scan, vector = self.scan, self.vector
        inner = self.to.nested({scan.own: element})
        along = scan.own if vector == scan.index else vector
        value = replace(inner, block=block, vector=along).lower(scan.term)
        return value.expr if vector is None else inner.widen(value, scan.reduce.type)

    def steps(self, element: t.Expr, result: t.Expr) -> tuple[t.Stmt, ...]:
        """Return the stage's steps for an element, given the scan's result there."""
        scan, shader = self.scan, self.to.shader
        at = t.Ident(shader.name(scan.index.name, "scan"))
        label = f"{reduction_label(shader.task)}_{scan.reduce.kind}"
        named = t.Ident(shader.name(label, "scan"))
        inner = self.to.nested({scan.index: at})
        inner.block.extend((t.Let(at.name, element), t.Let(named.name, result)))
        inner = replace(inner, vector=self.vector)
        value = Value(named, wide=self.vector is not None)
        finish_steps(inner, shader.task, scan.reduce, value, None)
        return tuple(inner.block)
