"""Checking recurrences: lets that read themselves.

`let h[t] = if t > 0 { a[t] * h[t - 1] + b[t] } else { b[t] };` reads itself at smaller
values of one index, by a literal distance, under a condition that leaves out the border.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.scope import Poison, let_symbol
from kerngen.check.traverse import subexpressions, walk_syntax
from kerngen.ir.analysis.affine import affine_form, as_literal
from kerngen.ir.analysis.borders import Borders, Condition, reads_under
from kerngen.ir.analysis.linear import Lengths
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import Expr, Index, IndexValue, Load, Tensor
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.types import CASTS, COMPOSITES, Scalar, ValueType
from kerngen.ir.walk import subscript_value
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import ast

Checked: TypeAlias = "tuple[Expr | None, Recurrence | None]"

_NUMBERS_OF_VECTORS = frozenset({"dot", "length", "distance", "determinant"})


def check_let_value(
    ex: Expressions, node: ast.LetStatement, indices: tuple[Index, ...] | None
) -> Checked:
    """Return the value of a let; if it reads itself, also the order of its elements."""
    name = node.name.name
    if not node.binders or not _mentions(node.value, name) or ex.scope.get(name):
        return ex.check(node.value), None
    if indices is None:
        ex.scope.put(name, Poison("a let", node.name.span))
        return ex.check(node.value), None
    type_ = _type_of(ex, node)
    symbol = let_symbol(node, type_, indices)
    tensor = symbol.tensor
    ex.scope.put(name, symbol)
    value = ex.check(node.value)
    if value is not None and value.type != type_:
        place = f"An element of '{name}', which is {type_.spelling} where it starts,"
        ex.report_mismatch(node.value, value, type_, place, node.name.span)
        return None, None
    if value is None:
        return None, None
    found = _Reads(ex, node, tensor, indices, tuple(reads_under(value, tensor)))
    return value, found.recurrence()


def _mentions(node: ast.Expr, name: str) -> bool:
    """Whether an expression has a subscripted read of this name."""
    return any(
        isinstance(part, ast.Subscript)
        and isinstance(part.base, ast.Name)
        and part.base.name == name
        for part in walk_syntax(node)
    )


# The type of a recurrence: that of a part that does not read the let


def _type_of(ex: Expressions, node: ast.LetStatement) -> ValueType:
    """Return the type of a let that reads itself, by the parts that don't read it."""
    starts = [*_starts(ex, node.value, node.name.name)]
    for start in starts:
        if not isinstance(start, ast.Expr):
            return start
        if ex.env.untyped.kind(start) is None:
            value = replace(ex.trial(), in_branch=True).check(start)
            if value is not None:
                return value.type
    kinds = [ex.env.untyped.kind(s) for s in starts if isinstance(s, ast.Expr)]
    return Scalar.I32 if kinds and set(kinds) == {Scalar.I32} else Scalar.F32


def _starts(
    ex: Expressions, node: ast.Expr, name: str
) -> Iterator[ast.Expr | ValueType]:
    """Yield subexpressions that do not read the let and have its type.

    Of `if t > 0 { 0.5 * h[t - 1] } else { x[t] }` that is `x[t]`, then `0.5`.
    """
    if not _mentions(node, name):
        yield node
        return
    parts: tuple[ast.Expr, ...] = ()
    match node:
        case ast.Conditional(then=then, otherwise=otherwise):
            parts = then, otherwise
        case ast.Binary(op=op) if op in ast.TRUTHS:
            yield Scalar.BOOL
        case ast.Unary(op="not"):
            yield Scalar.BOOL
        case ast.Binary(op=op, left=left, right=right):
            parts = (left,) if op in ast.SHIFTS else (left, right)
        case ast.Unary(operand=operand):
            parts = (operand,)
        case ast.Reduction(body=body):
            parts = (body,)
        case ast.Call(function=function):
            called = _result_of(ex, function.name)
            if called is not None:
                yield called
            elif function.name not in GEOMETRY:
                parts = subexpressions(node)
        case _:
            pass
    # Parts that don't read the let first: they are a start themselves.
    for part in sorted(parts, key=lambda part: _mentions(part, name)):
        yield from _starts(ex, part, name)


def _result_of(ex: Expressions, function: str) -> ValueType | None:
    """Return the type of a call, or None if its arguments decide it."""
    signature = ex.env.functions.get(function)
    if signature is not None:
        return signature.result
    if function in _NUMBERS_OF_VECTORS:
        return Scalar.F32
    return CASTS.get(function) or COMPOSITES.get(function)


