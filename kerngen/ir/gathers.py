"""The gathers of a kernel: reads whose subscripts are clamped, not checked.

There is nothing to clamp to in an empty axis, so the host refuses those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Expr, Extent, IndexValue, Load, Reduce
from kerngen.ir.stages import StagedKernel
from kerngen.ir.walk import children


@final
@dataclass(frozen=True, slots=True)
class Gather:
    """An axis that is gathered from, for every index whose extent is in `around`."""

    tensor: str
    axis: int
    extent: Extent
    around: tuple[Extent, ...]


def gathers_of(staged: StagedKernel) -> tuple[Gather, ...]:
    """Return every gather of a kernel's stages once, in order.

    Stages, not statements, are what runs: one may run where its statement is empty.
    """
    found = (
        gather
        for stage in staged.stages
        for step in stage.steps
        for gather in _gathers(
            step.value, tuple(index.extent for index in stage.domain)
        )
    )
    return tuple(dict.fromkeys(found))


def _gathers(expr: Expr, around: tuple[Extent, ...]) -> Iterator[Gather]:
    match expr:
        case Reduce(indices=indices, body=body):
            yield from _gathers(body, (*around, *(index.extent for index in indices)))
            return
        case Load(tensor=tensor, subscripts=subscripts):
            for axis, subscript in enumerate(subscripts):
                if not isinstance(subscript, IndexValue):
                    yield Gather(tensor.name, axis, tensor.extents[axis], around)
        case _:
            pass
    for child in children(expr):
        yield from _gathers(child, around)
