"""A turn of a recurrence's loop, and the registers that carry values to the next turns.

A state has a register for each turn that is read back: for `h[t - 1]` and `h[t - 2]`, these
are `h_before` and `h_before_2`, which move on at the end of a turn:

    let h = ...;                    // reads both registers
    h_before_2 = h_before;
    h_before = h;
"""

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
    """Return the loop of a stage, which must be a recurrence."""
    assert stage.loop is not None, "the strategy fits recurrences alone"
    return stage.loop


def declare_registers(lowerer: Lowerer, loop: Loop) -> None:
    """Declare the registers of states and captures; WGSL sets them to 0.

    If the lowerer has a vector index, a register has the values of four neighbours.
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
    """Emit the end of turn `at`: set captures, end a settled loop, move registers.

    A capture is a value that is read after the loop: that of the last turn, or of the turn
    that the capture names.
    """
    loop, known = loop_of(stage), turn.locals
    for capture in loop.captures:
        kept, value = (known[x.name].expr for x in (capture.local, capture.source))
        keep: t.Stmt = t.Assign(kept, value)
        if capture.at:
            wanted = known[capture.at.name].expr
            keep = t.If(t.Binary("==", wanted, t.call("i32", at)), (keep,))
        turn.block.append(keep)
    # if (s > 0u && bitcast<u32>(z) == bitcast<u32>(z_before)) { break; }
    if settles(stage):
        same = t.all_of(t.Binary(">", at, t.ZERO), *_unchanged(turn, loop))
        turn.block.append(t.If(same, (t.Break(),)))
    # The oldest register first, so that none is overwritten before it has moved on.
    for state in loop.states:
        values = [_register(turn, x) for x in (state.now, *state.before)]
        pairs = [*zip(values[1:], values, strict=False)]
        turn.block.extend(t.Assign(old, new) for old, new in reversed(pairs))


def replacing(turn: Lowerer, reads: Mapping[Load, Value]) -> Callable[[Expr], Expr]:
    """Return a function on expressions that replaces `reads` by their values in this turn."""
    known = {x: LocalValue(f"read {n}", x.type) for n, x in enumerate(reads)}
    turn.locals.update({known[load].name: value for load, value in reads.items()})

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr in known:
            return known[expr]
        return map_children(expr, visit)

    return visit


def _register(turn: Lowerer, local: LocalValue) -> t.Expr:
    """Return a value as a register has it: as a vector of four with a vector index."""
    value = turn.locals[local.name]
    return value.expr if turn.vector is None else turn.widen(value, local.type)


def _unchanged(turn: Lowerer, loop: Loop) -> Iterator[t.Expr]:
    """Yield the condition of each state that the turn has not changed it."""
    for state in loop.states:
        now, before = (turn.locals[x.name].expr for x in (state.now, state.before[0]))
        yield same_bits(state, now, before)


# Recurrences that may end early: once a turn changes no state, no later turn does.
#
# That holds where all turns but the first compute the same function of the turn before, as
# `z * z + c` does: they read the recurrence's index only in comparisons such as `s > 0`,
# which are the same in all turns but the first.  States are compared by bits, so that a NaN
# equals itself, and 0.0 differs from -0.0.


FEW: Final = 16
"""Loops of up to this many turns, if that is a literal, are not worth the comparisons."""

_FAR: Final = I32_MAX
"""Greater than any index."""


def settles(stage: Stage) -> bool:
    """Whether a stage's loop may end early, at the first turn that changes no bit of a state.

    Its turns must store nothing, as the turns left out would have to store, too.
    """
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
    """Return the WGSL condition that `now` and `before`, values of a state, have equal bits."""
    type_ = state.now.type
    if scalar_of(type_) is Scalar.F32:
        now, before = (t.call(f"bitcast<{_bits(type_)}>", x) for x in (now, before))
    equal = t.Binary("==", now, before)
    return t.call("all", equal) if isinstance(type_, Vector) else equal


def _bits(type_: ValueType) -> str:
    return f"vec{type_.width}u" if isinstance(type_, Vector) else "u32"


def _is_alike(expr: Expr, index: Index) -> bool:
    """Whether an expression is the same function in all turns but the first."""
    match expr:
        case IndexValue(index=other):
            return other != index
        case Binary(left=IndexValue(index=other), right=bound) if other == index:
            return _is_decided(expr.op, as_literal(bound))
        case _:
            return all(_is_alike(child, index) for child in children(expr))


def _is_decided(op: str, bound: int | None) -> bool:
    """Whether `s op bound` is the same for all s from 1 on, as `s > 0` is."""
    if op not in COMPARISONS or bound is None:
        return False
    # A comparison changes at its bound alone, so that values around it represent all others.
    around = (1, bound - 1, bound, bound + 1, _FAR)
    return len({COMPARISONS[op](s, bound) for s in around if s >= 1}) == 1
