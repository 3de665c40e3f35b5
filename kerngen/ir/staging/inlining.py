"""Inlining of lets, where it is cheap and keeps the meaning."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import holds_reduce, is_at, loads, tensors_read
from kerngen.ir.builtins.evaluate import NotFiniteError, constant_value
from kerngen.ir.fold import fold
from kerngen.ir.walk import children, map_children, walk

LONGEST: Final = 200
"""The most nodes of a value that is substituted: text must not grow without bound."""

MOST_NEIGHBOURS: Final = 16
"""The most lets that an inlined let needs as neighbours: all are moved to each of its uses."""


def inline_lets(body: Sequence[ir.Statement]) -> tuple[ir.Statement, ...]:
    """Return statements without unused lets, and with lets moved to their uses where allowed.

    Before:  let d[i, j] = x[i, j] - mean[i];    v[i] = sum[j] d[i, j] * d[i, j];
    After:   v[i] = sum[j] (x[i, j] - mean[i]) * (x[i, j] - mean[i]);

    Where a statement without a reduction reads the let at its own element, the let becomes
    its neighbour, and later a local of its stage; elsewhere its value is substituted.  A let
    stays where it is if

    - it reads itself, or has a reduction, or needs too many other lets;
    - a tensor that it reads is written before its last use;
    - it is read at a clamped subscript, as the clamp is to the let's own axis;
    - a substitution would repeat its work, or become too long;
    - it is a constant without a finite value where it is used.
    """
    inliner = _Inliner(tuple(body))
    return tuple(part for n, _ in enumerate(body) for part in inliner.visit(n))


@final
@dataclass(frozen=True)
class _Inlined:
    """A let that is moved to its uses.

    - `chain`: the lets that it needs as neighbours, and itself last, over its own indices
    - `value`: the expression to substitute; None if that is too long
    - `reads`: the tensors that it reads, by way of other lets too
    """

    let: ir.Statement
    chain: dict[ir.Tensor, ir.Statement]
    value: ir.Expr | None
    reads: frozenset[ir.Tensor]


@final
@dataclass(frozen=True)
class _Inliner:
    """Visits the statements of a kernel in order; `inlined` are the lets moved so far."""

    body: tuple[ir.Statement, ...]
    inlined: dict[ir.Tensor, _Inlined] = field(
        default_factory=dict[ir.Tensor, _Inlined]
    )

    def visit(self, number: int) -> list[ir.Statement]:
        """Return the statements that replace one: none for a let that is moved or unused."""
        statement = self.body[number]
        if statement.target.role is ir.Role.LET:
            last_use = self._last_uses[number]
            if last_use is None:
                return []
            let = self._prepared(statement)
            if self._may_inline(let, number, last_use):
                self.inlined[statement.target] = let
                return []
        return list(self._with_lets(statement).values())

    @cached_property
    def _uses(self) -> dict[ir.Tensor, list[int]]:
        """The numbers of the statements that read each tensor, in order."""
        uses: dict[ir.Tensor, list[int]] = {}
        for number, statement in enumerate(self.body):
            for tensor in set(tensors_read(statement.value)):
                uses.setdefault(tensor, []).append(number)
        return uses

    @cached_property
    def _last_uses(self) -> dict[int, int | None]:
        """For each statement, the last one that needs its value, by way of other lets too."""
        last: dict[int, int | None] = {}
        reached: dict[ir.Tensor, int] = {}
        # Backwards, as a let that moves to its last use takes its own reads along.
        for number in reversed(range(len(self.body))):
            statement = self.body[number]
            last[number] = end = reached.get(statement.target)
            if statement.target.role is not ir.Role.LET or end is not None:
                for tensor in set(tensors_read(statement.value)):
                    reached[tensor] = max(end or number, reached.get(tensor, number))
        return last

    @cached_property
    def _writes(self) -> dict[ir.Tensor, list[int]]:
        """The numbers of the statements that write each tensor, in order."""
        writes: dict[ir.Tensor, list[int]] = {}
        for number, statement in enumerate(self.body):
            writes.setdefault(statement.target, []).append(number)
        return writes

    def _written(self, tensor: ir.Tensor, first: int, last: int) -> bool:
        """Whether a statement between two others writes a tensor."""
        writes = self._writes.get(tensor, [])
        after = bisect_right(writes, first)
        return after < len(writes) and writes[after] < last

    def _later_uses(self, number: int) -> list[int]:
        uses = self._uses.get(self.body[number].target, [])
        return uses[bisect_right(uses, number) :]

    def _prepared(self, let: ir.Statement) -> _Inlined:
        """Return a let with its neighbours, its whole value and what it reads."""
        # What the let reads through other inlined lets counts, too.
        read = set(tensors_read(let.value))
        through = [self.inlined[tensor] for tensor in read if tensor in self.inlined]
        return _Inlined(
            let,
            chain=self._with_lets(let),
            value=self._whole(let.value),
            reads=frozenset(read).union(*(other.reads for other in through)),
        )

    def _whole(self, value: ir.Expr) -> ir.Expr | None:
        """Return a value with all lets substituted, or None if that is too long.

        The length is computed before anything is substituted.
        """
        length = sum(1 for _ in walk(value))
        for load in loads(value):
            if load.tensor in self.inlined:
                inner = self.inlined[load.tensor].value
                if inner is None:
                    return None
                length += sum(1 for _ in walk(inner))
        return self._substituted(value) if length <= LONGEST else None

    def _substituted(self, value: ir.Expr) -> ir.Expr:
        if isinstance(value, ir.Load) and value.tensor in self.inlined:
            inlined = self.inlined[value.tensor]
            if inlined.value is not None:
                return _renamed(inlined.value, _renaming(inlined.let, value))
        return map_children(value, self._substituted)

    def _may_inline(self, inlined: _Inlined, number: int, last_use: int) -> bool:
        uses = [self.body[use] for use in self._later_uses(number)]
        return (
            inlined.let.along is None
            and len(inlined.chain) <= MOST_NEIGHBOURS
            and not holds_reduce(inlined.let.value)
            and not any(self._written(t, number, last_use) for t in inlined.reads)
            and all(_admits(inlined, use) for use in uses)
            and all(self._stays_finite(inlined, use) for use in uses)
        )

    def _stays_finite(self, inlined: _Inlined, use: ir.Statement) -> bool:
        """Whether constant expressions in a use have finite values, if the let is a constant.

        WGSL evaluates such an expression when it compiles, and refuses infinity and NaN.
        Without inlining, it is evaluated at run time.
        """
        value = inlined.value
        if value is None or constant_value(value) is None:
            return True

        def visit(expr: ir.Expr) -> ir.Expr:
            if isinstance(expr, ir.Load) and expr.tensor == inlined.let.target:
                return value
            return map_children(expr, visit)

        try:
            refold(visit(self._substituted(use.value)))
        except NotFiniteError:
            return False
        return True

    def _with_lets(self, statement: ir.Statement) -> dict[ir.Tensor, ir.Statement]:
        """Return a statement, last, and the lets that it needs as neighbours before it."""
        needed: dict[ir.Tensor, ir.Statement] = {}
        # A reduction's body reads no local, so that lets are substituted there.
        neighbours = not holds_reduce(statement.value)

        def visit(expr: ir.Expr) -> ir.Expr:
            inlined = (
                self.inlined.get(expr.tensor) if isinstance(expr, ir.Load) else None
            )
            if inlined is None or not isinstance(expr, ir.Load):
                return map_children(expr, visit)
            # At the own element: a neighbour, by the statement's indices.  Else: the value.
            renaming = _renaming(inlined.let, expr)
            if neighbours and is_at(expr, statement.indices):
                for tensor, part in inlined.chain.items():
                    if tensor not in needed:
                        needed[tensor] = _moved(part, statement.indices, renaming)
                return expr
            assert inlined.value is not None, "checked by _admits"
            return _renamed(inlined.value, renaming)

        value = refold(visit(statement.value))
        return {**needed, statement.target: replace(statement, value=value)}


def refold(expr: ir.Expr) -> ir.Expr:
    """Return an expression with its constants folded again, after a substitution in it."""
    return fold(map_children(expr, refold))


def _admits(inlined: _Inlined, use: ir.Statement) -> bool:
    """Whether every read of the let in `use` may become the let's value.

    A value that is computed may be substituted only where all indices around the read are
    its own, so that it is not computed again for others; a single read, or a value without
    reads, may be substituted anywhere.
    """
    let = inlined.let
    trivial = isinstance(let.value, ir.Load) or not any(loads(let.value))
    neighbours = not holds_reduce(use.value)

    def admits(expr: ir.Expr, around: frozenset[ir.Index]) -> bool:
        if isinstance(expr, ir.Reduce):
            inner = around | frozenset(expr.indices)
            return all(admits(child, inner) for child in children(expr))
        if isinstance(expr, ir.Load) and expr.tensor == let.target:
            if neighbours and is_at(expr, use.indices):
                return True
            indices = _direct_indices(expr)
            fits = indices is not None and inlined.value is not None
            return fits and (trivial or frozenset(indices or ()) == around)
        return all(admits(child, around) for child in children(expr))

    return admits(use.value, frozenset(use.indices))


def _direct_indices(load: ir.Load) -> tuple[ir.Index, ...] | None:
    """Return the indices of a read whose subscripts are all bare indices, else None."""
    indices = tuple(s.index for s in load.subscripts if isinstance(s, ir.IndexValue))
    return indices if len(indices) == len(load.subscripts) else None


def _renaming(let: ir.Statement, load: ir.Load) -> dict[ir.Index, ir.Index]:
    """Return the indices of a read's subscripts by the let's own indices."""
    indices = _direct_indices(load)
    assert indices is not None, "a gather of an inlined let"
    return dict(zip(let.indices, indices, strict=True))


def _renamed(value: ir.Expr, renaming: dict[ir.Index, ir.Index]) -> ir.Expr:
    if isinstance(value, ir.IndexValue):
        return ir.IndexValue(renaming[value.index])
    return map_children(value, lambda child: _renamed(child, renaming))


def _moved(
    part: ir.Statement,
    indices: tuple[ir.Index, ...],
    renaming: dict[ir.Index, ir.Index],
) -> ir.Statement:
    if part.indices == indices and all(old == new for old, new in renaming.items()):
        return part
    return replace(part, indices=indices, value=_renamed(part.value, renaming))
