"""A keyed reduction in the terms of strategy `scatter`: terms, bins and columns.

    dw[q, j] = sum[i when ids[i] == u32(q) and keep[i]] dy[i, j]

Each term i has a key, `ids[i]`, and a guard, `keep[i]`.  There is a bin for each q, with a
result in each column j.  A key outside of its axis belongs to no bin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from functools import reduce as fold
from typing import final

from kerngen.ir.analysis.conditions import conditional, unconditional
from kerngen.ir.analysis.reads import free_indices, loads
from kerngen.ir.nodes import Binary, Expr, Index, Load, Reduce, Tensor
from kerngen.ir.staging.keyed import Key, Keyed, conjuncts, keyed
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children
from kerngen.plan.size import Size
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class Scatter:
    """A stage's keyed reduction, with its indices sorted into terms, bins and columns.

    `reduce` is the reduction as the stage has it; `found` has its keys, and the reduction with
    the rest of its condition.  For the example above: terms (i), bins (q), columns (j), no
    rows.
    """

    task: Task
    reduce: Reduce
    found: Keyed

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The keys, in the order in which the domain has their indices."""
        order = self.task.domain
        return tuple(sorted(self.found.keys, key=lambda key: order.index(key.index)))

    @cached_property
    def rows(self) -> tuple[Index, ...]:
        """The indices of the domain that keys depend on: each row has bins of its own.

        That is b, for `sum[i when ids[b, i] == u32(q)] x[b, i]`.
        """
        used = frozenset[Index]().union(*(free_indices(k.value) for k in self.keys))
        return tuple(index for index in self.task.domain if index in used)

    @property
    def terms(self) -> tuple[Index, ...]:
        """The indices that number the terms: rows, and those of the reduction."""
        return (*self.rows, *self.reduce.indices)

    @property
    def bins(self) -> tuple[Index, ...]:
        """The indices that number the bins: rows, and those that a key sets, such as q."""
        return (*self.rows, *(key.index for key in self.keys))

    @property
    def columns(self) -> tuple[Index, ...]:
        """The domain's indices besides those of bins: each bin has a result for each column."""
        return tuple(index for index in self.task.domain if index not in self.bins)

    @cached_property
    def guards(self) -> tuple[Expr, ...]:
        """The conditions of a term besides its keys that are the same in all columns."""
        columns = {*self.columns}
        parts = conjuncts(self.found.reduce.condition)
        return tuple(part for part in parts if free_indices(part).isdisjoint(columns))

    @cached_property
    def body(self) -> Expr:
        """The value of a term; the neutral value where a condition on the column fails."""
        own = self.found.reduce
        rest = [part for part in conjuncts(own.condition) if part not in self.guards]
        condition = fold(_and, rest) if rest else None
        return unconditional(replace(own, condition=condition)).body

    @property
    def read_of_keys(self) -> frozenset[Tensor]:
        """The tensors that keys and guards read."""
        return _read(*self.guards, *(key.value for key in self.keys))

    @property
    def read_of_terms(self) -> frozenset[Tensor]:
        """The tensors that the value of a term reads."""
        return _read(self.body)

    @property
    def written(self) -> frozenset[Tensor]:
        """The tensors that the stage writes."""
        return frozenset(self.task.stage.tensors_written)

    @property
    def beside(self) -> frozenset[Tensor]:
        """The tensors that the stage reads and writes outside of the reduction."""

        def outside(expr: Expr) -> Iterator[Tensor]:
            if expr == self.reduce:
                return
            if isinstance(expr, Load):
                yield expr.tensor
            for child in children(expr):
                yield from outside(child)

        values = self.task.values
        return self.written.union(*(outside(value) for value in values))

    @property
    def term_count(self) -> Size:
        """The number of terms."""
        return domain_size(self.terms)

    @property
    def bin_count(self) -> Size:
        """The number of bins."""
        return domain_size(self.bins)

    @property
    def result_count(self) -> Size:
        """The number of results: those of all bins in all columns."""
        return domain_size(self.task.domain)

    def lower_key(self, lowerer: Lowerer) -> tuple[t.Expr, t.Expr]:
        """Emit a term's keys; return the condition that the term counts, and its bin."""
        keys = [lowerer.lower(key.value).expr for key in self.keys]
        guards = [lowerer.lower(guard).expr for guard in self.guards]
        return self.choose_bin(lowerer, keys, guards)

    def choose_bin(
        self, lowerer: Lowerer, values: Sequence[t.Expr], guards: Sequence[t.Expr]
    ) -> tuple[t.Expr, t.Expr]:
        """Emit the index of each key, given the key's value; return the same as `lower_key`.

        A term counts if each index is inside of its axis and all guards hold:

            let q = ids[i];
            ...  q < u.q_length && keep[i]  ...           // and the bin is q
        """
        shader, at = lowerer.shader, dict(lowerer.at)
        inside: list[t.Expr] = []
        for key, value in zip(self.keys, values, strict=True):
            name = t.Ident(shader.name(key.index.name))
            # A negative i32 becomes a u32 that is beyond any axis.
            place = value if key.value.type is Scalar.U32 else t.call("u32", value)
            lowerer.block.append(t.Let(name.name, place))
            inside.append(name < shader.extent(key.index.extent))
            at[key.index] = name
        return t.all_of(*inside, *guards), self.bin_at(shader, at)

    def bin_at(self, shader: ShaderBuilder, at: dict[Index, t.Expr]) -> t.Expr:
        """Return the number of the bin at the index values `at`."""
        extents = tuple(index.extent for index in self.bins)
        return row_major(shader, extents, [at[index] for index in self.bins])

    def result_at(
        self, shader: ShaderBuilder, bin_: t.Expr, at: dict[Index, t.Expr]
    ) -> t.Expr:
        """Return the address in scratch memory of a bin's result in the column at `at`."""
        if not self.columns:
            return bin_
        extents = tuple(index.extent for index in self.columns)
        column = row_major(shader, extents, [at[index] for index in self.columns])
        return bin_ * shader.size(self.columns) + column


def _read(*exprs: Expr) -> frozenset[Tensor]:
    return frozenset(load.tensor for expr in exprs for load in loads(expr))


def scatter_of(task: Task) -> Scatter | str:
    """Return the keyed reduction of a stage, or the reason why the stage has none."""
    reduce = task.reduction
    if reduce is None:
        return "the stage holds no reduction"
    if reduce.finds_place:
        return "its reduction finds a place"
    found = keyed(conditional(reduce))
    if found is None or not {key.index for key in found.keys} <= {*task.domain}:
        return (
            "no condition of the reduction compares a key with an index of the result"
        )
    return Scatter(task, reduce, found)


def _and(left: Expr, right: Expr) -> Expr:
    return Binary("and", left, right, Scalar.BOOL)