# The order of the elements


@final
@dataclass(frozen=True)
class _Reads:
    """The reads that a let makes of itself, each with its conditions."""

    ex: Expressions
    node: ast.LetStatement
    tensor: Tensor
    indices: tuple[Index, ...]
    reads: tuple[tuple[Load, tuple[Condition, ...]], ...]

    def recurrence(self) -> Recurrence | None:
        """Return the order that all reads agree on; None after a fault.

        Of `h[t - 1]` and `h[t - 2]` that is along t, ascending, with a reach of 2.
        """
        found = [axis for axis in range(len(self.indices)) if self._direction(axis)]
        if not found:
            self.ex.env.faults.add(self._disorder())
            return None
        # Preferred: an axis along which all other subscripts are bare, so that an element
        # needs no other elements of earlier steps.
        axis = min(found, key=lambda axis: not self._is_own(axis))
        shifts = [self._shift(load, axis) or 0 for load, _ in self.reads]
        borders = Borders(Lengths.of(self.ex.env.derived))
        for (load, under), shift in zip(self.reads, shifts, strict=True):
            if not borders.excludes(load, axis, under, shift):
                self.ex.env.faults.add(self._border(axis, load, shift))
                return None
        return Recurrence(axis, max(map(abs, shifts)), descending=shifts[0] > 0)

    def _shift(self, load: Load, axis: int) -> int | None:
        """Return the literal distance of a read along an axis, -1 for `t - 1`, or None."""
        form = affine_form(subscript_value(load.subscripts[axis]))
        index = self.indices[axis]
        if form is None or {*form.terms} != {index} or form.coefficient(index) != 1:
            return None
        return as_literal(form.offset)

    def _direction(self, axis: int) -> int:
        """Return -1 if all reads are at smaller values of an axis, 1 if at greater, else 0."""
        shifts = [self._shift(load, axis) for load, _ in self.reads]
        signs = {(shift > 0) - (shift < 0) if shift else 0 for shift in shifts}
        return signs.pop() if len(signs) == 1 else 0

    def _is_own(self, axis: int) -> bool:
        own = tuple(map(IndexValue, self.indices))
        return all(
            place == index
            for load, _ in self.reads
            for number, (place, index) in enumerate(
                zip(load.subscripts, own, strict=True)
            )
            if number != axis
        )

    def _border(self, axis: int, load: Load, shift: int) -> Diagnostic:
        index = self.indices[axis]
        length = self.ex.env.length_text(index.extent)
        forward = f"{index.name} + {shift} < {length}"
        return diag.UnguardedBorder(
            span=self._span(load),
            index=index.name,
            border="first" if shift < 0 else "last",
            condition=f"{index.name} >= {-shift}" if shift < 0 else forward,
        )

    def _disorder(self) -> Diagnostic:
        """Return the diagnostic for reads that imply no order of elements."""
        loads = [load for load, _ in self.reads]
        name, own = self.tensor.name, tuple(map(IndexValue, self.indices))
        for load in loads:
            if load.subscripts == own:
                return diag.ReadsItself(span=self._span(load), name=name)
        for axis, index in enumerate(self.indices):
            shifts = {load: self._shift(load, axis) or 0 for load in loads}
            if all(shifts.values()):
                before = next(load for load, shift in shifts.items() if shift < 0)
                behind = next(load for load, shift in shifts.items() if shift > 0)
                return diag.BothDirections(
                    span=self._span(behind),
                    other=self._span(before),
                    name=name,
                    index=index.name,
                )
        for load in loads:
            for place, index in zip(load.subscripts, self.indices, strict=True):
                form = affine_form(subscript_value(place))
                moves = form is not None and form.coefficient(index) == 1
                if form and moves and as_literal(form.offset) is None:
                    return diag.DistanceNotLiteral(
                        span=self._span(load), name=name, index=index.name
                    )
        return diag.NoOrder(
            span=self._span(loads[0]) if loads else self.node.name.span,
            name=name,
            reads=", ".join(
                dict.fromkeys(f"'{self._span(load).one_line()}'" for load in loads)
            ),
        )

    def _span(self, load: Load) -> Span:
        value, of = self.node.value, self.ex.env.model.value
        found = (part.span for part in walk_syntax(value) if of(part) == load)
        return next(found, value.span)
