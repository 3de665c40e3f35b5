"""Gradients of recurrences: the adjoint is a recurrence in the other direction.

h[t] = a[t] * h[t - 1] + b[t]     has     dh[t] = dy[t] + a[t + 1] * dh[t + 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from kerngen.gradient.render import rendered
from kerngen.gradient.terms import Term, substituted
from kerngen.ir import nodes as ir
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children

_F32: Final = Scalar.F32


@final
@dataclass(frozen=True)
class Back:
    """The adjoint of the recurrence `of`, a let called `name` that runs the other way.

    `along` is how `of` reads itself: which index, and in which direction.
    """

    of: ir.Statement
    along: Recurrence
    name: str

    @cached_property
    def places(self) -> tuple[ir.Index, ...]:
        """The indices of the adjoint."""
        return tuple(
            replace(index, name=f"{index.name}#{self.name}")
            for index in self.of.indices
        )

    @cached_property
    def target(self) -> ir.Tensor:
        """The tensor of the adjoint, a let."""
        return replace(self.of.target, name=self.name, role=ir.Role.LET)

    @property
    def own(self) -> ir.Load:
        """The adjoint of a step, read at the step's own indices."""
        return ir.Load(self.target, tuple(map(ir.IndexValue, self.of.indices)))

    def statement(self, terms: list[Term], steps: list[Term]) -> ir.Statement:
        """Return the statement of the adjoint: terms of its uses, plus terms of its steps."""
        renaming = dict(
            zip(self.of.indices, map(ir.IndexValue, self.places), strict=True)
        )
        first = substituted(rendered(terms), renaming)
        value = ir.Binary("+", first, rendered(steps), _F32)
        back = replace(self.along, descending=not self.along.descending)
        return ir.Statement(self.target, self.places, value, along=back)


def copies_in(forward: tuple[ir.Statement, ...]) -> dict[ir.Tensor, ir.Tensor]:
    """Return each recurrence that a given output is a copy of, with that output.

    If the caller passes y of `y[i, t] = h[i, t]`, it is read instead of h.  The simplifier
    does not find such copies, as it has no definitions of recurrences.
    """
    recurrences = {s.target for s in forward if s.along}
    return {
        s.value.tensor: s.target
        for s in forward
        if s.target.role is ir.Role.INPUT and isinstance(s.value, ir.Load)
        if s.value.tensor in recurrences
        and s.value.subscripts == tuple(map(ir.IndexValue, s.indices))
    }


def read_from(
    copies: Mapping[ir.Tensor, ir.Tensor], statement: ir.Statement
) -> ir.Statement:
    """Return a statement that reads given copies instead of the lets."""

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if isinstance(expr, ir.Load) and expr.tensor in copies:
            return replace(expr, tensor=copies[expr.tensor])
        return expr

    return replace(statement, value=visit(statement.value)) if copies else statement
