"""The kernels of a selection of files, compiled for the occasion."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

from kerngen.bench.package import Compiled, functions, imported
from kerngen.compiler import Compiler
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
    made: dict[str, Compiled] = {}
    for name in names:
        with faults.collect():
            for each in (name, *library.closure(name)):
                if each not in made:
                    own = compiler.compile(each)
                    folder = PurePosixPath(own.module.path).parent
                    made[each] = Compiled(own, folder)
    faults.raise_if_any()
    with imported(made.values()) as modules:
        found: dict[str, list[Subject]] = {}
        for name in names:
            own = made[name].module
            callables = functions(own, modules[name])
            known = {each.name: each for each in own.module.functions}
            found[name] = [
                Subject(kernel, known, kernel_of(callables[kernel.name]))
                for kernel in own.module.kernels
            ]
        yield found
