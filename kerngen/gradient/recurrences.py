"""Gradients of recurrences: the adjoint is a recurrence in the other direction.

h[t] = a[t] * h[t - 1] + b[t]     has     dh[t] = dy[t] + a[t + 1] * dh[t + 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from kerngen.gradient.render import rendered
from kerngen.gradient.terms import ONE, Term, substituted
from kerngen.ir.nodes import (
    Binary,
    Expr,
    Index,
    IndexValue,
    Load,
    Role,
    Statement,
    Tensor,
)
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children

_F32: Final = Scalar.F32


@final
@dataclass(frozen=True)
class Back:
    """The adjoint of the recurrence `of`."""

    of: Statement
    along: Recurrence
    name: str

    @cached_property
    def places(self) -> tuple[Index, ...]:
        """The indices of the adjoint."""
        return tuple(
            replace(index, name=f"{index.name}#{self.name}")
            for index in self.of.indices
        )

    @cached_property
    def target(self) -> Tensor:
        """The tensor of the adjoint, a let."""
        return replace(self.of.target, name=self.name, role=Role.LET)

    @property
    def own(self) -> Term:
        """The adjoint of a step, as a term that it hands to earlier steps."""
        at = tuple(map(IndexValue, self.of.indices))
        return Term(factors={Load(self.target, at): ONE})

    def statement(self, terms: list[Term], steps: list[Term]) -> Statement:
        """Return the statement of the adjoint: terms of later uses, and of later steps."""
        renaming = dict(zip(self.of.indices, map(IndexValue, self.places), strict=True))
        first = substituted(rendered(terms), renaming)
        value = Binary("+", first, rendered(steps), _F32)
        back = replace(self.along, descending=not self.along.descending)
        return Statement(self.target, self.places, value, along=back)


def copies_in(forward: tuple[Statement, ...]) -> dict[Tensor, Tensor]:
    """Return the lets that given outputs are copies of: `y[i, t] = h[i, t]` given y.

    A recurrence is not inlined by the definitions of its lets, so copies must be found
    here.
    """
    recurrences = {s.target for s in forward if s.along}
    return {
        s.value.tensor: s.target
        for s in forward
        if s.target.role is Role.INPUT and isinstance(s.value, Load)
        if s.value.tensor in recurrences
        and s.value.subscripts == tuple(map(IndexValue, s.indices))
    }


def read_from(copies: Mapping[Tensor, Tensor], statement: Statement) -> Statement:
    """Return a statement that reads given copies instead of the lets."""

    def visit(expr: Expr) -> Expr:
        expr = map_children(expr, visit)
        if isinstance(expr, Load) and expr.tensor in copies:
            return replace(expr, tensor=copies[expr.tensor])
        return expr

    return replace(statement, value=visit(statement.value)) if copies else statement
