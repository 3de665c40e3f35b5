"""A turn of a recurrence's loop, and the registers that carry values to the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.nodes import Binary, Expr, Index, IndexValue, Load, LocalValue
from kerngen.ir.staging.stages import Loop, Stage, State, Write
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.ir.walk import children, map_children
from kerngen.plan.hostmath import I32_MAX
from kerngen.plan.size import COMPARISONS
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import tree as t


def loop_of(stage: Stage) -> Loop:
    """Return the loop of a stage; the caller has checked that there is one."""
    assert stage.loop is not None, "the strategy fits recurrences alone"
    return stage.loop


def declare_registers(lowerer: Lowerer, loop: Loop) -> None:
    """Declare the registers that turns leave to later turns; WGSL sets them to 0.

    With a vector index, registers have the values of four neighbours.
    """
    wide = lowerer.vector is not None
    kept = [local for state in loop.states for local in state.before]
    kept += [capture.local for capture in loop.captures]
    for local in kept:
        name = lowerer.shader.name(local.name)
        lowerer.block.append(
            t.Var(name, type=wgsl_type(local.type, LANES if wide else 1))
        )
        lowerer.locals[local.name] = Value(t.Ident(name), wide)


def finish_turn(turn: Lowerer, stage: Stage, at: t.Expr) -> None:
    """Write, after a turn's steps, what is kept of it for later turns and for the end."""
    loop, known = loop_of(stage), turn.locals
    for capture in loop.captures:
        kept, value = (known[x.name].expr for x in (capture.local, capture.source))
        keep: t.Stmt = t.Assign(kept, value)
        if capture.at:
            wanted = known[capture.at.name].expr
            keep = t.If(t.Binary("==", wanted, t.call("i32", at)), (keep,))
        turn.block.append(keep)
    if settles(stage):
        same = t.all_of(t.Binary(">", at, t.ZERO), *_unchanged(turn, loop))
        turn.block.append(t.If(same, (t.Break(),)))
    for state in loop.states:
        values = [_register(turn, x) for x in (state.now, *state.before)]
        pairs = [*zip(values[1:], values, strict=False)]
        turn.block.extend(t.Assign(old, new) for old, new in reversed(pairs))


def replacing(turn: Lowerer, reads: Mapping[Load, Value]) -> Callable[[Expr], Expr]:
    """Return a function that replaces reads by values that a turn knows."""
    known = {x: LocalValue(f"read {n}", x.type) for n, x in enumerate(reads)}
    turn.locals.update({known[load].name: value for load, value in reads.items()})

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr in known:
            return known[expr]
        return map_children(expr, visit)

    return visit


def _register(turn: Lowerer, local: LocalValue) -> t.Expr:
    """Return a value as registers have it: with a vector index, of four neighbours."""
    value = turn.locals[local.name]
    return value.expr if turn.vector is None else turn.widen(value, local.type)


def _unchanged(turn: Lowerer, loop: Loop) -> Iterator[t.Expr]:
    for state in loop.states:
        now, before = (turn.locals[x.name].expr for x in (state.now, state.before[0]))
        yield same_bits(state, now, before)


# Recurrences that may stop early: once a step changes nothing, no later one does.
#
# That holds where a step depends on nothing but the one before, as in `z * z + c`; the
# first step is another one, chosen by a condition such as `s > 0`.  What is compared are
# bits, so that the result is the same for NaN and for zeros of either sign.


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
