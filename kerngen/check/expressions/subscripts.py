"""Subscripts of reads: their number, and that they stay inside their axes."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, count, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal, final

from kerngen.check.environment import Environment
from kerngen.check.expressions.axes import check_axes
from kerngen.check.expressions.bounds import is_out_of_bounds
from kerngen.check.expressions.negatives import warn_of_negatives
from kerngen.check.faults.indices import (
    DimAsIndex,
    SubscriptCount,
    SubscriptType,
    UnboundIndex,
)
from kerngen.check.hints.conversions import conversion
from kerngen.check.hints.unknown_names import report_unknown
from kerngen.check.scope import (
    IndexSymbol,
    Poison,
    Scope,
    TensorSymbol,
    is_dim,
    one_line,
)
from kerngen.check.text import collapse
from kerngen.ir.affine import affine_form
from kerngen.ir.extremes import stays_inside
from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Affine, Clamped, Extent, IndexValue, Subscript, Tensor
from kerngen.ir.types import Scalar, ValueType
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

INDEX_NAMES = "ijklpqrstuvwabcdefghmnoxyz"

_MOST_WAYS: Final = 100
"""To give the subscripts that are there to the axes of a tensor of very many."""


@final
@dataclass(frozen=True)
class Subscripted:
    """What subscripts go into: a tensor, a fixed array, a vector or a matrix."""

    name: str
    extents: tuple[Extent, ...]
    span: Span
    """Where it is declared; `axes` are where its axes are, if it is a tensor."""
    axes: tuple[Span, ...] = ()
    element: ValueType | Struct = Scalar.F32

    @classmethod
    def of(cls, symbol: TensorSymbol) -> Subscripted:
        """Return a tensor as what its subscripts go into."""
        tensor = symbol.tensor
        return cls(
            tensor.name, tensor.extents, symbol.span, symbol.axes, tensor.element
        )

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return len(self.extents)


def free_names(
    env: Environment, scope: Scope, taken: Container[str] = ()
) -> Iterator[str]:
    """Yield names for new indices: those that stand for nothing, and are not taken."""
    for name in chain(INDEX_NAMES, (f"i{n}" for n in count())):
        symbol = scope.get(name)
        is_free = symbol is None or isinstance(symbol, IndexSymbol)
        if is_free and name not in env.later and name not in taken:
            yield name


def unused_names(ex: Expressions) -> Iterator[str]:
    """Yield names that nothing has."""
    usual = free_names(ex.env, ex.scope)
    return (name for name in usual if ex.scope.get(name) is None)


def example_read(env: Environment, scope: Scope, tensor: Tensor | Subscripted) -> str:
    """Return how an element of a tensor is written: `x[i, j]`."""
    names = ", ".join(islice(free_names(env, scope), tensor.rank))
    return f"{tensor.name}[{names}]" if names else tensor.name


def check_subscripts(
    ex: Expressions, tensor: Subscripted, span: Span, subscripts: tuple[ast.Expr, ...]
) -> tuple[Subscript, ...] | None:
    """Return the subscripts of a read."""
    if len(subscripts) != tensor.rank:
        example = _completed(ex, tensor, subscripts)
        report_count(ex, tensor, span, len(subscripts), example)
        return None
    check_axes(ex, tensor, subscripts)
    places = [
        check_subscript(ex, tensor.extents[axis], subscript)
        for axis, subscript in enumerate(subscripts)
    ]
    known = tuple(place for place in places if place is not None)
    if len(known) < tensor.rank:
        return None
    if is_out_of_bounds(ex, tensor, known, span, subscripts):
        return None
    return known


def _completed(
    ex: Expressions, tensor: Subscripted, subscripts: tuple[ast.Expr, ...]
) -> str:
    """Return a read with the subscripts given, and indices that fit the other axes.

    Of `x[j]` where x has the axes m and n, and i ranges over m: `x[i, j]`.
    """
    if len(subscripts) > tensor.rank:
        return example_read(ex.env, ex.scope, tensor)
    given = [one_line(subscript.span.text) for subscript in subscripts]
    # What an index has its range from is not to be this read.
    own = {subscript.span for subscript in subscripts}
    symbols = [ex.scope.get(name) for name in ex.scope.names()]
    indices = [s for s in symbols if isinstance(s, IndexSymbol) and s.origin not in own]
    ranges = {s.index.name: s.index.extent for s in indices}
    # An index that subscripts nothing else is meant for what is left out.
    idle = [name for name in ex.scope.names() if _has_no_range(ex.scope, name)]

    def filled(axes: tuple[int, ...]) -> tuple[int, list[str]]:
        """Return how many indices range over their axes, where these get what is given."""
        names = [""] * tensor.rank
        for axis, name in zip(axes, given, strict=True):
            names[axis] = name
        for axis, extent in enumerate(tensor.extents):
            fitting = (name for name, its in ranges.items() if its == extent)
            unused = (
                name for name in (*fitting, *idle) if name not in (*names, *given)
            )
            free = free_names(ex.env, ex.scope, (*names, *given))
            names[axis] = names[axis] or next(chain(unused, free))
        pairs = zip(names, tensor.extents, strict=True)
        return sum(ranges.get(name) == extent for name, extent in pairs), names

    ways = map(filled, combinations(range(tensor.rank), len(given)))
    _, names = max(islice(ways, _MOST_WAYS), key=itemgetter(0))
    return f"{tensor.name}[{', '.join(names)}]" if names else tensor.name


def _has_no_range(scope: Scope, name: str) -> bool:
    symbol = scope.get(name)
    return isinstance(symbol, Poison) and symbol.kind == "an index"


def report_dim(
    ex: Expressions, node: ast.Name, case: Literal["index", "last"] = "index"
) -> None:
    """Record a dim where an index, or the last element, was meant; once per statement."""
    dim = ex.scope.get(node.name)
    ex.env.faults.add(
        DimAsIndex(
            span=node.span,
            declared=dim.span if dim else None,
            name=node.name,
            case=case,
        )
    )
    ex.scope.poison_dims()


def report_count(
    ex: Expressions, tensor: Subscripted, span: Span, count: int, example: str
) -> None:
    """Record a wrong number of subscripts, the first time that it is met.

    The tensor may be declared otherwise than its author thinks: that is one fault.
    """
    met = f"{tensor.name}[{count}]"
    if met in ex.env.reported:
        return
    ex.env.reported.add(met)
    ex.env.faults.add(
        SubscriptCount(
            span=span,
            other=tensor.span,
            tensor=tensor.name,
            rank=tensor.rank,
            count=count,
            example=example,
        )
    )


def check_subscript(
    ex: Expressions, extent: Extent, node: ast.Expr
) -> Subscript | None:
    """Return a subscript of an axis: a bare index, an affine one, or one to clamp."""
    if isinstance(node, ast.Name):
        symbol = ex.scope.get(node.name)
        if isinstance(symbol, IndexSymbol):
            return IndexValue(symbol.index)
        if symbol is None:
            _report_unbound(ex, node)
            return None
        if is_dim(symbol):
            report_dim(ex, node, "last" if extent == node.name else "index")
            return None
    value = ex.check(node, Scalar.I32)
    if value is None:
        return None
    if not value.type.is_integer:
        ex.env.faults.add(
            SubscriptType(
                span=node.span,
                actual=value.type.spelling,
                remedy=conversion(node, value.type, Scalar.I32),
            )
        )
        return None
    warn_of_negatives(ex, node, value)
    form = affine_form(value)
    if form is None:
        return Clamped(value)
    proved = stays_inside(form, extent) or ex.env.known.keeps_inside(form, extent)
    if ex.in_branch and not proved:
        return Clamped(value)
    return Affine(value, one_line(collapse(node.span.text), limit=80))


def _report_unbound(ex: Expressions, node: ast.Name) -> None:
    """Record a subscript that nothing binds; once per statement."""
    name, env = node.name, ex.env
    if name in env.later:
        report_unknown(ex, node)
        return
    current = env.current
    if name in env.reported:
        return
    suggestion = closest(name, ex.scope.names()) if len(name) > 2 else ""
    suggestion = suggestion or next(iter(env.unranged), "")
    case: Literal["ended", "end", "slip", "let", "sum"]
    if current.binds(name, node.span):
        env.blame_use(name)
        case = "ended"
    elif name == "end":
        case = "end"
    elif suggestion:
        env.blame_use(suggestion)
        case = "slip"
    else:
        case = "let" if current.in_let else "sum"
    env.faults.add(
        UnboundIndex(
            span=node.span,
            case=case,
            name=name,
            suggestion=suggestion,
            target=current.target,
        )
    )
    ex.scope.poison(name, "an index", node.span)
