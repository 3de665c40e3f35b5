"""A turn of a recurrence's loop, and the registers that carry values to the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kerngen.ir.nodes import Expr, Load, LocalValue
from kerngen.ir.staging.stages import Loop, Stage
from kerngen.ir.walk import map_children
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.settling import same_bits, settles
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
