"""The files of a library, parsed as far as possible."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import final

from kerngen.lsp.items import FileItems
from kerngen.lsp.names import Occurrence, names_of
from kerngen.source.diagnostic import CompileError
from kerngen.syntax import ast
from kerngen.syntax.library import Library, UsedFile
from kerngen.syntax.parser import read


@final
class ParsedLibrary:
    """A library whose files are parsed once; `programs` has the trees that exist already."""

    def __init__(
        self, library: Library, programs: MutableMapping[str, ast.Program]
    ) -> None:
        self.library = library
        self._programs = programs
        self._items: dict[str, FileItems] = {}
        self._names: dict[str, tuple[Occurrence, ...]] = {}

    def program(self, name: str) -> ast.Program:
        """Return a file's syntax tree, as far as it can be parsed."""
        if name not in self._programs:
            try:
                self._programs[name] = read(self.library.source(name))
            except (CompileError, OSError):
                self._programs[name] = ast.Program("", ())
        return self._programs[name]

    def uses(self, name: str) -> tuple[UsedFile, ...]:
        """Return the files that a file uses, or none if its paths are wrong."""
        try:
            return self.library.uses(name)
        except (CompileError, OSError):
            return ()

    def items(self, name: str) -> FileItems:
        """Return the items that a file sees."""
        try:
            order = self.library.closure(name)
        except (CompileError, OSError):
            order = (name,)
        for each in order:
            if each not in self._items:
                used = (use.name for use in self.uses(each))
                seen = tuple(self._items[u] for u in used if u in self._items)
                self._items[each] = FileItems.of(self.program(each), seen)
        return self._items[name]

    def names(self, name: str) -> tuple[Occurrence, ...]:
        """Return the uses of all names in a file."""
        if name not in self._names:
            self._names[name] = names_of(self.program(name), self.items(name))
        return self._names[name]
