"""Ranges of indices: the length that may be meant, and conditions instead of ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kerngen.check.expressions.inferred_ranges import lengths_by_reads
from kerngen.check.scope import IndexSymbol, TensorSymbol, one_line
from kerngen.check.traverse import bare_subscripts, walk_syntax
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions
    from kerngen.check.expressions.index_ranges import Terms


def as_condition(
    ex: Expressions, binder: ast.Binder, terms: Terms, kind: ast.ReduceKind
) -> str:
    """Return how a reduction is written whose range would depend on another index.

    For `sum[j < i] x[j]` that is `sum[j when j < i] x[j]`.
    """
    if binder.bound is None:
        return ""
    name, *conditions = binder.name.name, *map(_joined, terms[:-1])
    over = name
    if all(subscript.name != name for _, _, subscript in bare_subscripts(*terms)):
        lengths = (
            ex.env.length_text(symbol.index.extent)
            for symbol in map(ex.scope.get, _names(binder.bound))
            if isinstance(symbol, IndexSymbol)
        )
        over = f"{name} < {next(lengths, '...')}"
    bound, value = (one_line(node.span.text) for node in (binder.bound, terms[-1]))
    condition = " and ".join((f"{name} < {bound}", *conditions))
    return (
        "A range is the same for all elements; leave terms out by a condition: "
        f"'{kind}[{over} when {condition}] {value}'."
    )


def _joined(condition: ast.Expr) -> str:
    """Return the text of a condition as an operand of `and`."""
    text = one_line(condition.span.text)
    is_choice = isinstance(condition, ast.Binary) and condition.op == "or"
    return f"({text})" if is_choice else text


def meant_length(
    ex: Expressions, name: str, terms: Terms, kind: ast.ReduceKind | None
) -> str:
    """Return the length that an index may be meant to have, or dots."""
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
    """Yield the lengths that an index may be meant to have, by what it subscripts.

    That of a reduction, beside another one, runs through a window: at steps of 2 say in
    `2 * i + u`.
    """
    for tensor, axis, subscript in _subscripts(terms):
        symbol, names = ex.scope.get(tensor), _names(subscript)
        if name not in names or not isinstance(symbol, TensorSymbol):
            continue
        if axis >= symbol.tensor.rank:
            continue
        others = [other for other in names if _is_index(ex, other, name)]
        is_window = kind is not None and others
        yield _step(subscript) if is_window else symbol.tensor.extents[axis]


def _subscripts(terms: Terms) -> Iterator[tuple[str, int, ast.Expr]]:
    for part in walk_syntax(*terms):
        if isinstance(part, ast.Subscript) and isinstance(part.base, ast.Name):
            for axis, subscript in enumerate(part.subscripts):
                yield part.base.name, axis, subscript


def _is_index(ex: Expressions, name: str, of: str) -> bool:
    kind = getattr(ex.scope.get(name), "kind", "an index")
    return name != of and kind == "an index"


def _step(subscript: ast.Expr) -> int:
    for part in walk_syntax(subscript):
        if isinstance(part, ast.Binary) and part.op == "*":
            for side in (part.left, part.right):
                if isinstance(side, ast.Number) and isinstance(side.value, int):
                    return side.value
    return 3


def _names(expr: ast.Expr) -> list[str]:
    return [part.name for part in walk_syntax(expr) if isinstance(part, ast.Name)]
