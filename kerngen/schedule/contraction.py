"""Recognise contractions: reductions whose terms are made of two factors.

    sum[p] a[i, p] * b[p, j]                                     the product of two matrices
    sum[p] (a[i, p] - b[j, p]) * (a[i, p] - b[j, p])             squared distances of points
    min[p] (a[i, p] + b[p, j])                                   shortest paths of two steps

Each term is a function of two factors.  One depends on the row i and not on the column j, the
other on j and not on i: so an element of either is used for many results, which tiles exploit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from functools import reduce as fold
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.analysis.reads import free_indices, holds_reduce, loads
from kerngen.ir.nodes import Binary, Expr, Unary
from kerngen.ir.types import ValueType
from kerngen.ir.walk import factors_of, map_children
from kerngen.schedule.lowering.addresses import is_contiguous, varies
from kerngen.schedule.lowering.linear_bounds import LinearBound, bound_of
from kerngen.schedule.task import Task

LEFT: Final = "left factor"
RIGHT: Final = "right factor"
"""The names of the local values for the factors in a contraction's term; no user's name has
a space."""


@final
@dataclass(frozen=True, slots=True)
class Contraction:
    """A contraction, such as `sum[p] a[i, p] * b[p, j]`: a reduction of terms of two factors.

    - `kind`, `over`: the kind and the indices of the reduction: "sum", and p
    - `left`, `right`: the factors `a[i, p]` and `b[p, j]`
    - `term`: the term as a function of the local values `LEFT` and `RIGHT`
    - `column`: the last index of the domain, j, on which only `right` depends
    - `row`: an index on which only `left` depends, i, if there is one
    - `row_bounds`, `column_bounds`: the bounds of the terms by the row or the column, as of
      `sum[p when p <= i]`
    """

    kind: ir.ReduceKind
    over: tuple[ir.Index, ...]
    left: ir.Expr
    right: ir.Expr
    term: ir.Expr
    column: ir.Index
    row: ir.Index | None
    row_bounds: tuple[LinearBound, ...] = ()
    column_bounds: tuple[LinearBound, ...] = ()

    @property
    def is_bounded(self) -> bool:
        """Whether a condition leaves terms out, as in the product of a triangle."""
        return bool(self.row_bounds or self.column_bounds)

    @property
    def type(self) -> ValueType:
        """The type of its terms, and of its result."""
        return self.term.type

    @property
    def is_product(self) -> bool:
        """Whether it is a sum of products, so that a factor of 0 adds nothing."""
        return self.kind == "sum" and self.term == _term(self.type)

    @property
    def last(self) -> ir.Index:
        """The last reduction index, along which the factors may be contiguous in memory."""
        return self.over[-1]

    @property
    def right_axis(self) -> ir.Index | None:
        """The index along which the right factor is contiguous: `last`, `column` or None."""
        return memory_axis(self.right, self.last, self.column)


def contraction_of(task: Task) -> Contraction | str:
    """Return the contraction that a stage computes, or the reason why it computes none."""
    reduce = task.reduction
    if reduce is None:
        return "the stage holds no reduction"
    if not task.domain:
        return "its result is a single number"
    return contraction_over(task.domain, reduce)


@lru_cache(maxsize=64)
def contraction_over(
    domain: tuple[ir.Index, ...], reduce: ir.Reduce
) -> Contraction | str:
    """Return the contraction that a reduction is, or the reason why it is none.

    Its column is the last index of the domain.  The result is cached, as all schedules and
    variants of a stage ask for it.
    """
    if reduce.finds_place:
        return "its reduction finds a place"
    if holds_reduce(reduce.body):
        return "its reduction holds another one"
    return (
        _of_product(domain, reduce)
        or _of_any_term(domain, reduce)
        or (
            "it is not a product of two factors, of which only one depends on "
            f"{domain[-1].name}"
        )
    )


def bounded_contraction_of(task: Task) -> Contraction | str:
    """Return a stage's contraction as `contraction_of` does, but also one with bounded terms.

    An example is `sum[p when p <= i] a[i, p] * b[p, j]`.
    """
    found = contraction_of(task)
    if not isinstance(found, str) or task.reduction is None or not task.domain:
        return found
    return _of_some_terms(task.domain, task.reduction) or found


@lru_cache(maxsize=64)
def _of_some_terms(
    domain: tuple[ir.Index, ...], reduce: ir.Reduce
) -> Contraction | str | None:
    """Return the contraction of a sum under bounds, or why its condition is something else.

    None is returned if there is no condition, or no row, or several indices to sum over.
    """
    parted = conditional(reduce)
    if parted.condition is None or reduce.finds_place:
        return None
    found = contraction_over(domain, replace(parted, condition=None))
    if isinstance(found, str) or found.row is None or len(found.over) > 1:
        return found if isinstance(found, str) else None
    # Each part of the condition must bound the terms by the row, or by the column.
    by_row: list[LinearBound] = []
    by_column: list[LinearBound] = []
    for part, holds in all_parts(parted.condition, holds=True):
        if bound := bound_of(part, found.row, found.last, holds=holds):
            by_row.append(bound)
        elif bound := bound_of(part, found.column, found.last, holds=holds):
            by_column.append(bound)
        else:
            return (
                f"its condition does more than bound {found.last.name} by "
                f"{found.row.name} or by {found.column.name}"
            )
    return replace(found, row_bounds=(*by_row,), column_bounds=(*by_column,))


def product_of(task: Task) -> tuple[Contraction, ir.Index]:
    """Return a stage's contraction and its row index; the stage must have both."""
    found = bounded_contraction_of(task)
    assert not isinstance(found, str), found
    assert found.row is not None, "not of two matrices"
    return found, found.row


