"""A product whose rows have a statistic that is a sum over the same terms, as of a norm.

    let scale[i] = 1.0 / sqrt((sum[p] x[i, p] * x[i, p]) / f32(d) + eps);
    y[i, j] = scale[i] * sum[p] (x[i, p] * gain[p]) * w[j, p];

The lanes that multiply a row read all of it.  So they sum `x * x` as well, and the stage
`scale` needs no dispatch of its own: 3 to 4 us for each linear layer of a token on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import is_conditional
from kerngen.ir.analysis.reads import holds_reduce, loads
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage, Write, inlined_writes
from kerngen.ir.types import Scalar
from kerngen.ir.walk import replaced
from kerngen.schedule.contraction import contraction_of
from kerngen.schedule.lowering.addresses import is_contiguous
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

NO_PRODUCT: Final = "no product follows that reads it"
"""The reason why most sums are no statistics."""

STATISTIC: Final = "statistic of the row"
"""The name of the local value that the product reads; no user's name has a space."""


@final
@dataclass(frozen=True, slots=True)
class RowStatistic:
    """The statistic of each row of a product, which an earlier stage computes from a sum.

    - `stage`: that stage; `reduce`: its sum; `value`: the statistic as a function of the sum
    - `places`: each of its indices, with the index of the product in its place
    - `product`: the task of the product, which reads `STATISTIC` and not the stage's tensor
    """

    stage: Stage
    reduce: ir.Reduce
    value: ir.Expr
    places: Mapping[ir.Index, ir.Index]
    product: Task

    @property
    def last(self) -> ir.Index:
        """The index of the sum."""
        return self.reduce.indices[-1]

    def at(self, there: Mapping[ir.Index, t.Expr]) -> dict[ir.Index, t.Expr]:
        """Return the values of the stage's indices, as far as those of the product are known."""
        known = self.places.items()
        return {own: there[index] for own, index in known if index in there}

    def lower(self, there: Lowerer, total: Value) -> Value:
        """Lower and name the statistic of the product's row, where the sum is `total`."""
        reduced = {self.reduce: total}
        own = replace(there, at=self.at(there.at), reduced=reduced, locals={})
        value = own.lower(self.value)
        return Value(there.shader.let(there.block, self.stage.name, value.expr))


def row_statistic_of(task: Task) -> RowStatistic | str:
    """Return the statistic that the task's stage computes for a product behind it.

    Or the reason why it is none: the product must be the only one to read it, once its own sum
    is known, and both must be sums over the same terms.
    """
    first, *following = task.following
    reduce, written = first.reduction, first.steps[-1]
    if not following or reduce is None:
        return NO_PRODUCT
    if not isinstance(written, Write) or not written.is_plain:
        return NO_PRODUCT
    product = following[0]
    reads = {load for load in product.reads if load.tensor == written.tensor}
    if not reads or isinstance(contraction_of(replace(task, stage=product)), str):
        return NO_PRODUCT
    if fault := _fault_of_pair(task, first, product, written.tensor):
        return fault
    if len(reads) != 1:
        return f"'{product.name}' reads it at several places"
    (read,) = reads
    then = _reading(task, first, product, read)
    if isinstance(then, str):
        return then
    places = dict(_places(first, reduce, read, then))
    if not places:
        return f"it is not read at the row of '{product.name}', or has other terms"
    if fault := _fault_of_sum(reduce, then):
        return fault
    (write,) = inlined_writes(first.steps)
    return RowStatistic(first, reduce, write.value, places, then)


def _fault_of_pair(task: Task, first: Stage, product: Stage, tensor: ir.Tensor) -> str:
    """Return why a dispatch can't run both stages without the tensor between them, or ""."""
    others = (stage for stage in task.staged.stages if stage not in (first, product))
    written = product.tensors_written
    bound = {*first.tensors_read, *product.tensors_read, *written} - {tensor}
    if first.loop is not None or product.loop is not None:
        return "a recurrence does not run beside others"
    if first.tensors_written != (tensor,) or tensor not in task.staged.temporaries:
        return "it is a result of the kernel"
    if any(tensor in stage.tensors_read for stage in others):
        return f"others than '{product.name}' read it"
    if not first.tensors_read.isdisjoint(written):
        # Another workgroup may have written what it reads.
        return f"'{product.name}' writes what it reads"
    # Narrow integers may be bound as words, which only the product's own reads expect.
    if tensor.is_half or any(read.narrow for read in first.tensors_read):
        return "it is stored as f16, or reads narrow integers"
    if len(bound) > MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS} tensors"
    return ""


def _reading(task: Task, first: Stage, product: Stage, read: ir.Load) -> Task | str:
    """Return the task of the product, which reads a local value in the place of a tensor."""
    if product.reduction is None or read in loads(product.reduction.body):
        return f"'{product.name}' needs it before its own sum"
    statistic = ir.LocalValue(STATISTIC, read.type)
    steps = (
        replace(s, value=replaced(s.value, read, statistic)) for s in product.steps
    )
    name = names_of((first, product))
    return replace(task, stage=replace(product, name=name, steps=tuple(steps)))


def _places(
    first: Stage, reduce: ir.Reduce, read: ir.Load, product: Task
) -> Iterator[tuple[ir.Index, ir.Index]]:
    """Yield the indices of a stage with those of the product; none if they don't correspond."""
    found = contraction_of(product)
    if isinstance(found, str) or len(found.over) != 1 or len(reduce.indices) != 1:
        return
    rows = [s.index for s in read.subscripts if isinstance(s, ir.IndexValue)]
    pairs = (*zip(first.domain, rows, strict=False), (reduce.indices[0], found.last))
    if (
        len(rows) == len(first.domain)
        and len({*rows}) == len(rows)
        and {*rows} <= {*product.domain[:-1]}
        and all(own.extent == there.extent for own, there in pairs)
    ):
        yield from pairs


def _fault_of_sum(reduce: ir.Reduce, product: Task) -> str:
    """Return why the lanes of a product can't compute a sum beside their own, or ""."""
    (last,), reads = reduce.indices, [*loads(reduce.body)]
    assert product.reduction is not None, "it is a product"
    # Those are bound as vectors of four, or not, for the reads of both.
    known = {load.tensor for load in loads(product.reduction.body)}
    if reduce.kind != "sum" or is_conditional(reduce) or holds_reduce(reduce.body):
        return "it is no plain sum"
    if not reduce.type is product.reduction.type is Scalar.F32:
        return "it is no sum of f32"
    if not reads or not {load.tensor for load in reads} <= known:
        return "it sums other tensors than the product reads"
    if not all(is_contiguous(load, last) for load in reads):
        return f"not all of its terms are contiguous along {last.name}"
    return ""
