"""Inline lets: compute a let's value where it is used, where that is cheap and true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from kerngen.ir.evaluate import NotFiniteError, constant_value
from kerngen.ir.fold import fold
from kerngen.ir.nodes import (
    Expr,
    Index,
    IndexValue,
    Load,
    Reduce,
    Role,
    Statement,
    Tensor,
)
from kerngen.ir.reads import holds_reduce, is_at, loads, tensors_read
from kerngen.ir.walk import children, map_children


def inline_lets(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """
    Drop unused lets, and move each let that may be inlined to its uses.

    A use at the statement's own element gets the let as a neighbour, which becomes a
    local of its stage; elsewhere the value is substituted.  A let stays where it is
    when it holds a reduction, when a tensor it reads is written before its last use,
    when a gather subscripts it (the clamp is to the let's own axis), when a
    substitution would repeat its work, or when it is a constant that has no finite
    value where it is used.

    Before:  let d[i, j] = x[i, j] - mean[i];    v[i] = sum[j] d[i, j] * d[i, j];
    After:   v[i] = sum[j] (x[i, j] - mean[i]) * (x[i, j] - mean[i]);
    """
    inliner = _Inliner(tuple(body))
    return tuple(part for n, _ in enumerate(body) for part in inliner.visit(n))


@final
@dataclass(frozen=True)
class _Inliner:
    """Walks the statements of one kernel in order."""

    body: tuple[Statement, ...]
    inlined: dict[Tensor, Statement] = field(default_factory=dict)

    def visit(self, number: int) -> list[Statement]:
        """Return what stands in the place of one statement."""
        statement = self.body[number]
        if statement.target.role is Role.LET:
            last_use = self._last_use(number)
            if last_use is None:
                return []
            if self._may_inline(number, last_use):
                self.inlined[statement.target] = statement
                return []
        return list(self._with_lets(statement).values())

    def _uses(self, number: int) -> list[int]:
        target = self.body[number].target
        later = range(number + 1, len(self.body))
        return [n for n in later if target in set(tensors_read(self.body[n].value))]

    def _last_use(self, number: int) -> int | None:
        """Return the last statement that needs a let, by way of other lets too."""
        last: int | None = None
        for use in self._uses(number):
            is_let = self.body[use].target.role is Role.LET
            reached = self._last_use(use) if is_let else use
            if reached is not None:
                last = max(reached, use, last or 0)
        return last

    def _may_inline(self, number: int, last_use: int) -> bool:
        let = self.body[number]
        read = self._reads(let.value)
        between = self.body[number + 1 : last_use]
        return (
            not holds_reduce(let.value)
            and not any(statement.target in read for statement in between)
            and all(self._admits(let, self.body[use]) for use in self._uses(number))
            and all(self._stays_finite(let, self.body[u]) for u in self._uses(number))
        )

    def _reads(self, value: Expr) -> set[Tensor]:
        """Return what a value reads, seen through the lets inlined so far."""
        read = set(tensors_read(value))
        through = [self.inlined[tensor].value for tensor in read & self.inlined.keys()]
        return read.union(*map(self._reads, through))

    def _admits(self, let: Statement, use: Statement) -> bool:
        """Whether every read of the let in `use` may become the let's value."""
        trivial = isinstance(let.value, Load) or not any(loads(let.value))

        def admits(expr: Expr, around: frozenset[Index]) -> bool:
            if isinstance(expr, Reduce):
                return admits(expr.body, around | frozenset(expr.indices))
            if isinstance(expr, Load) and expr.tensor == let.target:
                indices = _direct_indices(expr)
                return indices is not None and (trivial or frozenset(indices) == around)
            return all(admits(child, around) for child in children(expr))

        return admits(use.value, frozenset(use.indices))

    def _stays_finite(self, let: Statement, use: Statement) -> bool:
        """Whether a constant can stand in `use`, where WGSL computes with it at once.

        What has no finite value there is left to the run, as the user wrote it.
        """
        value = self._expanded(let.value)
        if constant_value(value) is None:
            return True

        def visit(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr.tensor == let.target:
                return value
            return map_children(expr, visit)

        try:
            refold(self._expanded(visit(use.value)))
        except NotFiniteError:
            return False
        return True

    def _expanded(self, value: Expr) -> Expr:
        """Return a value with the lets inlined so far in their places."""
        if isinstance(value, Load) and value.tensor in self.inlined:
            return self._expanded(_moved(self.inlined[value.tensor], value).value)
        return map_children(value, self._expanded)

    def _with_lets(self, statement: Statement) -> dict[Tensor, Statement]:
        """Return a statement behind the lets that it needs as neighbours."""
        needed: dict[Tensor, Statement] = {}
        neighbours = not holds_reduce(statement.value)

        def visit(expr: Expr) -> Expr:
            let = self.inlined.get(expr.tensor) if isinstance(expr, Load) else None
            if let is None or not isinstance(expr, Load):
                return map_children(expr, visit)
            moved = _moved(let, expr)
            if neighbours and is_at(expr, statement.indices):
                needed.update(self._with_lets(moved))
                return expr
            return visit(moved.value)

        value = refold(visit(statement.value))
        return {**needed, statement.target: replace(statement, value=value)}


def refold(expr: Expr) -> Expr:
    """Fold the constants that a substitution brought together."""
    return fold(map_children(expr, refold))


def _direct_indices(load: Load) -> tuple[Index, ...] | None:
    """Return the indices of a read by bare indices only, else None."""
    indices = tuple(s.index for s in load.subscripts if isinstance(s, IndexValue))
    return indices if len(indices) == len(load.subscripts) else None


def _moved(let: Statement, load: Load) -> Statement:
    """Rename the let's indices to those that the read subscripts it by."""
    indices = _direct_indices(load)
    if indices is None:
        message = f"a gather subscripts the inlined let '{let.target.name}'"
        raise AssertionError(message)
    renamed = dict(zip(let.indices, indices, strict=True))

    def rename(expr: Expr) -> Expr:
        if isinstance(expr, IndexValue):
            return IndexValue(renamed[expr.index])
        return map_children(expr, rename)

    return replace(let, indices=indices, value=rename(let.value))
