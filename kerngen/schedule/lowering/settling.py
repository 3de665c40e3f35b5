"""Recurrences that may stop early: once a step changes nothing, no later one does.

That holds where a step depends on nothing but the one before, as in `z * z + c`; the
first step is another one, chosen by a condition such as `s > 0`.  What is compared are
bits, so that the result is the same for NaN and for zeros of either sign.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.nodes import Binary, Expr, Index, IndexValue
from kerngen.ir.staging.stages import Stage, State, Write
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.ir.walk import children
from kerngen.plan.hostmath import I32_MAX
from kerngen.plan.size import COMPARISONS
from kerngen.shader import tree as t

FEW: Final = 16
"""Loops of this many steps are not worth a comparison in each."""

_FAR: Final = I32_MAX
"""Greater than any index."""


def settles(stage: Stage) -> bool:
    """Whether a stage's loop may end at the first step that changes no bit."""
    loop = stage.loop
    if loop is None or loop.descending:
        return False
    index, turns = stage.domain[loop.axis], stage.steps[loop.first : loop.end]
    return (
        not (isinstance(index.extent, int) and index.extent <= FEW)
        and not any(isinstance(step, Write) for step in turns)
        and all(capture.at is None for capture in loop.captures)
        and all(len(state.before) == 1 for state in loop.states)
        and not any(isinstance(state.now.type, Matrix) for state in loop.states)
        and all(_is_alike(step.value, index) for step in turns)
    )


def same_bits(state: State, now: t.Expr, before: t.Expr) -> t.Expr:
    """Return the condition that a value's bits equal those of the turn before."""
    type_ = state.now.type
    if scalar_of(type_) is Scalar.F32:
        now, before = (t.call(f"bitcast<{_bits(type_)}>", x) for x in (now, before))
    equal = t.Binary("==", now, before)
    return t.call("all", equal) if isinstance(type_, Vector) else equal


def _bits(type_: ValueType) -> str:
    return f"vec{type_.width}u" if isinstance(type_, Vector) else "u32"


def _is_alike(expr: Expr, index: Index) -> bool:
    """Whether an expression does not depend on which step it is, but for the first."""
    match expr:
        case IndexValue(index=other):
            return other != index
        case Binary(left=IndexValue(index=other), right=bound) if other == index:
            return _is_decided(expr.op, as_literal(bound))
        case _:
            return all(_is_alike(child, index) for child in children(expr))


def _is_decided(op: str, bound: int | None) -> bool:
    """Whether an index from 1 on compares in one way with a number: `s > 0` is true."""
    if op not in COMPARISONS or bound is None:
        return False
    around = (1, bound - 1, bound, bound + 1, _FAR)
    return len({COMPARISONS[op](s, bound) for s in around if s >= 1}) == 1
