"""Loops of recurrences along memory: blocks of four turns, read and written as vectors.

Where memory is contiguous along a recurrence, consecutive turns are neighbours in memory.
An invocation then reads and writes vectors of four, as it would otherwise access a whole
cache line for each number:

    for (var block = 0u; block < u.n; block += 4u) {
        let x_4 = x[...];
        var y_4: vec4f;
        {  // turn 0
            let h = select(x_4.x, u.decay * h_before + ..., i32(block) > 0);
            y_4.x = h;
            h_before = h;
        }
        ...
        y[...] = y_4;
    }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard

from kerngen.ir.analysis.reads import is_at, loads
from kerngen.ir.nodes import Expr, Index, IndexValue, Load, Subscript
from kerngen.ir.staging.stages import Define, Stage, Step, Write
from kerngen.ir.types import Scalar
from kerngen.schedule.lowering.addresses import vector_address
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.steps import tensors_in_runs
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.recurrence.turn import finish_turn, loop_of, replacing
from kerngen.shader import tree as t


def turns_of(stage: Stage) -> tuple[Step, ...]:
    """Return the steps inside of a stage's loop, which each turn runs."""
    loop = loop_of(stage)
    return stage.steps[loop.first : loop.end]


def in_vectors(stage: Stage) -> set[str]:
    """Return the names of tensors that turns can read or write as vectors of four.

    The set is empty if the recurrence does not run along memory, or if a turn writes a tensor
    that can't be written in vectors.
    """
    loop = loop_of(stage)
    index = stage.domain[loop.axis]
    if index != stage.domain[-1]:
        return set()
    # Reads: by vectors along t, at the stage's own indices, and only within the loop.
    steps = turns_of(stage)
    writes = [step for step in steps if isinstance(step, Write)]
    others = [
        s.value for n, s in enumerate(stage.steps) if not loop.first <= n < loop.end
    ]
    found = tensors_in_runs(tuple(step.value for step in steps), index)
    found -= {
        load.tensor.name
        for step in steps
        for load in _odd(step.value, stage.domain, index)
    }
    found -= {load.tensor.name for v in others for load in loads(v)}
    # Writes: whole elements of a tensor over the domain.  If the tensor is read, too, that
    # must be by vectors at the own element, as a block's vector is stored at its end.
    read = {load.tensor.name for load in stage.reads}
    own = tuple(i.extent for i in stage.domain)
    for write in writes:
        tensor = write.tensor
        fits = tensor.extents == own and isinstance(tensor.element, Scalar)
        at_own = all(is_at(x, stage.domain) for x in stage.reads if x.tensor == tensor)
        is_free = tensor.name not in read or (tensor.name in found and at_own)
        if not fits or tensor.is_half or write.is_partial or not is_free:
            return set()
        found.add(tensor.name)
    return found if writes else set()


def write_blocks(lowerer: Lowerer, stage: Stage, names: set[str]) -> t.Stmt:
    """Return the loop over blocks of four turns; tensors in `names` are read as vectors.

    In a descending recurrence, a block begins with the last component of its vectors.
    """
    shader, loop = lowerer.shader, loop_of(stage)
    index = stage.domain[loop.axis]
    end, block = shader.extent(index.extent), t.Ident(shader.fresh("block"))
    inner = lowerer.nested({})
    first = t.Ident(shader.fresh("first"))
    start = end - LANES - block if loop.descending else block
    inner.block.append(t.Let(first.name, start))
    inner.at[index] = first
    whole = _read_whole(inner, stage, names)
    written = declare_written(inner, stage)
    for turn in range(LANES):
        number = LANES - 1 - turn if loop.descending else turn
        body = inner.nested({})
        write_turn(body, stage, first + number, COMPONENTS[number], whole, written)
        inner.block.append(t.Block(f"turn {turn}", tuple(body.block)))
    store_written(inner, stage, written)
    return t.count_up(block.name, 0, end, LANES, *inner.block)


