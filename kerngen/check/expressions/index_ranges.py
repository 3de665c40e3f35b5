"""The ranges of indices that a `let` or a reduction introduces."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.lengths import check_length
from kerngen.check.scope import (
    IndexSymbol,
    Poison,
    Scope,
    TensorSymbol,
    is_dim,
    is_whole_tensor,
    memory_of,
)
from kerngen.check.traverse import (
    Read,
    bare_places,
    bare_subscripts,
    names_in,
    reads_of,
    used_in_subscripts,
    walk_syntax,
)
from kerngen.ir.memory import FixedArray, Leaf
from kerngen.ir.nodes import Extent, Index
from kerngen.ir.operators import part_type
from kerngen.source.text import Span
from kerngen.syntax import ast


@contextmanager
def bind_indices(
    ex: Expressions,
    binders: tuple[ast.Binder, ...],
    terms: Terms,
    kind: ast.ReduceKind | None = None,
) -> Generator[tuple[Index, ...] | None]:
    """Declare the indices of a let or a reduction; yield them for the check of its body.

    The range of an index is the one that is given, or the length of the first axis that
    it subscripts.  An index of a let that subscripts nothing has the range on which all
    reads of the let agree.  `kind` is None for a let.

    Yields None if a range is unknown.  All unknown ranges are one fault.  If the body misuses
    a tensor or subscripts with such an index, its own fault explains more: then the ranges
    are reported after the body, and only if the body had no fault.
    """
    # Declare each index: with its range, as poison after a fault, or as one without a range.
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
            # A name that is taken is reported as such below, by `declare_index`.
            unranged.append(binder.name)
        declare_index(ex, binder.name, symbol or Poison("an index", binder.name.span))
    is_doubtful = any(used_in_subscripts(name.name, *terms) for name in unranged)
    is_doubtful |= _misreads_a_tensor(ex, terms)
    if unranged and not is_doubtful:
        _report_no_range(ex, unranged, terms, kind)
    yield tuple(known) if len(known) == len(binders) else None
    if unranged and is_doubtful and len(ex.env.faults) == faults_before:
        _report_no_range(ex, unranged, terms, kind)


def declare_index(
    ex: Expressions, name: ast.Named, symbol: IndexSymbol | Poison
) -> None:
    """Declare an index; if its name is taken, report that and poison the name."""
    ex.env.indices.setdefault(name.name, name.span)
    ex.env.model.define(name.span, symbol)
    before = ex.scope.get(name.name)
    told = isinstance(before, Poison) and before.kind == "an index"
    if told or not ex.scope.declare(name, symbol):
        ex.scope.put(name.name, Poison("an index", name.span))
    if is_dim(before):
        ex.scope.poison_dims()


def introduce(ex: Expressions, name: ast.Named, extent: Extent) -> Index:
    """Declare an index on the left of `=`, which ranges over a whole axis."""
    index = Index(name.name, extent)
    declare_index(ex, name, IndexSymbol(index, name.span, name.span))
    return index


def _ranged(
    ex: Expressions, binder: ast.Binder, terms: Terms, instead: str
) -> IndexSymbol | Poison | None:
    """Return an index with its range; None if it has none."""
    name = binder.name
    if binder.bound is None:
        return ranged_by_reads(ex, name, *terms)
    place, long_name = f"The range of '{name.name}'", f"{name.name}_range"
    extent = check_length(ex, binder.bound, place, long_name, instead=instead)
    if extent is None:
        return Poison("an index", name.span)
    index, origin = Index(name.name, extent), binder.bound.span
    return IndexSymbol(index, name.span, origin, is_given=True)


def ranged_by_reads(
    ex: Expressions, name: ast.Named, *terms: ast.Expr
) -> IndexSymbol | Poison | None:
    """Return an index that ranges over the first axis it subscripts in the terms."""
    for base, axis, subscript in bare_places(*terms):
        if subscript.name == name.name and not _is_defined_here(ex, base, name):
            extent = _extent_of(ex.scope, base, axis)
            if extent is None:
                return Poison("an index", name.span)
            return IndexSymbol(Index(name.name, extent), name.span, subscript.span)
    return None


def _is_defined_here(ex: Expressions, base: ast.Expr, index: ast.Named) -> bool:
    """Whether a subscripted name is the index itself, or the let that is being defined.

    The let's axes have their lengths from its indices, so they can't give an index its range.
    """
    if not isinstance(base, ast.Name):
        return False
    current = ex.env.current
    is_target = base.name == current.target and current.in_let
    is_new = is_target and ex.scope.get(current.target) is None
    return is_new or base.name == index.name


def _by_reads(ex: Expressions, name: ast.Identifier) -> IndexSymbol | None:
    """Return a let's index with the range that all its reads agree on, if they do."""
    found = [*lengths_by_reads(ex, name.name)]
    length, origin = found[0] if found else (None, name.span)
    if length is None or any(other != length for other, _ in found):
        return None
    return IndexSymbol(Index(name.name, length), name.span, origin)


