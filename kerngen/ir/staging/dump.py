"""Stages as text, for tests and for reading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kerngen.ir.dump import dump_expr
from kerngen.ir.nodes import Tensor
from kerngen.ir.staging.stages import Define, Stage, StagedKernel, Step, Write

_INDENT = "    "


def dump_stages(staged: StagedKernel) -> str:
    """Return a kernel's temporaries and stages as text."""
    lines = [f"kernel {staged.kernel.name}"]
    lines += (f"{_INDENT}temporary {_typed(tensor)}" for tensor in staged.temporaries)
    for stage in staged.stages:
        lines += (_INDENT + line for line in _stage(stage))
    return "\n".join(lines) + "\n"


def _typed(tensor: Tensor) -> str:
    axes = ", ".join(map(str, tensor.extents))
    return f"{tensor.name}: {tensor.memory.spelling}[{axes}]"


def _stage(stage: Stage) -> Iterator[str]:
    domain = ", ".join(f"{index.name} < {index.extent}" for index in stage.domain)
    yield f"stage {stage.name}[{domain}]"
    for number, step in enumerate(stage.steps):
        turns = stage.loop and stage.loop.first <= number < stage.loop.end
        yield _INDENT + ("turn: " if turns else "") + _step(step)


def _step(step: Step) -> str:
    match step:
        case Define(local=local, value=value):
            type_ = local.type.spelling
            return f"define {local.name}: {type_} = {dump_expr(value)}"
        case Write(tensor=tensor, value=value):
            return f"write {tensor.name} = {dump_expr(value)}"
        case _:
            assert_never(step)