def store_written(lowerer: Lowerer, stage: Stage, written: dict[str, t.Expr]) -> None:
    """Emit the stores of the vectors that a block has computed.

    `written` has the variable of each vector, by its tensor's name.
    """
    for write in turns_of(stage):
        if isinstance(write, Write):
            buffer = lowerer.shader.buffer(write.tensor)
            at = [lowerer.at[i] for i in stage.domain]
            address = vector_address(lowerer.shader, write.tensor.extents, at)
            lowerer.block.append(buffer.store(address, written[write.tensor.name]))


def _read_whole(lowerer: Lowerer, stage: Stage, names: set[str]) -> dict[Load, t.Expr]:
    """Write the reads of a block's vectors; return the variable for each."""
    found: dict[Load, t.Expr] = {}
    for load in in_blocks(stage, names):
        name = lowerer.shader.fresh(f"{load.tensor.name}_4")
        lowerer.block.append(t.Let(name, vector_read(lowerer, load)))
        found[load] = t.Ident(name)
    return found


def in_blocks(stage: Stage, names: set[str]) -> tuple[Load, ...]:
    """Return a turn's distinct reads of tensors in `names`, which are bound as vectors."""
    found = (load for step in turns_of(stage) for load in loads(step.value))
    return tuple(dict.fromkeys(x for x in found if x.tensor.name in names))


def vector_read(lowerer: Lowerer, load: Load) -> t.Expr:
    """Return the read of a whole vector; each turn of the block uses one of its components."""
    at = [lowerer.at[s.index] for s in load.subscripts if _is_bare(s)]
    address = vector_address(lowerer.shader, load.tensor.extents, at)
    return lowerer.shader.buffer(load.tensor).load(address)


def declare_written(lowerer: Lowerer, stage: Stage) -> dict[str, t.Expr]:
    """Declare a vector for each tensor that a turn writes; return them by name of tensor."""
    found: dict[str, t.Expr] = {}
    for step in turns_of(stage):
        if isinstance(step, Write):
            name = lowerer.shader.fresh(f"{step.tensor.name}_4")
            assert isinstance(step.tensor.element, Scalar), "checked by in_vectors"
            type_ = wgsl_type(step.tensor.element, LANES)
            lowerer.block.append(t.Var(name, type=type_))
            found[step.tensor.name] = t.Ident(name)
    return found


def write_turn(
    turn: Lowerer,
    stage: Stage,
    at: t.Expr,
    component: str,
    whole: dict[Load, t.Expr],
    written: dict[str, t.Expr],
) -> None:
    """Emit one turn of a block, which uses `component` of each vector.

    `at` is the recurrence's index in this turn; `whole` and `written` have the variables of the
    vectors that are read and written.
    """
    index = stage.domain[loop_of(stage).axis]
    turn.at[index] = at
    visit = of_component(turn, component, whole)
    for step in turns_of(stage):
        value = visit(step.value)
        match step:
            case Define(local):
                turn.define(local, value)
            case Write(tensor):
                named = replace(turn, label=tensor.name)
                place = t.Member(written[tensor.name], component)
                turn.block.append(t.Assign(place, named.lower(value).expr))
    finish_turn(turn, stage, at)


def of_component(
    turn: Lowerer, component: str, whole: dict[Load, t.Expr]
) -> Callable[[Expr], Expr]:
    """Return a function on expressions that replaces reads by `component` of their vectors.

    `whole` has the variable of each read's vector.
    """
    reads = {load: Value(t.Member(four, component)) for load, four in whole.items()}
    return replacing(turn, reads)


def _odd(expr: Expr, domain: tuple[Index, ...], index: Index) -> Iterator[Load]:
    """Yield the reads that can't be by vectors: not of scalars, or at computed subscripts."""
    for load in loads(expr):
        tensor = load.tensor
        is_plain = isinstance(tensor.element, Scalar) and not tensor.is_half
        fits = is_plain and tensor.extents[-1:] == (index.extent,)
        own = (_is_bare(s) and s.index in domain for s in load.subscripts)
        if not fits or not all(own):
            yield load


def _is_bare(subscript: Subscript) -> TypeGuard[IndexValue]:
    return isinstance(subscript, IndexValue)
