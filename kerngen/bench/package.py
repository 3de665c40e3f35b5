"""Compiled sources as modules that can be called, for as long as a block lasts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final, final

from kerngen.compiler import CompiledModule, Compiler
from kerngen.emit.module_name import module_name
from kerngen.emit.python_names import module_names
from kerngen.syntax.library import Library

_NUMBERS: Final = count()


@final
@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled source, and where in the output its module belongs."""

    module: CompiledModule
    folder: PurePosixPath = field(default_factory=PurePosixPath)

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.module.module.path

    @property
    def stem(self) -> str:
        """The name of its Python module."""
        return module_name(self.name)


@contextmanager
def imported(sources: Iterable[Compiled]) -> Generator[Mapping[str, ModuleType]]:
    """Write sources to a temporary package, and yield its modules by source.

    They can be called inside of the block, and are forgotten behind it.
    """
    name = f"_kerngen_bench_{next(_NUMBERS)}"
    with TemporaryDirectory(prefix="kerngen-") as parent:
        root = Path(parent) / name
        made = [*sources]
        for source in made:
            for path, data in source.module.files.items():
                file = root / source.folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        sys.path.insert(0, parent)
        importlib.invalidate_caches()
        try:
            yield {source.name: _import(name, source) for source in made}
        finally:
            sys.path.remove(parent)
            for module in [*sys.modules]:
                if module.partition(".")[0] == name:
                    del sys.modules[module]


def _import(package: str, source: Compiled) -> ModuleType:
    return importlib.import_module(
        ".".join((package, *source.folder.parts, source.stem))
    )


def functions(
    source: CompiledModule, module: ModuleType
) -> dict[str, Callable[..., Any]]:
    """Return the functions of a module's kernels by the kernels' names, in their order."""
    names = module_names(source.module).kernels
    kernels = (program.staged.kernel.name for program in source.programs)
    return {name: getattr(module, names[name].function) for name in kernels}


def compile_closure(library: Library, name: str) -> tuple[Compiled, ...]:
    """Compile a source and all whose modules it imports; raise CompileError of all."""
    compiler = Compiler(library, formatted=False)
    own = compiler.compile(name)
    if not own.used:
        return (Compiled(own),)
    others = (
        compiler.compile(other) for other in library.closure(name) if other != name
    )
    return tuple(
        Compiled(each, PurePosixPath(each.module.path).parent)
        for each in (own, *others)
    )
