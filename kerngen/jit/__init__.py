"""Kernels compiled to modules in memory, for notebooks and scripts."""

from __future__ import annotations

from kerngen.parts import COMPILER, needing

with needing("Compiling from Python", COMPILER):
    from kerngen.jit.compiling import (
        compile,  # noqa: A004 - `kerngen.compile` reads as what it does
        load,
    )
    from kerngen.jit.extension import load_ipython_extension
    from kerngen.jit.memory import KernelModule
    from kerngen.source.diagnostic import CompileError, CompileWarning

__all__ = [
    "CompileError",
    "CompileWarning",
    "KernelModule",
    "compile",
    "load",
    "load_ipython_extension",
]
