"""The ranges of the indices that a `let` or a reduction introduces."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from kerngen.check.expressions.inferred_ranges import lengths_by_reads
from kerngen.check.expressions.lengths import check_length
from kerngen.check.expressions.places import lengths_of
from kerngen.check.faults.indices import RangeNotFound
from kerngen.check.hints.index_ranges import as_condition, meant_length
from kerngen.check.scope import IndexSymbol, Poison, TensorSymbol, is_dim
from kerngen.check.traverse import (
    bare_places,
    used_in_subscripts,
    walk_syntax,
)
from kerngen.ir.nodes import Extent, Index
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

Terms: TypeAlias = tuple[ast.Expr, ...]
"""Where an index is in scope: the value, behind the condition of a reduction if any."""


@contextmanager
def bind_indices(
    ex: Expressions,
    binders: tuple[ast.Binder, ...],
    terms: Terms,
    kind: ast.ReduceKind | None = None,
) -> Generator[tuple[Index, ...] | None]:
    """Introduce indices over given ranges, or the axes that they subscript in `terms`.

    Those of a let that subscript nothing have the range that all its reads agree on.

    `kind` is that of the reduction, if it is one that introduces them.  Yields None
    where a range is unknown.  That is one fault for all of them; where they seem to
    subscript something, but in a faulty way, it is told after the body, if that wasn't.
    """
    known: list[Index] = []
    unranged: list[ast.Identifier] = []
    faults_before = len(ex.env.faults)
    for binder in binders:
        instead = as_condition(ex, binder, terms, kind) if kind else ""
        symbol = _ranged(ex, binder, terms, instead)
        if symbol is None and kind is None:
            symbol = _by_reads(ex, binder.name)
        if isinstance(symbol, IndexSymbol):
            known.append(symbol.index)
        elif symbol is None and ex.scope.get(binder.name.name) is None:
            # A name that is taken is a fault already.
            unranged.append(binder.name)
        introduce(ex, binder.name, symbol or Poison("an index", binder.name.span))
    is_doubtful = any(used_in_subscripts(name.name, *terms) for name in unranged)
    is_doubtful |= _misreads_a_tensor(ex, terms)
    if unranged and not is_doubtful:
        _report_no_range(ex, unranged, terms, kind)
    yield tuple(known) if len(known) == len(binders) else None
    if unranged and is_doubtful and len(ex.env.faults) == faults_before:
        _report_no_range(ex, unranged, terms, kind)


def introduce(
    ex: Expressions, name: ast.Identifier, symbol: IndexSymbol | Poison
) -> None:
    """Declare an index; where its name is taken, its uses are not looked at."""
    ex.env.indices.setdefault(name.name, name.span)
    ex.env.model.define(name.span, symbol)
    before = ex.scope.get(name.name)
    told = isinstance(before, Poison) and before.kind == "an index"
    if told or not ex.scope.declare(name, symbol):
        ex.scope.put(name.name, Poison("an index", name.span))
    if is_dim(before):
        ex.scope.poison_dims()


def ranged_by_reads(
    ex: Expressions, name: ast.Identifier, value: ast.Expr
) -> IndexSymbol | Poison | None:
    """Return an index with the range of the first axis that it subscripts in a value."""
    return _ranged(ex, ast.Binder(name, None), (value,), "")


def _ranged(
    ex: Expressions, binder: ast.Binder, terms: Terms, instead: str
) -> IndexSymbol | Poison | None:
    """Return an index with its range; None if it has none."""
    name = binder.name
    if binder.bound is not None:
        place, long_name = f"The range of '{name.name}'", f"{name.name}_range"
        extent = check_length(ex, binder.bound, place, long_name, instead=instead)
        if extent is None:
            return Poison("an index", name.span)
        index, origin = Index(name.name, extent), binder.bound.span
        return IndexSymbol(index, name.span, origin, is_given=True)
    for base, axis, subscript in bare_places(*terms):
        if subscript.name == name.name and not _is_defined_here(ex, base):
            extents = _extents_of(ex, base)
            if axis < len(extents):
                index = Index(name.name, extents[axis])
                return IndexSymbol(index, name.span, subscript.span)
            return Poison("an index", name.span)
    return None


def _is_defined_here(ex: Expressions, base: ast.Expr) -> bool:
    """Whether this is the let at hand, whose axes its indices are yet to give."""
    current = ex.env.current
    is_target = isinstance(base, ast.Name) and base.name == current.target
    return is_target and current.in_let and ex.scope.get(current.target) is None


def _by_reads(ex: Expressions, name: ast.Identifier) -> IndexSymbol | None:
    """Return a let's index with the range that all its reads agree on, if they do."""
    found = [*lengths_by_reads(ex, name.name)]
    length, origin = found[0] if found else (None, name.span)
    if length is None or any(other != length for other, _ in found):
        return None
    return IndexSymbol(Index(name.name, length), name.span, origin)


def _extents_of(ex: Expressions, base: ast.Expr) -> tuple[Extent, ...]:
    """Return the lengths of what is subscripted: a tensor's axes, or an array's."""
    symbol = ex.scope.get(base.name) if isinstance(base, ast.Name) else None
    if isinstance(symbol, TensorSymbol) and symbol.tensor.rank > 0:
        return symbol.tensor.extents
    return lengths_of(ex.scope, base)


def _misreads_a_tensor(ex: Expressions, terms: Terms) -> bool:
    """Whether a tensor is read like a function, `x(i)`, or without all its subscripts.

    That is told by itself.
    """
    subscripted: set[Span] = set()
    for part in walk_syntax(*terms):
        match part:
            case ast.Call(function=name):
                wrong, count = True, 0
            case ast.Subscript(base=ast.Name() as name):
                subscripted.add(name.span)
                wrong, count = False, len(part.subscripts)
            case ast.Name() as name if name.span not in subscripted:
                wrong, count = False, 0
            case _:
                continue
        symbol = ex.scope.get(name.name)
        if isinstance(symbol, TensorSymbol) and (wrong or count < symbol.tensor.rank):
            return True
    return False


# What to write instead


def _report_no_range(
    ex: Expressions,
    names: list[ast.Identifier],
    terms: Terms,
    kind: ast.ReduceKind | None,
) -> None:
    fault = RangeNotFound(
        span=names[0].span,
        names=tuple(name.name for name in names),
        lengths=tuple(meant_length(ex, name.name, terms, kind) for name in names),
    )
    ex.env.faults.add(fault)
