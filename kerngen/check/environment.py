"""What the expressions of one place may use, beside the names in its scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.ir.nodes import RangeCheck
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span


@final
@dataclass(frozen=True, slots=True)
class FormalParameter:
    """A parameter of a function; its type is None where it was faulty."""

    name: str
    type: Scalar | None
    span: Span


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """What a call of a function needs to know."""

    name: str
    parameters: tuple[FormalParameter, ...]
    result: Scalar | None


Signatures: TypeAlias = dict[str, Signature]


@final
@dataclass(frozen=True)
class Environment:
    """One kernel, function or constant while it is checked.

    `place` is "kernel", "function" or "constant".  `later` holds the names that a
    statement further down defines, `indices` every index seen so far, `bound` the
    indices that reductions of the current statement bind.
    """

    faults: Faults
    functions: Signatures
    place: str
    later: dict[str, Span] = field(default_factory=dict[str, Span])
    written: set[str] = field(default_factory=set[str])
    checks: list[RangeCheck] = field(default_factory=list[RangeCheck])
    indices: dict[str, Span] = field(default_factory=dict[str, Span])
    bound: set[str] = field(default_factory=set[str])
    reported: set[str] = field(default_factory=set[str])
    unbound: set[str] = field(default_factory=set[str])

    def next_statement(self) -> None:
        """Forget what holds within one statement only."""
        self.bound.clear()
        self.unbound.clear()
