"""The ranges of the indices that a `let` or a reduction introduces."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kerngen.check.faults_indices import RangeNotFound
from kerngen.check.lengths import check_length, length_text
from kerngen.check.scope import (
    FaultySymbol,
    IndexSymbol,
    TensorSymbol,
    ValueSymbol,
    one_line,
)
from kerngen.check.traverse import bare_subscripts, used_in_subscripts, walk_syntax
from kerngen.ir.nodes import DimValue, Index
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions import Expressions

_OF_NOTHING: Final[dict[ast.ReduceKind, str]] = {
    "sum": "0",
    "prod": "1",
    "max": "-3.0e38",
    "min": "3.0e38",
}


@contextmanager
def bind_indices(
    ex: Expressions,
    binders: tuple[ast.Binder, ...],
    body: ast.Expr,
    kind: ast.ReduceKind | None = None,
) -> Generator[tuple[Index, ...] | None]:
    """Introduce indices over given ranges, or the axes that they subscript in `body`.

    `kind` is that of the reduction, if it is one that introduces them.  Yields None
    where a range is unknown.  An index that seems to subscript something, but in a
    faulty way, is reported after the body, if the body wasn't.
    """
    known: list[Index] = []
    doubtful: list[ast.Identifier] = []
    faults_before = len(ex.env.faults)
    for binder in binders:
        instead = _as_choice(ex, binder, body, kind) if kind else ""
        symbol = _ranged(ex, binder, body, kind, instead)
        if isinstance(symbol, IndexSymbol):
            known.append(symbol.index)
        elif symbol is None:
            doubtful.append(binder.name)
        introduce(ex, binder.name, symbol or FaultySymbol("an index", binder.name.span))
    yield tuple(known) if len(known) == len(binders) else None
    if len(ex.env.faults) == faults_before:
        for name in doubtful:
            _report_no_range(ex, name, body, kind)


def introduce(
    ex: Expressions, name: ast.Identifier, symbol: IndexSymbol | FaultySymbol
) -> None:
    """Declare an index; where its name is taken, its uses are not looked at."""
    ex.env.indices.setdefault(name.name, name.span)
    before = ex.scope.get(name.name)
    is_dim = isinstance(before, ValueSymbol) and isinstance(before.value, DimValue)
    told = is_dim and ex.env.current.takes_dims
    ex.env.current.takes_dims |= is_dim
    if told or not ex.scope.declare(name, symbol):
        ex.scope.put(name.name, FaultySymbol("an index", name.span))


def _ranged(
    ex: Expressions,
    binder: ast.Binder,
    body: ast.Expr,
    kind: ast.ReduceKind | None,
    instead: str,
) -> IndexSymbol | FaultySymbol | None:
    """Return an index with its range; None if another fault should explain it."""
    name = binder.name
    if binder.bound is not None:
        place, long_name = f"The range of '{name.name}'", f"{name.name}_range"
        extent = check_length(
            ex.env, ex.scope, binder.bound, place, long_name, instead=instead
        )
        if extent is None:
            return FaultySymbol("an index", name.span)
        index, origin = Index(name.name, extent), binder.bound.span
        return IndexSymbol(index, name.span, origin, is_given=True)
    for tensor_name, axis, subscript in bare_subscripts(body):
        if subscript.name == name.name:
            symbol = ex.scope.get(tensor_name)
            if isinstance(symbol, TensorSymbol) and axis < symbol.tensor.rank:
                index = Index(name.name, symbol.tensor.extents[axis])
                return IndexSymbol(index, name.span, subscript.span)
            return FaultySymbol("an index", name.span)
    if used_in_subscripts(name.name, body) or _calls_a_tensor(ex, body):
        return None
    _report_no_range(ex, name, body, kind)
    return FaultySymbol("an index", name.span)


def _calls_a_tensor(ex: Expressions, body: ast.Expr) -> bool:
    """Whether a tensor is read like a function, `x(i)`: that is told by itself."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(ex.scope.get(part.function.name), TensorSymbol)
        for part in walk_syntax(body)
    )


# What to write instead


def _as_choice(
    ex: Expressions, binder: ast.Binder, body: ast.Expr, kind: ast.ReduceKind
) -> str:
    """Return how a reduction is written whose range would depend on another index."""
    if binder.bound is None:
        return ""
    name, value = binder.name.name, one_line(body.span.text)
    over = name
    if all(subscript.name != name for _, _, subscript in bare_subscripts(body)):
        lengths = (
            length_text(ex.env, symbol.index.extent)
            for symbol in map(ex.scope.get, _names(binder.bound))
            if isinstance(symbol, IndexSymbol)
        )
        over = f"{name} < {next(lengths, '...')}"
    return (
        "A range is the same for all elements; choose inside of one: "
        f"'{kind}[{over}] if {name} < {one_line(binder.bound.span.text)} "
        f"{{ {value} }} else {{ {_OF_NOTHING[kind]} }}'."
    )


def _report_no_range(
    ex: Expressions,
    name: ast.Identifier,
    body: ast.Expr,
    kind: ast.ReduceKind | None,
) -> None:
    meant = (
        next(_lengths_near(ex, name.name, body, kind), "")
        or next((dim for t in ex.env.tensors for dim in t.extents if dim), "")
        or 3
    )
    ex.env.faults.add(
        RangeNotFound(span=name.span, name=name.name, length=length_text(ex.env, meant))
    )


def _lengths_near(
    ex: Expressions, name: str, body: ast.Expr, kind: ast.ReduceKind | None
) -> Iterator[str | int]:
    """Yield the lengths that an index may be meant to have, by what it subscripts.

    That of a reduction, beside another one, runs through a window: at steps of 2 say in
    `2 * i + u`.
    """
    for tensor, axis, subscript in _subscripts(body):
        symbol, names = ex.scope.get(tensor), _names(subscript)
        if name not in names or not isinstance(symbol, TensorSymbol):
            continue
        if axis >= symbol.tensor.rank:
            continue
        others = [other for other in names if _is_index(ex, other, name)]
        is_window = kind is not None and others
        yield _step(subscript) if is_window else symbol.tensor.extents[axis]


def _subscripts(body: ast.Expr) -> Iterator[tuple[str, int, ast.Expr]]:
    for part in walk_syntax(body):
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