def sides_of(task: Task) -> tuple[tuple[ir.Index, ...], tuple[ir.Index, ...]]:
    """Return the indices of a product's rows, and those of its columns.

    For matrices, each side has one index.  In a convolution, a side has all indices of the
    result on which only its own factor depends, so that images of any width fill the tiles.
    """
    found, row = product_of(task)
    factors = found.left, found.right
    if len(found.over) == 1 or all(is_plain(factor) for factor in factors):
        return (row,), (found.column,)
    left, right = map(free_indices, factors)
    rows = (index for index in task.domain if index in left - right)
    columns = (index for index in task.domain if index in right - left)
    return (*rows,), (*columns,)


def is_of_two_matrices(task: Task) -> bool:
    """Whether a product is of two matrices, and not of many pairs of them: `c[i, j]`."""
    return len(task.domain) == 2


def is_plain(factor: ir.Expr) -> bool:
    """Whether a factor is one element whose subscripts are bare indices, such as `a[i, p]`."""
    while isinstance(factor, ir.Cast):
        factor = factor.operand
    return isinstance(factor, ir.Load) and all(
        isinstance(subscript, ir.IndexValue) for subscript in factor.subscripts
    )


def memory_axis(factor: ir.Expr, over: ir.Index, own: ir.Index) -> ir.Index | None:
    """Return along which of two indices most reads of a factor are contiguous, or None."""

    # Reads that depend on both indices count first, as of a matrix beside those of vectors:
    # `dy[i, c] / total[0, i]` is contiguous along c.
    def weight(index: ir.Index) -> tuple[int, int]:
        found = [x for x in loads(factor) if is_contiguous(x, index)]
        both = sum(varies(x, over) and varies(x, own) for x in found)
        return both, len(found)

    best = max((over, own), key=weight)
    return best if any(weight(best)) else None


def tile_axis(factor: ir.Expr, over: ir.Index, own: ir.Index) -> ir.Index:
    """Return the index along which a factor is loaded in vectors: its memory axis or `over`."""
    return memory_axis(factor, over, own) or over


# Products


