"""Equations of subscripts, and the elimination of an index by one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import BOOL
from kerngen.gradient.integers.forms import (
    Form,
    coefficient,
    combined,
    form_of,
    scaled,
    value_of,
    variables,
)
from kerngen.gradient.terms import as_subscript
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value

_I32: Final = Scalar.I32


@final
@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """The equation `value == place` of a read's subscript and the adjoint's index on an axis.

    Of `x[2 * i + u]`, whose adjoint is at K, that is `2 * i + u == K`.
    """

    value: ir.Expr
    place: ir.Expr


@final
@dataclass(frozen=True)
class Replacement:
    """Replaces an index by its solution.

    Where an integer has the left side of the solved equation `by` as a part, this becomes
    the right side: `i * step + u` becomes K, and not `(K - u) / step * step + u`.
    """

    index: ir.Index
    solution: ir.Expr
    by: Equation | None
    reduced: Callable[[ir.Expr], ir.Expr]
    clamped: Callable[[ir.Expr, ir.Extent], ir.Expr]

    def __call__(self, expr: ir.Expr) -> ir.Expr:
        """Return an expression at the solution."""
        if self.index not in free_indices(expr):
            return expr
        if self.by is not None and expr.type is _I32:
            known = self._by_equation(expr, self.by)
            if known is not None:
                return known
        match expr:
            case ir.IndexValue():
                return self.solution
            case ir.Load(subscripts=subscripts, path=path):
                axes = zip(subscripts, expr.tensor.extents, strict=True)
                moved = tuple(self._moved(*axis) for axis in axes)
                return replace(expr, subscripts=moved, path=self._along(path))
            case ir.UniformValue(path=path):
                return replace(expr, path=self._along(path))
            case ir.Part(at=at):
                (own,) = self._along((at,))
                assert isinstance(own, ir.At)
                return replace(expr, operand=self(expr.operand), at=own)
            case ir.Binary(op="<" | "<=" | ">" | ">=" | "==" | "!=" as op) if (
                self.by is not None and expr.left.type is _I32
            ):
                form = combined("-", form_of(expr.left), form_of(expr.right))
                found = self._by_equation(value_of(form), self.by)
                if found is not None:
                    return ir.Binary(op, *_sides(form_of(found)), BOOL)
            case _:
                pass
        return self.reduced(map_children(expr, self))

    def equation(self, equation: Equation) -> Equation:
        """Return an equation at the solution; the same object if it lacks the index."""
        value, place = self(equation.value), self(equation.place)
        if value is equation.value and place is equation.place:
            return equation
        return Equation(value, place)

    def _along(self, path: ir.Path) -> ir.Path:
        return tuple(
            (
                replace(step, place=self._moved(step.place, step.length))
                if isinstance(step, ir.At)
                else step
            )
            for step in path
        )

    def _moved(self, subscript: ir.Subscript, extent: ir.Extent) -> ir.Subscript:
        """Return a subscript at the solution; one that was clamped is still kept inside.

        `i / 2` is clamped, as it is not affine; the affine value that replaces it would not
        be, so its clamp is written out.
        """
        old = subscript_value(subscript)
        value = self(old)
        if affine_form(old) is None and affine_form(value) is not None:
            value = self.clamped(value, extent)
        return as_subscript(value)

    def _by_equation(self, expr: ir.Expr, by: Equation) -> ir.Expr | None:
        """Return an integer with the index eliminated by the equation, if it can be."""
        own = coefficient(form_of(expr), ir.IndexValue(self.index))
        solved = coefficient(form_of(by.value), ir.IndexValue(self.index))
        if own is None or solved is None or not own[0]:
            return None
        times = _ratio(own[0], solved[0])
        if times is None or any(
            self.index in free_indices(v) for v in variables(own[1])
        ):
            return None
        difference = combined("-", form_of(by.place), solved[1])
        return value_of(combined("+", own[1], scaled(difference, times)))


def _sides(form: Form) -> tuple[ir.Expr, ir.Expr]:
    """Return the two sides of a comparison with 0: `i < n`, not `i - n < 0`."""
    right = {m: -f for m, f in form.items() if f < 0}
    left = {m: f for m, f in form.items() if f > 0}
    return value_of(left), value_of(right)


def _ratio(form: Form, by: Form) -> int | None:
    """Return how many times a form is another one, None if it is no whole number of times."""
    if form.keys() != by.keys():
        return None
    ratios = {form[m] // by[m] if form[m] % by[m] == 0 else None for m in form}
    return ratios.pop() if len(ratios) == 1 else None