def _extent_of(scope: Scope, base: ast.Expr, axis: int) -> Extent | None:
    """Return the length of an axis of a tensor, fixed array, vector or matrix, or None."""
    symbol, memory = scope.of(base), memory_of(scope, base)
    extents: tuple[Extent, ...] = ()
    if is_whole_tensor(symbol):
        extents = symbol.tensor.extents
    elif isinstance(memory, FixedArray):
        extents = memory.lengths
    elif isinstance(memory, Leaf) and (parts := part_type(memory.type)):
        extents = (parts[0],)
    return extents[axis] if axis < len(extents) else None


def _misreads_a_tensor(ex: Expressions, terms: Terms) -> bool:
    """Whether a tensor is read like a function, `x(i)`, or without all its subscripts.

    That is reported elsewhere.
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


# Hints for ranges


def _report_no_range(
    ex: Expressions,
    names: list[ast.Identifier],
    terms: Terms,
    kind: ast.ReduceKind | None,
) -> None:
    fault = diag.RangeNotFound(
        span=names[0].span,
        names=tuple(name.name for name in names),
        lengths=tuple(probable_length(ex, name.name, terms, kind) for name in names),
    )
    ex.env.faults.add(fault)


Found: TypeAlias = "tuple[Extent | None, Span]"
"""A length, None if it is unknown, and the subscript that it was found by."""


def lengths_by_reads(ex: Expressions, name: str) -> Iterator[Found]:
    """Yield the axis lengths of a let's index that later reads of the let imply.

    In `let grid[i, j] = f32(i * j);    y[i, j] = grid[i, j];` the ranges of the let's i
    and j follow from the read in the second statement.
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
    """A search for the range of a let's index, along reads of lets, each of them once."""

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
        name, statement, scope = subscript.name, read.statement, self.ex.scope
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
            case ast.Assignment(target=target):
                for base, axis, index in bare_places(target):
                    if index.name == name:
                        yield _extent_of(scope, base, axis), subscript.span
            case ast.HostStatement():
                return

    def _of_let(self, let: ast.LetStatement, axis: int, span: Span) -> Iterator[Found]:
        """Yield the range of a later let's index; its own subscripts may lack it."""
        found = [*self._binder(let.binders[axis], (let.value,), span)]
        yield from found or self.of(let, axis)

    def _binder(
        self, binder: ast.Binder, terms: tuple[ast.Expr, ...], span: Span
    ) -> Iterator[Found]:
        """Yield the range of an index by its bound, or by the first axis that it subscripts.

        Lets whose ranges are not known yet are passed over.
        """
        name, ex = binder.name.name, self.ex
        if binder.bound is not None:
            length = check_length(ex.trial(), binder.bound, "", f"{name}_range")
            yield length, binder.bound.span
            return
        for base, axis, subscript in bare_places(*terms):
            if subscript.name != name:
                continue
            named = base.name if isinstance(base, ast.Name) else ""
            if named not in self.reads or is_whole_tensor(ex.scope.get(named)):
                yield _extent_of(ex.scope, base, axis), span
                return
            # Of a let without a range yet, as g of `sum[t] g[t] * x[t]`, go on to x.