def _of_product(domain: tuple[ir.Index, ...], reduce: ir.Reduce) -> Contraction | None:
    """Split a product in two: the factors that depend on the column, and all others."""
    over, column = reduce.indices, domain[-1]
    factors = list(factors_of(reduce.body))
    right = [factor for factor in factors if column in free_indices(factor)]
    left = [factor for factor in factors if factor not in right]
    if not all(_depend(side, over) for side in (left, right)):
        return None
    # The row is the last index on which the left side alone depends.
    own = [
        index
        for index in domain[:-1]
        if _depend(left, (index,)) and not _depend(right, (index,))
    ]
    row = own[-1] if own else None
    sides = _product(left), _product(right)
    return Contraction(reduce.kind, over, *sides, _term(reduce.type), column, row)


def _term(type_: ValueType) -> ir.Expr:
    return _product((ir.LocalValue(LEFT, type_), ir.LocalValue(RIGHT, type_)))


def _depend(factors: Sequence[ir.Expr], indices: Sequence[ir.Index]) -> bool:
    return any(not free_indices(f).isdisjoint(indices) for f in factors)


def _product(factors: Sequence[ir.Expr]) -> ir.Expr:
    return fold(lambda left, right: ir.Binary("*", left, right, left.type), factors)


# Any other term


def _of_any_term(domain: tuple[ir.Index, ...], reduce: ir.Reduce) -> Contraction | None:
    """Return the contraction for the last index of the domain that can be its row, or None."""
    found = (_with_row(domain, reduce, row) for row in reversed(domain[:-1]))
    return next((contraction for contraction in found if contraction), None)


def _with_row(
    domain: tuple[ir.Index, ...], reduce: ir.Reduce, row: ir.Index
) -> Contraction | None:
    """
    Take the parts that depend on the row, and on the column, out of a term.

    Before:  exp(a[i, p] - b[j, p]) * 2.0, row i, column j
    After:   exp(left - right) * 2.0
    """
    over, column = reduce.indices, domain[-1]
    parts: dict[str, dict[ir.Expr, None]] = {LEFT: {}, RIGHT: {}}

    def visit(expr: ir.Expr) -> ir.Expr:
        # Numbers stay; what depends on both sides is taken apart, but for subscripts; all else
        # is a factor.
        used = free_indices(expr)
        if not used:
            return expr
        whole = isinstance(expr, ir.Load | ir.Part | ir.UniformValue)
        if row in used and column in used and not whole:
            return map_children(expr, visit)
        side = RIGHT if column in used else LEFT
        parts[side][expr] = None
        return ir.LocalValue(side, expr.type)

    term = visit(reduce.body)
    if any(len(found) != 1 for found in parts.values()):
        return None
    # Each side has one factor, which may occur several times, and depends on the terms.
    (left,), (right,) = parts.values()
    sides = left, right
    fits = all(s.type.is_numeric and _depend((s,), over) for s in sides)
    ends = free_indices(left) & {row, column}, free_indices(right) & {row, column}
    if not fits or ends != (frozenset((row,)), frozenset((column,))):
        return None
    return Contraction(reduce.kind, over, left, right, term, column, row)


# Conditions, split into parts: `j <= i and keep[j] != 0` has two, which must both hold.


def all_parts(condition: Expr, *, holds: bool) -> Iterator[tuple[Expr, bool]]:
    """Yield the parts of a condition that is true (`holds`) or false, each with its outcome.

    `a and b` is true where a is true and b is true; `a or b` is false where a is false and b
    is false; `not a` is true where a is false.  So of `a and b` with `holds` the parts are
    (a, True) and (b, True).
    """
    match condition:
        case Unary("not", operand):
            yield from all_parts(operand, holds=not holds)
        case Binary("and", left, right) if holds:
            yield from all_parts(left, holds=True)
            yield from all_parts(right, holds=True)
        case Binary("or", left, right) if not holds:
            yield from all_parts(left, holds=False)
            yield from all_parts(right, holds=False)
        case _:
            yield condition, holds
