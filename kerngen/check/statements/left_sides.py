"""Left sides: the indices that they introduce, and stores at a position.

In `y[i, j] = ...` both indices range over their axes.  A store at a position, as in
`cache[at + i, g] = ...`, leaves the rest of the tensor as it is, so it needs a `mut` tensor,
which the caller passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.index_ranges import (
    declare_index,
    introduce,
    ranged_by_reads,
)
from kerngen.check.expressions.subscripts import (
    check_subscript,
    is_out_of_bounds,
    report_count,
    report_dim,
)
from kerngen.check.hints.left_sides import FaultyLeftSide, elementwise
from kerngen.check.hints.subscripts import free_names
from kerngen.check.scope import (
    IndexSymbol,
    Poison,
    Scope,
    Subscripted,
    TensorSymbol,
    ValueSymbol,
    ends_axis,
    is_dim,
)
from kerngen.check.traverse import names_in, walk_syntax
from kerngen.ir.analysis.positions import moving_index
from kerngen.ir.nodes import Index, IndexValue, Role, Subscript
from kerngen.ir.types import CASTS
from kerngen.syntax import ast
from kerngen.syntax.mistakes.foreign import REDUCTIONS


def check_left(
    ex: Expressions, outer: Scope, node: ast.Assignment, symbol: TensorSymbol | None
) -> tuple[Subscript, ...] | None:
    """Introduce the indices of a left side; return its subscripts, None after a fault.

    Bare indices range over the axes of the tensor that is written, which is `symbol`.
    `ex` has the scope of the statement, which lies in `outer`.
    """
    fits = symbol is not None and len(node.subscripts) == symbol.tensor.rank
    if symbol is not None and not fits and not _calls_foreign(ex, node):
        target = node.name.span
        span = target.to(node.subscripts[-1].span) if node.subscripts else target
        example = elementwise(ex.env, outer, node, symbol)
        count = len(node.subscripts)
        report_count(ex, Subscripted.of(symbol), span, count, example)
    if symbol is not None and fits and _has_position(outer, node, symbol):
        return _check_position(ex, outer, node, symbol)
    # All subscripts are new indices; the first that is not is reported.
    places: list[Subscript] = []
    told = symbol is not None and not fits
    for axis, subscript in enumerate(node.subscripts):
        if not isinstance(subscript, ast.Name) or ex.scope.of(subscript):
            if not told:
                _report_left(ex, FaultyLeftSide(ex.env, outer, node, symbol), subscript)
            told = True
            _poison_scalar(ex.scope, subscript)
            continue
        if symbol is not None and fits:
            index = introduce(ex, subscript, symbol.tensor.extents[axis])
            places.append(IndexValue(index))
        else:
            declare_index(ex, subscript, Poison("an index", subscript.span))
    return tuple(places) if fits and len(places) == len(node.subscripts) else None


def _calls_foreign(ex: Expressions, node: ast.Assignment) -> bool:
    """Whether the right side calls another library's function of whole tensors, `mean(x)`.

    Its own report has the right statement in the hint.
    """
    return any(
        isinstance(part, ast.Call)
        and part.function.name in REDUCTIONS.keys() - ex.env.functions.keys()
        for part in walk_syntax(node.value)
    )


def _report_left(ex: Expressions, left: FaultyLeftSide, subscript: ast.Expr) -> None:
    """Report a subscript of the left side that is no new name.

    It is called for the first one only: the hint is about all of them.
    """
    symbol = ex.scope.of(subscript)
    if isinstance(symbol, Poison):
        return
    if isinstance(subscript, ast.Name) and is_dim(symbol):
        report_dim(ex, subscript)
    elif isinstance(subscript, ast.Name) and isinstance(symbol, IndexSymbol):
        left.report_repeated(subscript)
    else:
        left.report(subscript)


def _poison_scalar(scope: Scope, subscript: ast.Expr) -> None:
    """Poison a scalar that is meant as an index, so that its other uses report nothing."""
    name = subscript.name if isinstance(subscript, ast.Name) else ""
    symbol = scope.get(name)
    if isinstance(symbol, ValueSymbol) and not is_dim(symbol):
        scope.put(name, Poison("an index", subscript.span))


# Positions


def _has_position(scope: Scope, node: ast.Assignment, symbol: TensorSymbol) -> bool:
    """Whether a left side stores at a position of a `mut` tensor.

    If all subscripts are new bare indices, it does not. A subscript that is the axis's own
    length, or a condition, is a mistake, and no position.
    """
    if symbol.tensor.role is not Role.UPDATE:
        return False
    pairs = zip(node.subscripts, symbol.tensor.extents, strict=False)
    names = ((s.name, extent) for s, extent in pairs if isinstance(s, ast.Name))
    if any(ends_axis(scope.get(name), extent) for name, extent in names):
        return False
    if any(isinstance(s, ast.Binary) and s.op in ast.TRUTHS for s in node.subscripts):
        return False
    return any(not _is_new(scope, subscript) for subscript in node.subscripts)


def _check_position(
    ex: Expressions, outer: Scope, node: ast.Assignment, symbol: TensorSymbol
) -> tuple[Subscript, ...] | None:
    """Check a position on the left; return None after a fault."""
    checked = _Position(ex, outer, node, symbol)
    faults = len(ex.env.faults)
    checked.introduce()
    return checked.checked() if len(ex.env.faults) == faults else None


@final
@dataclass(frozen=True)
class _Position:
    """A left side with a position; `ex` has the scope of the statement, in `outer`."""

    ex: Expressions
    outer: Scope
    node: ast.Assignment
    symbol: TensorSymbol

    def introduce(self) -> None:
        """Declare the indices: a bare one ranges over its axis, `i` of `at + i` by reads."""
        for axis, subscript in enumerate(self.node.subscripts):
            if isinstance(subscript, ast.Name) and _is_new(self.outer, subscript):
                if self.ex.scope.get(subscript.name) is not None:
                    self._faulty.report_repeated(subscript)
                    return
                introduce(self.ex, subscript, self.symbol.tensor.extents[axis])
        for subscript in self.node.subscripts:
            if any(isinstance(part, ast.Reduction) for part in walk_syntax(subscript)):
                self._report_reduction(subscript)
                return
            unknown = [*self._unknown(walk_syntax(subscript))]
            if len(unknown) > 1 or unknown != [*self._unknown(_terms(subscript))]:
                self._faulty.report(subscript)
                return
            for name in unknown:
                self._introduce_moving(subscript, name)

    def _unknown(self, parts: Iterable[ast.Expr]) -> Iterator[ast.Name]:
        """Yield the names among parts that are not declared yet."""
        for part in parts:
            if isinstance(part, ast.Name) and self.ex.scope.get(part.name) is None:
                yield part

    def _introduce_moving(self, subscript: ast.Expr, name: ast.Name) -> None:
        """Declare `i` of a position `at + i`; it ranges over an axis that it reads."""
        found = ranged_by_reads(self.ex, name, self.node.value)
        if found is None:
            fault = diag.PositionRange(
                span=name.span,
                position=subscript.span.one_line(),
                let=self._free_name(),
            )
            self.ex.env.faults.add(fault)
        declare_index(self.ex, name, found or Poison("an index", name.span))

    def _report_reduction(self, subscript: ast.Expr) -> None:
        text, name = subscript.span.one_line(), self._free_name()
        fault = diag.LeftSubscript(
            span=subscript.span,
            declared=None,
            what="a reduction",
            remedy=f"Name the number first: 'let {name} = {text};'.",
        )
        self.ex.env.faults.add(fault)

    def _free_name(self) -> str:
        names = {n.name for n in names_in(*self.node.subscripts, self.node.value)}
        return next(free_names(self.ex.env, self.ex.scope, names))

    def checked(self) -> tuple[Subscript, ...] | None:
        """Return the subscripts; report an index that is in two of them."""
        places: list[Subscript] = []
        indices: list[Index] = []
        for axis, subscript in enumerate(self.node.subscripts):
            extent = self.symbol.tensor.extents[axis]
            place = check_subscript(self.ex, extent, subscript)
            if place is None:
                return None
            try:
                index = moving_index(place)
            except ValueError:
                self._faulty.report(subscript)
                return None
            if index in indices:
                self._faulty.report(subscript)
                return None
            places.append(place)
            indices += [] if index is None else [index]
        tensor, span = Subscripted.of(self.symbol), self.node.name.span
        at = tuple(places)
        if is_out_of_bounds(self.ex, tensor, at, span, self.node.subscripts):
            return None
        return at

    @property
    def _faulty(self) -> FaultyLeftSide:
        return FaultyLeftSide(self.ex.env, self.outer, self.node, self.symbol)


def _terms(expr: ast.Expr) -> Iterator[ast.Expr]:
    """Yield the terms and factors of an expression, but not subscripts in them."""
    match expr:
        case ast.Binary(op="+" | "-" | "*", left=left, right=right):
            yield from (*_terms(left), *_terms(right))
        case ast.Unary(operand=operand):
            yield from _terms(operand)
        case ast.Call(function=function, arguments=arguments):
            for argument in arguments if function.name in CASTS else ():
                yield from _terms(argument)
        case _:
            yield expr


def _is_new(scope: Scope, subscript: ast.Expr) -> bool:
    return isinstance(subscript, ast.Name) and scope.get(subscript.name) is None
