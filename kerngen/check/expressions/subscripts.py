"""Subscripts of reads: their number, and that they stay inside their axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

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
from kerngen.check.hints.examples import completed
from kerngen.check.hints.unknown_names import report_unknown
from kerngen.check.scope import (
    IndexSymbol,
    TensorSymbol,
    ends_axis,
    one_line,
)
from kerngen.check.text import collapse
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.analysis.extremes import stays_inside
from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Affine, Clamped, Extent, IndexValue, Subscript
from kerngen.ir.types import Scalar, ValueType
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions


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


def check_subscripts(
    ex: Expressions, tensor: Subscripted, span: Span, subscripts: tuple[ast.Expr, ...]
) -> tuple[Subscript, ...] | None:
    """Return the subscripts of a read."""
    if len(subscripts) != tensor.rank:
        example = completed(ex, tensor, subscripts)
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
        if ends_axis(symbol, extent):
            report_dim(ex, node, "last")
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
