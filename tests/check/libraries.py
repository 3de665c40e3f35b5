"""Programs of one file, `name.kern`, and of several, `name/main.kern` and others."""

from __future__ import annotations

from pathlib import Path

from kerngen.check.files.checker import Checker
from kerngen.gradient.item import derive_item
from kerngen.ir.module import Module
from kerngen.source.reading import read_source
from kerngen.source.text import Source
from kerngen.syntax.library import Library

MAIN = "main.kern"


def cases_in(folder: Path) -> list[Path]:
    """Return the programs in a folder, each by the file that it is about."""
    found = [*folder.glob("*.kern"), *folder.glob(f"*/{MAIN}")]
    assert found
    return sorted(found)


def name_of(case: Path) -> str:
    """Return what a program is called."""
    return case.parent.name if case.name == MAIN else case.stem


def module_of(case: Path) -> Module:
    """Check a program, with the other files of its folder if it has one of its own."""
    is_lone = case.name != MAIN
    origin = case.parent if is_lone else case.parent.parent
    files = [case] if is_lone else sorted(case.parent.rglob("*.kern"))
    names = [f.relative_to(origin).as_posix() for f in files if f.is_file()]

    def read(name: str) -> Source:
        return read_source(origin / name, name)

    library = Library(read, names, None if is_lone else case.parent.name)
    return Checker(library, derive_item).module(case.relative_to(origin).as_posix())