Terms: TypeAlias = tuple[ast.Expr, ...]
"""Where an index is in scope: the value, behind the condition of a reduction if any."""


def as_condition(
    ex: Expressions, binder: ast.Binder, terms: Terms, kind: ast.ReduceKind
) -> str:
    """Return the reduction with a bound of its index written as a condition.

    For `sum[j < i] x[j]` that is `sum[j when j < i] x[j]`.
    """
    if binder.bound is None:
        return ""
    name, *conditions = binder.name.name, *map(_joined, terms[:-1])
    over = name
    if all(subscript.name != name for _, _, subscript in bare_subscripts(*terms)):
        lengths = (
            ex.env.length_text(symbol.index.extent)
            for symbol in map(ex.scope.of, names_in(binder.bound))
            if isinstance(symbol, IndexSymbol)
        )
        over = f"{name} < {next(lengths, '...')}"
    bound, value = (node.span.one_line() for node in (binder.bound, terms[-1]))
    condition = " and ".join((f"{name} < {bound}", *conditions))
    return (
        "A range is the same for all elements; leave terms out by a condition: "
        f"'{kind}[{over} when {condition}] {value}'."
    )


def _joined(condition: ast.Expr) -> str:
    """Return the text of a condition as an operand of `and`."""
    text = condition.span.one_line()
    is_choice = isinstance(condition, ast.Binary) and condition.op == "or"
    return f"({text})" if is_choice else text


def probable_length(
    ex: Expressions, name: str, terms: Terms, kind: ast.ReduceKind | None
) -> str:
    """Return the probable length for an index without a range, or "..." if none is."""
    meant = next(_lengths_near(ex, name, terms, kind), None)
    if meant is None and kind is None:
        found = (length for length, _ in lengths_by_reads(ex, name))
        meant = next((length for length in found if length is not None), None)
    dims = {dim for tensor in ex.env.tensors for dim in tensor.extents if dim}
    if meant is None and len(dims) <= 1:
        meant = next(iter(dims), 3)
    return "..." if meant is None else ex.env.length_text(meant)


def _lengths_near(
    ex: Expressions, name: str, terms: Terms, kind: ast.ReduceKind | None
) -> Iterator[str | int]:
    """Yield the lengths that an index may be meant to have, by the axes that it subscripts.

    An index of a reduction beside another one runs through a window: for u in `2 * i + u`,
    the length is probably the step, 2.
    """
    for tensor, axis, subscript in _subscripts(terms):
        symbol = ex.scope.get(tensor)
        names = [name.name for name in names_in(subscript)]
        if name not in names or not isinstance(symbol, TensorSymbol):
            continue
        if axis >= symbol.tensor.rank:
            continue
        kinds = {n: getattr(ex.scope.get(n), "kind", "an index") for n in names}
        others = [n for n in names if n != name and kinds[n] == "an index"]
        is_window = kind is not None and others
        yield _step(subscript) if is_window else symbol.tensor.extents[axis]


def _subscripts(terms: Terms) -> Iterator[tuple[str, int, ast.Expr]]:
    for part in walk_syntax(*terms):
        if isinstance(part, ast.Subscript) and isinstance(part.base, ast.Name):
            for axis, subscript in enumerate(part.subscripts):
                yield part.base.name, axis, subscript


def _step(subscript: ast.Expr) -> int:
    for part in walk_syntax(subscript):
        if isinstance(part, ast.Binary) and part.op == "*":
            for side in (part.left, part.right):
                if isinstance(side, ast.Number) and isinstance(side.value, int):
                    return side.value
    return 3
