"""Compile a text or file to a module in memory, cached by its contents."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from hashlib import sha256
from keyword import iskeyword
from pathlib import Path
from threading import Lock
from typing import Final, TypeAlias, cast

from kerngen.compiler import Compiler
from kerngen.jit.memory import KernelModule, install
from kerngen.source.diagnostic import CompileError, CompileWarning
from kerngen.source.reading import read_source
from kerngen.source.render import render
from kerngen.source.text import Source
from kerngen.syntax.library import SUFFIX, Library

_Read: TypeAlias = Callable[[Path, str], Source]
"""A function that reads the file at a path; its second argument is the source's name."""

_MODULES: Final[dict[str, KernelModule]] = {}
_LOCK: Final = Lock()


class ModuleNameError(ValueError):
    """Raised for an invalid module name; notebooks show it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def compile(  # noqa: A001 - `kerngen.compile` reads as what it does
    source: str, *, name: str = "kernels"
) -> KernelModule:
    """Compile the text of a program to a module, and write no file.

    The module is the one that `kerngen build` would make of a file NAME.kern with this
    text in the working directory: `use` finds files from there.  The same text under the
    same name gives the same module.  Type checkers don't know its contents, because it is
    made when the program runs; the modules that `kerngen build` writes are typed.
    Warnings of the program are `CompileWarning`s, given when it is first compiled.

    Args:
        source: The program.
        name: The name of the module, and of the program in diagnostics; a Python name.

    Raises:
        CompileError: If the program is wrong; its text is the whole report.
        TypeError: If the program is not text.
        ValueError: If the name is not one of Python's, or the text can't be written in
            UTF-8.
    """
    return _module(*_text(source, name))


def library_of(source: str | Path) -> tuple[Library, str]:
    """Return a library with a program and all that it uses, and the program's name.

    A `Path` is that of a `.kern` file, and a `str` the text of a program.

    Raises what `compile` and `load` raise.
    """
    if isinstance(source, Path):
        return _library(*_file(source))
    return _library(*_text(source, "kernels"))


def _text(source: str, name: str) -> tuple[Path, _Read]:
    """Return the path of a text as if it were a file, and the function that reads it."""
    given = cast("object", source)
    if not isinstance(given, str):
        raise TypeError(
            f"expected the text of a program, got {type(given).__name__}; "
            f"kerngen.load takes the path of a file."
        )
    if not name.isidentifier() or iskeyword(name):
        raise ModuleNameError(f"'{name}' can't be the name of a module.")
    if any("\ud800" <= char <= "\udfff" for char in source):
        raise ValueError("The text has surrogates, which are not characters.")
    file = Path.cwd() / f"{name}{SUFFIX}"

    def read(path: Path, stable: str) -> Source:
        if path == file:
            return Source(file.name, source, stable)
        return _read(path, stable)

    return file, read


def load(path: str | os.PathLike[str]) -> KernelModule:
    """Compile a `.kern` file, and the files that it uses, to a module; write no file.

    The module is the one that `kerngen build` would make of the file alone.  While the file
    and those that it uses stay the same, the same module is returned.

    Raises:
        CompileError: If the program is wrong; its text is the whole report.
        OSError: If the file can't be read.
        ValueError: If it is not a `.kern` file.
    """
    return _module(*_file(path))


def _file(path: str | os.PathLike[str]) -> tuple[Path, _Read]:
    """Return the absolute path of a `.kern` file, and the function that reads it."""
    file = Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links
    if file.suffix != SUFFIX:
        raise ValueError(f"'{os.fspath(path)}' is not a {SUFFIX} file.")
    return file, _read


def _read(path: Path, stable: str) -> Source:
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return read_source(path, str(shown), stable)


def _module(file: Path, read: _Read) -> KernelModule:
    library, name = _library(file, read)
    with _LOCK:
        key = _key(library, name)
        if key not in _MODULES:
            compiled = Compiler(library).compile_with_used(name)
            _MODULES[key] = install(f"kerngen.jit.m{key}", compiled)
            # Its caller's caller is the user, at the call of `compile` or `load`.
            if found := dict.fromkeys(
                w for each in compiled for w in each.module.warnings
            ):
                warnings.warn(render(found).rstrip(), CompileWarning, stacklevel=3)
        return _MODULES[key]


def _key(library: Library, name: str) -> str:
    """Return a hash of all texts from which a file's module is made, and of its name."""
    try:
        digest = library.digest(name)
    except CompileError:
        # The compiler reports the same faults, with others beside them.
        Compiler(library).module(name)
        raise
    return sha256(f"{name} {digest}".encode()).hexdigest()[:16]


def _library(file: Path, read: _Read) -> tuple[Library, str]:
    """Return the file with all that it uses, and its name there.

    Names are paths relative to the folder that all these files are in, so that none begins
    with `..`: they become the paths of modules in their package.
    """
    library = _below(file.parent, file.name, read)
    try:
        used = library.closure(file.name)
    except CompileError:
        return library, file.name  # the compiler reports this fault, and others
    # As many folders up as the deepest '../' of a used file.
    up = max(name.split("/").count("..") for name in used)
    origin = file.parents[min(up, len(file.parents) - 1)]
    name = file.relative_to(origin).as_posix()
    return _below(origin, name, read), name


def _below(origin: Path, name: str, read: _Read) -> Library:
    def find(name: str) -> Source:
        return read(Path(os.path.normpath(origin / name)), name)

    return Library(find, [name])
