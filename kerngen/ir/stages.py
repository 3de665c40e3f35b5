"""Stages: the dispatches that a kernel becomes, in order, before schedules are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.ir.nodes import Cast, Expr, Index, Kernel, LocalValue, Tensor
from kerngen.ir.types import Scalar


@final
@dataclass(frozen=True, slots=True)
class Define:
    """Compute a value once per element of the domain."""

    local: LocalValue
    value: Expr
    text: str = field(default="", compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Write:
    """Store a value at the domain's own element of `tensor`."""

    tensor: Tensor
    value: Expr
    text: str = field(default="", compare=False, repr=False)


Step: TypeAlias = Define | Write


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """Steps done in order for every element of `domain`; elements are independent.

    At most one `Reduce` stands outside of other reductions; its body reads no local.  A
    tensor that is written is read only at the element written, and before that.
    """

    name: str
    domain: tuple[Index, ...]
    steps: tuple[Step, ...]


@final
@dataclass(frozen=True, slots=True)
class StagedKernel:
    """A kernel, its stages in order, and the temporaries that connect them."""

    kernel: Kernel
    stages: tuple[Stage, ...]
    temporaries: tuple[Tensor, ...]


def computed_by(step: Step) -> str:
    """Return the name of the value that a step computes."""
    return step.local.name if isinstance(step, Define) else step.tensor.name


def as_stored(value: Expr, tensor: Tensor) -> Expr:
    """Return what a tensor gives back of a value that is written to it."""
    is_kept_whole = not tensor.is_half or (isinstance(value, Cast) and value.is_halved)
    return value if is_kept_whole else Cast(value, Scalar.F32, is_halved=True)
