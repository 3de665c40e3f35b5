"""Products along the reduction of bytes by bytes: WGSL multiplies four of a word at once.

`dot4I8Packed` and `dot4U8Packed` are one instruction where a device has it.  A lane reads a
`vec4u`, 16 bytes, of each factor:

    total += dot4I8Packed(left.x, right.x) + dot4I8Packed(left.y, right.y) + ...;
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, final

from kerngen.ir.analysis.reads import loads
from kerngen.ir.nodes import Load
from kerngen.ir.types import Storage
from kerngen.schedule.contraction import Contraction
from kerngen.schedule.gemv.narrow_runs import WORDS, run_number
from kerngen.schedule.gemv.row_block import suffix
from kerngen.schedule.gemv.rowwise_block import Rowwise
from kerngen.schedule.lowering.addresses import is_contiguous
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate
from kerngen.schedule.lowering.values import COMPONENTS
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

DOT_RUN: Final = 4 * WORDS
"""How many bytes of a row a lane reads at once: a `vec4u`."""

FUNCTIONS: Final[Mapping[Storage, str]] = {
    Storage.I8: "dot4I8Packed",
    Storage.U8: "dot4U8Packed",
}


def dot_factors(
    task: Task, found: Contraction, names: set[str]
) -> tuple[Load, Load] | None:
    """Return both factors if `dot4I8Packed` or `dot4U8Packed` can multiply them, else None.

    They must be bytes of one type, contiguous along the reduction, in tensors of `names`.
    Nothing else may read these tensors, as they are bound as `vec4u`.
    """
    left, right = found.left, found.right
    if not isinstance(left, Load) or not isinstance(right, Load):
        return None
    reads = [x for value in task.values for x in loads(value)]
    tensors = {left.tensor, right.tensor}
    is_alone = sum(x.tensor in tensors for x in reads) == len((left, right))
    fits = (
        left.tensor.narrow == right.tensor.narrow
        and left.tensor.narrow in FUNCTIONS
        and {tensor.name for tensor in tensors} <= names
        and all(is_contiguous(x, found.last) for x in (left, right))
    )
    return (left, right) if fits and is_alone and len(found.over) == 1 else None


@final
@dataclass
class DotRowwise(Rowwise):
    """Builds a shader whose lanes read four words, 16 bytes, of each factor at once."""

    def _rights(
        self, inner: Lowerer, columns: list[t.Expr], shift: tuple[int, int]
    ) -> Iterator[t.Expr]:
        """Read the words of every column, once for all rows."""
        for number, column in enumerate(columns):
            there = replace(inner, at={**inner.at, self.column: column})
            which = suffix((number, len(columns)), shift)
            yield self._words(there, self.block.found.right, f"right{which}")

    def _take(
        self, inner: Lowerer, rights: Sequence[Any], shift: tuple[int, int]
    ) -> None:
        """Add the products of a run to every total."""
        totals = iter(self.totals)
        for row, there in enumerate(self.block.at_rows(inner)):
            which = suffix((row, self.shape.rows), shift)
            left = self._words(there, self.block.found.left, f"left{which}")
            for right in rights:
                term = reduce(t.add, self._products(left, right))
                inner.block.append(accumulate("sum", next(totals), term))

    def _products(self, left: t.Expr, right: t.Expr) -> Iterator[t.Expr]:
        """Yield the sum of four products for each word."""
        factor = self.block.found.right
        assert isinstance(factor, Load), "the factors are bytes"
        assert factor.tensor.narrow is not None, "the factors are bytes"
        function = FUNCTIONS[factor.tensor.narrow]
        for word in COMPONENTS:
            yield t.call(function, t.Member(left, word), t.Member(right, word))

    def _words(self, inner: Lowerer, factor: Any, name: str) -> t.Expr:
        """Name the words of a factor's run."""
        number = run_number(inner, factor, self.width)
        named = t.Ident(self.builder.name(name, "turn"))
        words = self.builder.buffer(factor.tensor).expr[number]
        inner.block.append(t.Let(named.name, words))
        return named
