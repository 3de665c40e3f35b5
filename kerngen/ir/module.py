"""A checked `.kern` file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Function, Kernel
from kerngen.source.diagnostic import Diagnostic


@final
@dataclass(frozen=True, slots=True)
class Module:
    """A checked `.kern` file: its kernels, functions and structs.

    - `functions`: those in scope and all that they call, callees before callers
    - `imported`: the names of constants that other files define
    """

    path: str
    doc: str
    functions: tuple[Function, ...]
    kernels: tuple[Kernel, ...]
    imported: frozenset[str] = frozenset()
    structs: tuple[Struct, ...] = ()
    """Those that the file declares, in its order."""
    origins: tuple[Module, ...] = field(default=(), compare=False)
    """The files whose kernels have gradients in this one."""
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)
    """The warnings about legal parts of the file that are probably mistakes."""
