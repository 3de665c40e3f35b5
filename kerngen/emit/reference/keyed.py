"""Keyed and prefix reductions, printed as calls of `kerngen.runtime.reference`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

from kerngen.emit.python_code import Code, call, tuple_text
from kerngen.emit.reference.axes import align, find_carrier
from kerngen.emit.reference.empty import empty_array, limit_of, unless_empty
from kerngen.emit.reference.runs import Frame
from kerngen.emit.reference.scope import ExpressionPrinter
from kerngen.ir.analysis.conditions import unconditional
from kerngen.ir.analysis.ordering import Order, order_of
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Expr, Index, IndexValue, Reduce, ReduceKind
from kerngen.ir.staging.keyed import (
    Key,
    Keyed,
    Prefix,
    Ragged,
    keyed,
    keyed_place,
    prefix_of,
    ragged,
)
from kerngen.ir.types import Scalar

# NumPy's ufuncs of the reductions, and the neutral values of those that have no limit.
_JOINS: dict[ReduceKind, str] = {
    "sum": "np.add",
    "prod": "np.multiply",
    "max": "np.maximum",
    "min": "np.minimum",
}
_OF_NOTHING: dict[ReduceKind, str] = {"sum": "0", "prod": "1"}


def print_keyed(printer: ExpressionPrinter, expr: Reduce, frame: Frame) -> Code | None:
    """Return the code of a keyed, prefix or ragged reduction, aligned with the frame.

    None for other reductions, and where the terms are more than the elements of any tensor
    that is read: then loops need less memory.
    """
    if expr.condition is None or not isinstance(expr.type, Scalar):
        return None
    # In this order: counts of lesser elements, keys, prefixes, ranges that are read.
    order = order_of(expr)
    if order is not None and order.index in frame:
        return _ordered(printer, expr, order, frame)
    by_key = keyed(expr)
    if by_key is not None and all(key.index in frame for key in by_key.keys):
        return _scattered(printer, by_key, frame)
    prefix = prefix_of(expr)
    if prefix is not None and prefix.index in frame:
        return _running(printer, prefix, frame)
    ranges = ragged(expr)
    if ranges is not None and ranges.rows.issubset(frame):
        return _ranged(printer, ranges, frame)
    return None


def _ordered(
    printer: ExpressionPrinter, expr: Reduce, order: Order, frame: Frame
) -> Code | None:
    """
    Find the places of elements by sorting them.

    Before:  sum[j when x[j] < x[i] or x[j] == x[i] and j < i] 1
    After:   ref.places(x, 0, np.int32)
    """
    used = free_indices(order.key)
    outer = tuple(index for index in frame if index in used)
    if find_carrier(order.key, frozenset(outer), printer.scope.loops) is None:
        return None
    key = printer.print(order.key, outer).text
    axis = outer.index(order.index)
    dtype = printer.scope.dtype(expr.type)
    places = call(
        "ref.places", [f"~{key}" if order.descending else key, str(axis), dtype]
    )
    return align(places, outer, frame)


@final
@dataclass(frozen=True, slots=True)
class _Laid:
    """A reduction by keys, with the axes along which NumPy computes it.

    Of `sum[i when ids[i] == u32(q)] dy[i, j]`, `terms` is (i), `columns` is (j), and
    `results` is (q, j).
    """

    reduce: Reduce
    keys: tuple[Key, ...]
    terms: Frame
    columns: Frame

    @property
    def results(self) -> Frame:
        """The axes of the result."""
        return (*(key.index for key in self.keys), *self.columns)

    def places(self, printer: ExpressionPrinter) -> str:
        """Return the tuple of keys as text: `(ids,)`."""
        return tuple_text(
            printer.print(key.value, self.terms).text for key in self.keys
        )

    def body(self, printer: ExpressionPrinter) -> str:
        """Return the array of the terms as text, along `terms` and `columns`."""
        return printer.print(self.reduce.body, (*self.terms, *self.columns)).text


def _laid(
    printer: ExpressionPrinter, found: Keyed, reduce: Reduce, frame: Frame
) -> _Laid | None:
    """Return the axes along which NumPy computes a reduction by key.

    None where no tensor that is read has as many elements as there are terms.
    """
    # An index of the frame that a key reads, as g in `ids[g, i] == u32(q)`, is a key as well.
    chosen = frozenset[Index]().union(*(free_indices(k.value) for k in found.keys))
    rows = tuple(index for index in frame if index in chosen)
    keys = (*(Key(IndexValue(row), row) for row in rows), *found.keys)
    read = free_indices(reduce) - {*rows}
    columns = tuple(index for index in frame if index in read)
    terms = (*rows, *reduce.indices)
    if not _has_carrier(printer, reduce, keys, (*terms, *columns)):
        return None
    return _Laid(reduce, keys, terms, columns)


def _scattered(printer: ExpressionPrinter, found: Keyed, frame: Frame) -> Code | None:
    """
    Join each term with the result that its key chooses.

    Before:  sum[i when ids[i] == u32(q)] dy[i, j]
    After:   ref.scatter(np.add, np.zeros((rows, d), real.dtype), (ids,), dy)
    """
    laid = _laid(printer, found, unconditional(found.reduce), frame)
    if laid is None:
        return None

    def text() -> Code:
        total = empty_array(printer.scope, laid.reduce, laid.results)
        join, places = _JOINS[laid.reduce.kind], laid.places(printer)
        return call("ref.scatter", [join, total, places, laid.body(printer)])

    value = unless_empty(printer, laid.reduce, laid.results, text)
    return align(value, laid.results, frame)


def print_keyed_place(
    printer: ExpressionPrinter, expr: Reduce, frame: Frame
) -> Code | None:
    """Return the code that finds the index of the best term for each key; None without keys.

    None, too, where a loop is needed, as for a condition that depends on more than the terms.

    Before:  argmax[i when ids[i] == u32(q)] x[i]
    After:   ref.keyed_places(np.maximum, (groups,), (ids,), x)
    """
    found = keyed_place(expr)
    if found is None or not all(key.index in frame for key in found.keys):
        return None
    laid = _laid(printer, found, found.reduce, frame)
    condition = found.reduce.condition
    if laid is None:
        return None
    # `where` of `ref.keyed_places` lies along the terms alone.
    if condition and not free_indices(condition).isdisjoint(laid.columns):
        return None

    def text() -> Code:
        scope, kind = printer.scope, _JOINS["max" if expr.kind == "argmax" else "min"]
        shape = scope.shape(laid.results, expr.type)
        arguments = [kind, shape, laid.places(printer), laid.body(printer)]
        if condition is not None:
            arguments.append(printer.print(condition, laid.terms).text)
        return call("ref.keyed_places", arguments)

    value = unless_empty(printer, laid.reduce, laid.results, text)
    return align(value, laid.results, frame)


def _has_carrier(
    printer: ExpressionPrinter, reduce: Reduce, keys: tuple[Key, ...], axes: Frame
) -> bool:
    """Whether the terms are as many as the elements of a tensor that is read for them."""
    values = (reduce.body, *(key.value for key in keys))
    loops, wanted = printer.scope.loops, frozenset(axes)
    return any(find_carrier(value, wanted, loops) is not None for value in values)


def _ranged(printer: ExpressionPrinter, found: Ragged, frame: Frame) -> Code | None:
    """
    Join the terms of each result's range.

    Before:  sum[p when u32(p) >= start[i] and u32(p) < start[i + 1]] x[p]
    After:   ref.ranges(np.add, np.zeros((m,), real.dtype), (start[:m],), (start[1:],), x)
    """
    reduce = unconditional(found.reduce)
    rows = tuple(index for index in frame if index in found.rows)
    read = free_indices(reduce)
    columns = tuple(index for index in frame if index in read)
    terms = (*reduce.indices, *columns)
    if find_carrier(reduce.body, frozenset(terms), printer.scope.loops) is None:
        return None

    def ends(values: tuple[tuple[Expr, int], ...]) -> str:
        return tuple_text(_whole(printer.print(x, rows).text, n) for x, n in values)

    def text() -> Code:
        total = empty_array(printer.scope, reduce, (*rows, *columns))
        arguments = [_JOINS[reduce.kind], total, ends(found.begins), ends(found.ends)]
        return call("ref.ranges", [*arguments, printer.print(reduce.body, terms).text])

    value = unless_empty(printer, reduce, (*rows, *columns), text)
    return align(value, (*rows, *columns), frame)


def _whole(number: str, added: int) -> str:
    # In int64: a u32 or i32 might wrap, as in `start[i] + 1`.
    return f"np.asarray({number}, np.int64) + {added}" if added else number


def _running(printer: ExpressionPrinter, found: Prefix, frame: Frame) -> Code | None:
    """
    Join the terms one after the other, and take what there is at each result.

    Before:  max[p when p < j] x[i, p]
    After:   ref.prefixes(np.maximum, x, 1, n, -1, -np.inf)
    """
    reduce, (own,) = unconditional(found.reduce), found.reduce.indices
    used = free_indices(reduce) | {found.index}
    outer = tuple(index for index in frame if index in used)
    terms = tuple(own if index == found.index else index for index in outer)
    if find_carrier(reduce.body, frozenset(terms), printer.scope.loops) is None:
        return None
    text = partial(_running_call, printer, found, reduce, terms)
    return align(unless_empty(printer, reduce, outer, text), outer, frame)


def _running_call(
    printer: ExpressionPrinter, found: Prefix, reduce: Reduce, terms: Frame
) -> Code:
    arguments = [
        _JOINS[reduce.kind],
        printer.print(reduce.body, terms).text,
        str(terms.index(reduce.indices[0])),
        printer.scope.extent(found.index.extent),
        printer.print(found.shift, ()).text,
        limit_of(reduce) or _OF_NOTHING[reduce.kind],
    ]
    return call("ref.suffixes" if found.is_suffix else "ref.prefixes", arguments)
