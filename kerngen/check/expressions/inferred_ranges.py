"""Ranges of a let's indices that subscript nothing: what they are where the let is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, final

from kerngen.check.expressions.lengths import check_length
from kerngen.check.expressions.places import lengths_of
from kerngen.check.scope import TensorSymbol
from kerngen.check.traverse import Read, bare_places, reads_of
from kerngen.ir.nodes import Extent
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

Found: TypeAlias = "tuple[Extent | None, Span]"
"""A length, None if it is unknown, and the subscript that it was found by."""


def lengths_by_reads(ex: Expressions, name: str) -> Iterator[Found]:
    """
    Yield how long the axis of a let's index is, by each read that subscripts it bare.

    Of `let grid[i, j] = f32(i * j);    y[i, j] = grid[i, j];` it is `y` that knows.
    """
    current = ex.env.current
    let = current.body[current.place]
    assert isinstance(let, ast.LetStatement), "indices of reductions are read in them"
    axis = [binder.name.name for binder in let.binders].index(name)
    if current.reads is None:
        current.reads = reads_of(current.body)
    return _Search(ex, current.reads).of(let, axis)


@final
@dataclass(frozen=True)
class _Search:
    """Follows the reads of lets, from each to the next, and goes to none twice."""

    ex: Expressions
    reads: dict[str, list[Read]]
    seen: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def of(self, let: ast.LetStatement, axis: int) -> Iterator[Found]:
        """Yield the lengths that the bare subscripts of a let's axis range over."""
        if (let.name.name, axis) in self.seen:
            return
        self.seen.add((let.name.name, axis))
        for read in self.reads.get(let.name.name, ()):
            subscript = read.subscripts[axis] if axis < len(read.subscripts) else None
            if isinstance(subscript, ast.Name):
                yield from self._index(subscript, read)

    def _index(self, subscript: ast.Name, read: Read) -> Iterator[Found]:
        """Yield the length that an index ranges over in a statement."""
        name, statement = subscript.name, read.statement
        for reduction in reversed(read.reductions):
            for binder in reduction.binders:
                if binder.name.name == name:
                    yield from self._binder(binder, reduction.terms, subscript.span)
                    return
        match statement:
            case ast.LetStatement(binders=binders):
                for axis, binder in enumerate(binders):
                    if binder.name.name == name:
                        yield from self._of_let(statement, axis, subscript.span)
            case ast.Assignment(name=target, subscripts=left):
                for axis, index in enumerate(left):
                    if isinstance(index, ast.Name) and index.name == name:
                        yield self._of_tensor(target.name, axis), subscript.span
            case ast.HostStatement():
                return

    def _of_let(self, let: ast.LetStatement, axis: int, span: Span) -> Iterator[Found]:
        """Yield the range of a later let's index; what it subscripts may not tell."""
        found = [*self._binder(let.binders[axis], (let.value,), span)]
        yield from found or self.of(let, axis)

    def _binder(
        self, binder: ast.Binder, terms: tuple[ast.Expr, ...], span: Span
    ) -> Iterator[Found]:
        """Yield the range of an index by its bound, or by what it subscripts first."""
        name, ex = binder.name.name, self.ex
        if binder.bound is not None:
            trial = replace(ex, env=replace(ex.env, faults=Faults()))
            length = check_length(trial, binder.bound, "", f"{name}_range")
            yield length, binder.bound.span
            return
        for base, axis, subscript in bare_places(*terms):
            if subscript.name != name:
                continue
            named = base.name if isinstance(base, ast.Name) else ""
            if isinstance(ex.scope.get(named), TensorSymbol):
                yield self._of_tensor(named, axis), span
            elif named not in self.reads:
                lengths = lengths_of(ex.scope, base)
                yield lengths[axis] if axis < len(lengths) else None, span
            return

    def _of_tensor(self, name: str, axis: int) -> Extent | None:
        symbol = self.ex.scope.get(name)
        extents = symbol.tensor.extents if isinstance(symbol, TensorSymbol) else ()
        return extents[axis] if axis < len(extents) else None
