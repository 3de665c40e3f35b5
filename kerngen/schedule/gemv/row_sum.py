"""A product whose rows have a number that is a sum over the same terms, as of a norm.

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
from kerngen.ir.staging.stages import Define, Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import replaced, with_locals
from kerngen.schedule.contraction import contraction_of
from kerngen.schedule.lowering.addresses import is_contiguous
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

NUMBER: Final = "number of the row"
"""The name of the local value that the product reads; no user's name has a space."""


@final
@dataclass(frozen=True, slots=True)
class RowSum:
    """The number of each row of a product, which an earlier stage computes as a sum.

    - `stage`: that stage; `reduce`: its sum; `value`: the number as a function of the sum
    - `places`: each of its indices, with the index of the product in its place
    - `product`: the task of the product, which reads `NUMBER` and not the stage's tensor
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

    def number(self, there: Lowerer, total: Value) -> Value:
        """Lower and name the number of the product's row, where the sum is `total`."""
        reduced = {self.reduce: total}
        own = replace(there, at=self.at(there.at), reduced=reduced, locals={})
        value = own.lower(self.value)
        return Value(there.shader.let(there.block, self.stage.name, value.expr))


def row_sum_of(task: Task) -> RowSum | None:
    """Return the number of rows that the task's stage computes for a product behind it, if any.

    The product must be the only one to read it, once its own sum is known; both sums have one
    index, over the same terms, and read them from the same tensors.
    """
    first, *following = task.following
    reduce, written = first.reduction, first.steps[-1]
    if not following or reduce is None or not isinstance(written, Write):
        return None
    product = following[0]
    if first.loop is not None or product.loop is not None:
        return None
    reads = {load for load in product.reads if load.tensor == written.tensor}
    if len(reads) != 1 or not _is_private(task, first, product, written.tensor):
        return None
    (read,) = reads
    body = None if product.reduction is None else product.reduction.body
    if body is None or read in loads(body):
        return None
    number = ir.LocalValue(NUMBER, read.type)
    steps = (replace(s, value=replaced(s.value, read, number)) for s in product.steps)
    name = names_of((first, product))
    then = replace(task, stage=replace(product, name=name, steps=tuple(steps)))
    places = dict(_places(first, reduce, read, then))
    if not places or not _sums_same_terms(reduce, then):
        return None
    return RowSum(first, reduce, _value_of(first), places, then)


def _is_private(task: Task, first: Stage, product: Stage, tensor: ir.Tensor) -> bool:
    """Whether a stage computes nothing but a tensor that the product alone reads."""
    others = (stage for stage in task.staged.stages if stage not in (first, product))
    return (
        first.tensors_written == (tensor,)
        and first.tensors_read.isdisjoint(product.tensors_written)
        and all(s.is_plain for s in first.steps if isinstance(s, Write))
        and tensor in task.staged.temporaries
        and not tensor.is_half
        and not any(tensor in stage.tensors_read for stage in others)
    )


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


def _sums_same_terms(reduce: ir.Reduce, product: Task) -> bool:
    """Whether a sum of f32 has plain terms, along rows of tensors that the product reads so."""
    (last,), body = reduce.indices, reduce.body
    assert product.reduction is not None, "it is a product"
    known = {load.tensor for load in loads(product.reduction.body)}
    reads = [*loads(body)]
    return (
        reduce.kind == "sum"
        and reduce.type is product.reduction.type is Scalar.F32
        and not is_conditional(reduce)
        and not holds_reduce(body)
        and reads != []
        and {load.tensor for load in reads} <= known
        and all(is_contiguous(load, last) for load in reads)
    )


def _value_of(stage: Stage) -> ir.Expr:
    """Return the value that a stage writes, with those of its locals in their place."""
    values: dict[str, ir.Expr] = {}
    value: ir.Expr | None = None
    for step in stage.steps:
        value = with_locals(step.value, values)
        if isinstance(step, Define):
            values[step.local.name] = value
    assert value is not None, "a stage has steps"
    return value
