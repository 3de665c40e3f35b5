"""The verifier of stages: invariants that every strategy relies on."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.ir.analysis.reads import are_apart, is_at, loads, outer_reductions
from kerngen.ir.nodes import Expr, Load, LocalValue, Role, Tensor
from kerngen.ir.staging.stages import Define, Stage, StagedKernel, Write
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk


def verify_stages(staged: StagedKernel) -> list[str]:
    """Return the violated invariants of a kernel's stages; each is a bug of kerngen."""
    faults = [fault for stage in staged.stages for fault in _stage(stage)]
    return faults + list(_order(staged))


def _stage(stage: Stage) -> Iterator[str]:
    values = [step.value for step in stage.steps]
    reductions = [found for value in values for found in outer_reductions(value)]
    if len(reductions) > 1 and stage.loop is None:
        yield f"{stage.name}: {len(reductions)} reductions side by side"
    for reduce in reductions:
        if any(_locals(reduce.body)) and stage.loop is None:
            yield f"{stage.name}: a reduction reads a local"
    # Step by step: locals are defined before they are read, and tensors read before written.
    defined: set[LocalValue] = set(_registers(stage))
    written: set[Tensor] = set()
    writes = [step for step in stage.steps if isinstance(step, Write)]
    for step in stage.steps:
        unknown = set(_locals(step.value)) - defined
        yield from (f"{stage.name}: undefined local {x.name}" for x in unknown)
        for load in loads(step.value):
            if load.tensor in written:
                yield f"{stage.name}: reads {load.tensor.name} after writing it"
            elif any(
                _clash(load, write, stage) and not _is_of_earlier_turns(stage)
                for write in writes
            ):
                yield f"{stage.name}: reads {load.tensor.name} elsewhere and writes it"
        match step:
            case Define(local=local):
                if local in defined:
                    yield f"{stage.name}: defines {local.name} twice"
                defined.add(local)
            case Write(tensor=tensor):
                # A part is read from memory again, by the invocation that wrote it.
                if not step.is_partial:
                    written.add(tensor)


def _registers(stage: Stage) -> Iterator[LocalValue]:
    """Yield the locals that a loop defines, and no step."""
    if stage.loop:
        yield from (local for state in stage.loop.states for local in state.before)
        yield from (capture.local for capture in stage.loop.captures)


def _is_of_earlier_turns(stage: Stage) -> bool:
    """Whether each turn is a dispatch, and so may read what earlier turns have written."""
    return stage.loop is not None and not stage.loop.states


def _clash(load: Load, write: Write, stage: Stage) -> bool:
    """Whether a read may be of an element or part that another invocation writes."""
    if isinstance(write.value, StoreAt) and load.tensor == write.tensor:
        return load.subscripts != write.value.places
    own = stage.domain[: load.tensor.rank]
    is_own = is_at(load, own) and (own == stage.domain or load.path == write.path)
    same = load.tensor == write.tensor
    return same and not is_own and not are_apart(load.path, write.path)


def _locals(expr: Expr) -> Iterator[LocalValue]:
    return (node for node in walk(expr) if isinstance(node, LocalValue))


def _order(staged: StagedKernel) -> Iterator[str]:
    """Yield temporaries that are read too early or of bool, and outputs never written."""
    written: set[Tensor] = set()
    for stage in staged.stages:
        # Where each turn is a dispatch, a stage reads its own writes of earlier turns.
        if _is_of_earlier_turns(stage):
            written.update(s.tensor for s in stage.steps if isinstance(s, Write))
        for step in stage.steps:
            for load in loads(step.value):
                if load.tensor.role is Role.LET and load.tensor not in written:
                    yield f"{stage.name}: reads {load.tensor.name} before it is written"
            if isinstance(step, Write):
                written.add(step.tensor)
    bools = (t for t in staged.temporaries if t.element is Scalar.BOOL)
    yield from (f"{tensor.name} stores bools" for tensor in bools)
    missing = {x for x in staged.kernel.tensors if x.role is Role.OUTPUT} - written
    yield from (f"never writes {tensor.name}" for tensor in missing)
