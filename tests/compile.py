"""Compile a text for a test, and import what came out.

`built` gives kernels that run anywhere, for as long as a block; `built_files` the modules of
several files; `loaded` a module for its bindings and references, kept; `emitted` the module's text; `checked` what the checker makes
of a text; `library_of` texts as the files that a compiler reads.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from kerngen.check.files.checker import Checker
from kerngen.compiler import Compiler, compile_text
from kerngen.gradient.item import derive_item
from kerngen.ir.module import Module
from kerngen.jit.memory import installed
from kerngen.runtime.calls.kernel import Kernel
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax.library import Library

DSL = Path(__file__).parents[1] / "dsl"
PATH = "dsl/sample.kern"
_numbers = count()


def library_of(
    texts: Mapping[str, str], root: str | None = None, beside: Path | None = None
) -> Library:
    """Return files that are texts; they may use those of the folder `beside`, too."""

    def read(name: str) -> Source:
        if name in texts:
            return Source(name, texts[name])
        if beside is None:
            raise FileNotFoundError(name)
        return Source(name, (beside / name).read_text("utf-8"))

    return Library(read, texts, root)


@contextmanager
def built(text: str) -> Generator[tuple[Kernel, ...]]:
    """Build a source in a folder that lasts as long as the block; give its kernels."""
    with built_module(text) as module:
        yield kernels_in(module)


@contextmanager
def built_module(text: str) -> Generator[ModuleType]:
    """Build a source in a folder that lasts as long as the block; give its module.

    It may use the standard sources.
    """
    name = f"built_{next(_numbers)}"
    path = f"{name}.kern"

    library = library_of({path: text}, beside=DSL)
    compiled = Compiler(library, formatted=False).compile(path)
    with imported_module(name, compiled.files) as module:
        yield module


@contextmanager
def unless_unfit(strategy: str) -> Generator[None]:
    """Allow that a strategy suits no stage of what is built in the block.

    Any other fault is an error, and so is one of the strategies that suit every stage.
    """
    try:
        yield
    except CompileError as error:
        if [fault.code for fault in error.diagnostics] != ["KG0751"]:
            raise
        assert strategy not in ("", "generic")


def kernels_in(module: ModuleType) -> tuple[Kernel, ...]:
    """Return the kernels of a generated module, in order."""
    return tuple(x for x in vars(module).values() if isinstance(x, Kernel))


@contextmanager
def imported(name: str, files: Mapping[str, bytes]) -> Generator[tuple[Kernel, ...]]:
    """Import a generated module for as long as the block; give its kernels."""
    with imported_module(name, files) as module:
        yield kernels_in(module)


@contextmanager
def imported_module(name: str, files: Mapping[str, bytes]) -> Generator[ModuleType]:
    """Import a generated module from a folder that lasts as long as the block."""
    with TemporaryDirectory() as folder:
        for path, content in files.items():
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        spec = importlib.util.spec_from_file_location(name, Path(folder) / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        yield module
        del sys.modules[name]


def with_generic_schedules(module: str, kernels: tuple[str, ...]) -> str:
    """A standard source in which every kernel is scheduled as `generic`.

    A kernel without a text of its own, which keeps what its gradient reads, can't be.
    """
    text = (DSL / f"{module}.kern").read_text("utf-8")
    kept = re.sub(r"^schedule [^}]*}$", "", text, flags=re.MULTILINE)
    written = {*re.findall(r"^kernel (\w+)", text, flags=re.MULTILINE)}
    added = [f"schedule {k} {{ generic }}" for k in kernels if k in written]
    return "\n".join([kept, *added, ""])


def module_of(kernel: Kernel) -> ModuleType:
    """Return the generated module of a kernel."""
    return sys.modules[kernel.reference.__module__]


@cache
def emitted(text: str, path: str = PATH) -> str:
    """Return the module that a kernel source becomes."""
    return compile_text(text, path).binding


@contextmanager
def imported_binding(binding: str, name: str = "emitted_sample") -> Generator[Any]:
    """Import the text of a module without kernels; it is forgotten at the end."""
    module = ModuleType(name)
    module.__file__ = f"/nowhere/{name}.py"
    sys.modules[name] = module
    try:
        exec(compile(binding, module.__file__, "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[name]


@contextmanager
def built_files(texts: Mapping[str, str]) -> Generator[tuple[Any, ...]]:
    """Build files that may use one another, for as long as a block; give their modules."""
    compiler = Compiler(library_of(texts))
    with installed([compiler.compile(name) for name in texts]) as modules:
        yield tuple(modules[name] for name in texts)


@cache
def loaded(text: str) -> Any:
    """Return the imported module of a kernel source."""
    with installed([compile_text(text, PATH)]) as modules:
        return modules[PATH]


def checked(text: str, **others: str) -> Module:
    """Check a file, a.kern; `others` are files beside it, by their stem."""
    texts = {"a.kern": text, **{f"{stem}.kern": t for stem, t in others.items()}}
    return Checker(library_of(texts), derive_item).module("a.kern")
