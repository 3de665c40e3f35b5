"""Recognise affine recurrences: those whose step is `h[t] = a * h[t - 1] + b`.

Two such steps joined are one of the same form:

    a2 * (a1 * h + b1) + b2   =   (a2 * a1) * h + (a2 * b1 + b2)

Joining is associative, as addition is.  So lanes can join stretches of steps side by side,
which strategy `scan` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.ir.analysis.reads import holds_reduce
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.nodes import (
    Binary,
    Constant,
    Expr,
    LocalValue,
    Select,
    Unary,
)
from kerngen.ir.staging.stages import Define, Stage, Step, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children

_ZERO: Final = Constant(0.0, Scalar.F32)
_ONE: Final = Constant(1.0, Scalar.F32)


@final
@dataclass(frozen=True, slots=True)
class AffineStep:
    """A step of an affine recurrence: the state becomes `factor * before + term`.

    - `forgets`: 1 where the state before is not read, as at `t == 0`, else 0: a factor of
      0 alone would not do, as 0 times NaN or infinity is NaN
    - `free`: the definitions that do not depend on the state, and that the others may read

    The step

        let h[t] = if t > 0 { decay * h[t - 1] + x[t] } else { x[t] };

    has the factor `if t > 0 { decay } else { 0.0 }`, the term `x[t]`, and `forgets` is
    `if t > 0 { 0.0 } else { 1.0 }`.
    """

    factor: Expr
    term: Expr
    forgets: Expr
    free: tuple[Define, ...]

    @property
    def keeps_or_forgets(self) -> bool:
        """Whether the factor is 0, 1 or -1 at every step, as in sums of segments.

        Then so are all products of factors, and none overflows.
        """
        return _is_unit(self.factor)


def _is_unit(factor: Expr) -> bool:
    match factor:
        case Constant(value):
            return value in {-1, 0, 1}
        case Unary("-", operand):
            return _is_unit(operand)
        case Select(_, then, otherwise):
            return _is_unit(then) and _is_unit(otherwise)
        case _:
            return False


_Form: TypeAlias = "tuple[Expr, Expr, Expr]"
"""An expression's factor, term and `forgets`, as in `AffineStep`."""

_Known: TypeAlias = "Mapping[str, _Form | None]"
"""The locals that depend on the state before, by name: their form, or None if not affine."""


class _NotAffineError(Exception):
    """A value is not affine in the state before."""


@cached_on_instance
def affine_step(stage: Stage) -> AffineStep | str:
    """Return a recurrence's step in affine form, or the reason why it is not affine."""
    loop = stage.loop
    if loop is None:
        return "the stage is no recurrence"
    if len(loop.states) != 1 or loop.distance != 1:
        return "a step needs more than one number of those before"
    if loop.captures:
        return "what is left after the last step needs no scan"
    (state,) = loop.states
    if state.now.type is not Scalar.F32:
        return "its values are no f32"
    turns = stage.steps[loop.first : loop.end]
    if refusal := _refusal(turns):
        return refusal
    # The state before, h[t - 1], is 1 * h[t - 1] + 0.
    known: dict[str, _Form | None] = {state.before[0].name: (_ONE, _ZERO, _ZERO)}
    free: list[Define] = []
    for step in turns:
        if not isinstance(step, Define):
            continue
        if not _depends(step.value, known):
            free.append(step)
            continue
        # A local that is not affine is a fault only if the new state reads it.
        try:
            known[step.local.name] = _form(step.value, known)
        except _NotAffineError:
            known[step.local.name] = None
        if step.local == state.now:
            break
    form = known.get(state.now.name)
    if form is None:
        return "a step is not 'a * h + b' of the one before"
    return AffineStep(*form, tuple(free))


def _refusal(turns: tuple[Step, ...]) -> str:
    """Return why the steps of a turn can't be done in parallel, or ""."""
    for step in turns:
        if holds_reduce(step.value):
            return "its steps hold a reduction"
        if isinstance(step, Write) and not step.is_plain:
            return "it writes parts of elements, or at a position"
    return ""


def _depends(expr: Expr, known: _Known) -> bool:
    """Return whether an expression reads the state before, or a local that does."""
    if isinstance(expr, LocalValue):
        return expr.name in known
    return any(_depends(child, known) for child in children(expr))


def _form(expr: Expr, known: _Known) -> _Form:
    """Return an expression's affine form; raise `_NotAffineError` if it has none.

    `-(a h + b)` is `-a h - b`; sums and differences are taken part by part; a factor or
    divisor that does not read the state applies to both parts.  An `if` is an `if` in each
    part, where its condition does not read the state.
    """
    if not _depends(expr, known):
        return _ZERO, expr, _ONE
    match expr:
        case LocalValue(name=name):
            if (found := known[name]) is None:
                raise _NotAffineError
            return found
        case Unary(op="-", operand=operand):
            factor, term, forgets = _form(operand, known)
            return _negative(factor), _negative(term), forgets
        case Binary(op="+" | "-" as op, left=left, right=right):
            one, other = _form(left, known), _form(right, known)
            factor, term = (
                _joined(op, a, b) for a, b in zip(one[:2], other[:2], strict=True)
            )
            # A sum forgets the state only where both of its sides do.
            return factor, term, _times(one[2], other[2])
        case Binary(op="*", left=left, right=right):
            if _depends(right, known):
                left, right = right, left
            if _depends(right, known):
                raise _NotAffineError
            factor, term, forgets = _form(left, known)
            return _times(factor, right), _times(term, right), forgets
        case Binary(op="/", left=left, right=right) if not _depends(right, known):
            factor, term, forgets = _form(left, known)
            return _quotient(factor, right), _quotient(term, right), forgets
        case Select(condition, then, otherwise) if not _depends(condition, known):
            sides = zip(_form(then, known), _form(otherwise, known), strict=True)
            factor, term, forgets = (_chosen(condition, a, b) for a, b in sides)
            return factor, term, forgets
        case _:
            raise _NotAffineError


# Arithmetic on IR expressions that leaves out operations with 0 and 1: a + 0 is a, 1 * a is
# a, 0 * a is 0.


def _negative(expr: Expr) -> Expr:
    return expr if expr == _ZERO else Unary("-", expr, Scalar.F32)


def _joined(op: str, left: Expr, right: Expr) -> Expr:
    if right == _ZERO:
        return left
    if op == "-":
        return (
            _negative(right) if left == _ZERO else Binary("-", left, right, Scalar.F32)
        )
    return right if left == _ZERO else Binary("+", left, right, Scalar.F32)


def _times(left: Expr, right: Expr) -> Expr:
    if _ZERO in (left, right):
        return _ZERO
    if left == _ONE:
        return right
    return left if right == _ONE else Binary("*", left, right, Scalar.F32)


def _quotient(left: Expr, right: Expr) -> Expr:
    return left if left == _ZERO else Binary("/", left, right, Scalar.F32)


def _chosen(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    return then if then == otherwise else Select(condition, then, otherwise, Scalar.F32)
