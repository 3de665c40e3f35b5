"""The numbers of rows (statistics) that gradients of attention need.

    top[i]   = max[j] score[i, j];                     one pass over the keys finds these
    total[i] = sum[j] exp(score[i, j] - top[i]);
    along[i] = sum[j] weight[i, j] * dweight[i, j];

    along[i] = sum[c] dy[i, c] * y[i, c];              the same, where the caller has kept y

The numbers of all rows are stored in one tensor, `row_numbers`, which each later pass reads:
one binding instead of three.  Its first axis is which number it is, as `row_numbers[0, i]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.analysis.reads import holds_reduce, loads
from kerngen.ir.staging.stages import Stage, Step, Write, inlined_writes
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, replaced, walk
from kerngen.schedule.flash.attention import (
    TOP,
    TOTAL,
    is_computed,
    scaled,
    weighted,
)
from kerngen.schedule.flash.attention_places import NoSumsError, ordered

ZERO: Final = identity_of("sum", Scalar.F32)


def weighted_sum(number: int) -> tuple[ir.LocalValue, ir.LocalValue]:
    """Return the local values for weighted sum `number` of a row, and for its weighted mean."""
    names = (f"weighted sum {number}", f"weighted mean {number}")
    first, second = (ir.LocalValue(name, Scalar.F32) for name in names)
    return first, second


@final
@dataclass
class Rows:
    """The statistics of rows, as expressions of `TOP`, `TOTAL` and `weighted_sum`.

    - `domain`: the indices of the rows; `key`: the index that their reductions are over
    - `score`: the score whose maximum they use; None if the caller has kept the statistics
    - `factors`: what weights are multiplied with in the weighted sums
    - `values`: for each tensor of statistics the expression of its value
    """

    domain: tuple[ir.Index, ...]
    key: ir.Index | None = None
    score: ir.Expr | None = None
    factors: list[ir.Expr] = field(default_factory=list[ir.Expr])
    values: dict[ir.Tensor, ir.Expr] = field(default_factory=dict[ir.Tensor, ir.Expr])

    @property
    def is_softmax(self) -> bool:
        """Whether a statistic uses the total of the weights, as those of a softmax do."""
        return any(TOTAL in set(walk(value)) for value in self.values.values())

    def take(self, stage: Stage, inlined: ir.Reduce | None) -> None:
        """Add the statistics that a stage writes; raise `NoSumsError` if these are none.

        `inlined` is the stage's reduction over the keys, with values of tiles inlined, if it
        has one.
        """
        if stage.domain != self.domain:
            message = f"'{stage.name}' has other rows, or other names for them"
            raise NoSumsError(message)
        value = None if inlined is None else self._reduced(stage, inlined)

        def outside(step: Step) -> Step:
            """Replace the reduction, and reads of other numbers, by TOP, TOTAL and sums."""
            found = step.value
            if value is not None:
                found = replaced(found, stage.reduction, value)
            return replace(step, value=self._of_row(found))

        # One by one: a step may read the value of a tensor that one before it writes.
        for write in inlined_writes(map(outside, stage.steps)):
            if len(write.tensor.extents) != len(stage.domain):
                message = f"'{write.tensor.name}' has other axes than its rows"
                raise NoSumsError(message)
            self.values[write.tensor] = write.value

    def _reduced(self, stage: Stage, inlined: ir.Reduce) -> ir.Expr:
        """Return the value of a reduction over the keys."""
        key = self.key or inlined.indices[-1]
        if inlined.indices != (key,):
            message = f"'{stage.name}' is no number of a row"
            raise NoSumsError(message)
        self.key = key
        body = self._of_row(inlined.body)
        return self._maximum(body, inlined) or self._sum(body, inlined, key)

    def _of_row(self, expr: ir.Expr) -> ir.Expr:
        """Replace reads of the same row's numbers by their values."""
        if isinstance(expr, ir.Load) and expr.tensor in self.values:
            if expr.subscripts != tuple(map(ir.IndexValue, self.domain)):
                message = f"'{expr.tensor.name}' is read of other rows"
                raise NoSumsError(message)
            return self.values[expr.tensor]
        return map_children(expr, self._of_row)

    def _maximum(self, body: ir.Expr, found: ir.Reduce) -> ir.Expr | None:
        if found.kind != "max":
            return None
        if is_computed(body) or self.score not in (None, body):
            message = "its softmax has one maximum, that of the scores"
            raise NoSumsError(message)
        self.score = body
        return TOP

    def _sum(self, body: ir.Expr, found: ir.Reduce, key: ir.Index) -> ir.Expr:
        term = weighted(body, key) if found.kind == "sum" else None
        if term is None or ordered(term.score) != ordered(self.score):
            message = "a sum that follows is not of exp(score - the largest score)"
            raise NoSumsError(message)
        if not term.factors:
            return scaled(TOTAL, TOTAL, term, key.extent)
        factor = reduce(times, term.factors)
        if is_computed(factor):
            message = "what is weighted depends on the softmax"
            raise NoSumsError(message)
        # A key that a condition leaves out adds 0, even if its factor is NaN.
        for condition, holds in term.conditions:
            sides = (factor, ZERO) if holds else (ZERO, factor)
            factor = ir.Select(condition, *sides, Scalar.F32)
        if factor not in self.factors:
            self.factors.append(factor)
        total, mean = weighted_sum(self.factors.index(factor))
        return scaled(total, mean, term, key.extent)

    def add_kept(self, read: Iterable[ir.Expr]) -> None:
        """Add the inputs in `read` with one f32 per row: statistics that the caller has kept.

        A plain stage copies them into the tensor of all statistics, so that passes bind one
        tensor.
        """
        extents = tuple(index.extent for index in self.domain)
        for load in (load for value in read for load in loads(value)):
            tensor = load.tensor
            is_number = tensor.extents == extents and tensor.element is Scalar.F32
            if is_number and tensor.role is ir.Role.INPUT and not tensor.is_half:
                own = tuple(map(ir.IndexValue, self.domain))
                self.values.setdefault(tensor, ir.Load(tensor, own))

    def stage(self, numbers: ir.Tensor) -> Stage:
        """Return a plain stage that stores the statistics into the tensor `numbers`."""
        return Stage(
            numbers.name,
            self.domain,
            (*stores(self.domain, self.values.values(), numbers),),
        )


def stores(
    domain: tuple[ir.Index, ...], values: Iterable[ir.Expr], numbers: ir.Tensor
) -> Iterator[Write]:
    """Yield the writes that store a row's statistics, `values`, into the tensor `numbers`."""
    own = tuple(map(ir.IndexValue, domain))
    for number, value in enumerate(values):
        place = ir.Affine(ir.Constant(number, Scalar.I32))
        yield Write(numbers, StoreAt(value, (place, *own)))


def times(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return a product."""
    return ir.Binary("*", left, right, Scalar.F32)


def softmax_rows(weight: ir.Expr) -> Iterator[ir.Expr]:
    """Yield each row's value that is subtracted from a score: `top` of `exp(score - top)`."""
    for node in walk(weight):
        match node:
            case ir.BuiltinCall("exp", (ir.Binary("-", score, top),)):
                if holds_reduce(score) and not holds_reduce(top):
                    yield top
            case _:
                pass
