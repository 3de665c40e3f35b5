"""The kernels of a selection of files, compiled for the occasion."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from kerngen.compiler import CompiledModule, Compiler
from kerngen.jit.memory import functions, installed
from kerngen.runtime.choices import kernel_of
from kerngen.source.diagnostic import Faults
from kerngen.syntax.library import Library
from kerngen.verify.meaning import Subject


@contextmanager
def subjects(
    library: Library, names: Sequence[str]
) -> Generator[dict[str, list[Subject]]]:
    """Yield the kernels of files, by file; raise CompileError with the faults of all.

    They can be called inside of the block.
    """
    compiler = Compiler(library, formatted=False)
    faults = Faults()
    made: dict[str, CompiledModule] = {}
    for name in names:
        with faults.collect():
            every = compiler.compile_with_used(name)
            made |= {each.module.path: each for each in every}
    faults.raise_if_any()
    with installed(made.values()) as modules:
        found: dict[str, list[Subject]] = {}
        for name in names:
            own = made[name]
            callables = functions(own, modules[name])
            known = {each.name: each for each in own.module.functions}
            found[name] = [
                Subject(kernel, known, kernel_of(callables[kernel.name]))
                for kernel in own.module.kernels
            ]
        yield found
