"""`max` and `min` of floats by integer ranks, so that NaN wins on every adapter.

WGSL lets `max` and `min` of f32 return either argument if one is not a number.  So shaders
compare ranks, integers in the order of floats, with NaN beyond all others:

    max[j] x[i, j]   becomes   max_value(max[j] max_rank(x[i, j]))

A NaN among the terms is then the result, as in NumPy, in whatever order they are taken.
Two zeros differ: -0.0 is below 0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kerngen.ir.analysis.conditions import conditional, unconditional
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.nodes import BuiltinCall, Expr, Reduce
from kerngen.ir.staging.stages import Stage, StagedKernel
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.ir.walk import map_children
from kerngen.schedule.task import Task

_HELPERS: Final[Mapping[str, str]] = {
    f"{kind} {part}": f"{kind}_{part}"
    for kind in ("max", "min")
    for part in ("rank", "value")
}
"""The names of the helpers in shaders, by the names of built-ins that no user can write."""


def helper_of(builtin: str) -> str:
    """Return the name of the shader's helper that computes a built-in, or "" if WGSL has it."""
    if builtin in _HELPERS:
        return _HELPERS[builtin]
    helper = BUILTINS[builtin].helper
    return helper.name if helper else ""


def ranked(task: Task) -> Task:
    """Return `task` with each `max` and `min` of floats replaced by that of integer ranks."""
    return replace(task, staged=_ranked(task.staged), stage=_ranked_stage(task.stage))


@cached_on_instance
def _ranked(staged: StagedKernel) -> StagedKernel:
    return replace(staged, stages=tuple(map(_ranked_stage, staged.stages)))


@cached_on_instance
def _ranked_stage(stage: Stage) -> Stage:
    steps = tuple(replace(s, value=_with_ranks(s.value)) for s in stage.steps)
    return stage if steps == stage.steps else replace(stage, steps=steps)


def _with_ranks(expr: Expr) -> Expr:
    inner = map_children(expr, _with_ranks)
    if not isinstance(inner, Reduce) or inner.kind not in {"max", "min"}:
        return inner
    is_float = scalar_of(inner.type) is Scalar.F32
    return _reduced(conditional(inner)) if is_float else inner


def _reduced(reduce: Reduce) -> Expr:
    # The rank is taken under the condition: a term that is left out is the least integer.
    type_ = _integers(reduce.type)
    rank = BuiltinCall(f"{reduce.kind} rank", (reduce.body,), type_)
    whole = unconditional(replace(reduce, body=rank, type=type_))
    return BuiltinCall(f"{reduce.kind} value", (whole,), reduce.type)


def _integers(type_: ValueType) -> ValueType:
    assert not isinstance(type_, Matrix), "matrices are neither greater nor less"
    return Vector(Scalar.I32, type_.width) if isinstance(type_, Vector) else Scalar.I32
