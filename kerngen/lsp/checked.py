"""An open file with the checker's results, on which all features work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, final

from lsprotocol import types

from kerngen.check.files.checker import Checker
from kerngen.check.items.gradients import Functions
from kerngen.check.model import Meaning, Model
from kerngen.ir.nodes import Kernel
from kerngen.lsp.columns import Columns, columns_of
from kerngen.lsp.files import OpenProject
from kerngen.lsp.items import FileItems
from kerngen.lsp.names import Occurrence
from kerngen.lsp.reading import ParsedLibrary
from kerngen.report.findings import Found, Hint, Sources
from kerngen.report.fixes import Fix, fix_of
from kerngen.report.incremental import around
from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.depth import deep_recursion

Key: TypeAlias = tuple[Source, ...]
"""All texts on which the findings of a file depend."""


@final
@dataclass(frozen=True)
class Checked:
    """An open file, and the results of checking it.

    - `program`, `model`: the syntax tree and the types, as far as there are no faults; they
      are computed when a feature needs them
    - `sources`: has the compiler, which knows the files that the file uses
    - `found`, `shown`: the findings, and the same as the protocol's diagnostics
    - `key`: all texts on which the findings depend
    """

    path: Path
    source: Source
    project: OpenProject
    sources: Sources
    found: tuple[Found, ...]
    encoding: str
    uri_of: Callable[[Source], str]
    shown: tuple[tuple[Found, Path, types.Diagnostic], ...]
    key: Key | None = field(repr=False)

    @property
    def name(self) -> str:
        """The file's name in its library."""
        return self.project.files[0].name

    @property
    def program(self) -> ast.Program:
        """The syntax tree."""
        return self.reading.program(self.name)

    def around(self, start: int, end: int | None = None) -> Checked:
        """Return the file with only the items between two offsets, or around one.

        A feature that needs types there need not wait for a check of the whole file.
        """
        if self.name in self.sources.compiler.checker.models:
            return self
        part = around(self.sources, start, start if end is None else end)
        if part is self.sources:
            return self
        return self._parts.setdefault(
            part.library.source(self.name).left_out,
            replace(self, sources=part, source=part.library.source(self.name)),
        )

    @cached_property
    def _parts(self) -> dict[tuple[tuple[int, int], ...], Checked]:
        return {}

    @cached_property
    def model(self) -> Model:
        """The types and meanings of expressions."""
        known = self.sources.compiler.checker
        if self.name in known.models:
            return known.models[self.name]
        # A checker of its own, without derivations, which adopts the files that are right.
        checker = Checker(self.sources.library, _underived)
        checker.adopt({n: each for n, each in known.right.items() if n != self.name})
        with suppress(CompileError, OSError), deep_recursion():
            checker.module(self.name)
        known.programs.update(checker.programs)
        return checker.models.get(self.name) or Model()

    @cached_property
    def reading(self) -> ParsedLibrary:
        """The files of the library, parsed as far as possible."""
        return ParsedLibrary(
            self.sources.library, self.sources.compiler.checker.programs
        )

    @cached_property
    def items(self) -> FileItems:
        """The items that the file sees, its own and imported ones."""
        return self.reading.items(self.name)

    @property
    def names(self) -> tuple[Occurrence, ...]:
        """All names in the text, in order."""
        return self.reading.names(self.name)

    def name_at(self, offset: int) -> Occurrence | None:
        """Return the name at an offset, or right before it."""
        for each in self.names:
            if each.span.start <= offset <= each.span.end:
                return each
        return None

    @cached_property
    def columns(self) -> Columns:
        """The conversion between offsets and positions."""
        return columns_of(self.source, self.encoding)

    @property
    def is_right(self) -> bool:
        """Whether the file has no errors."""
        return all(isinstance(f, Hint) or f.severity == "warning" for f in self.found)

    def fix_of(self, fault: Diagnostic) -> Fix | None:
        """Return the fix of a diagnostic, cached."""
        if fault not in self._fixes:
            self._fixes[fault] = fix_of(self.sources, fault)
        return self._fixes[fault]

    @cached_property
    def _fixes(self) -> dict[Diagnostic, Fix | None]:
        return {}

    def meaning_of(self, span: Span) -> Meaning | None:
        """Return the checker's type and meaning of an expression."""
        return self.meanings.get((span.start, span.end))

    @cached_property
    def meanings(self) -> dict[tuple[int, int], Meaning]:
        """The checker's types and meanings of expressions, by offsets."""
        return {(each.start, each.end): each for each in self.model}

    def range(self, span: Span) -> types.Range:
        """Return the range of a span in the text."""
        return self.columns.range(span.start, span.end)


def _underived(
    item: ast.GradientItem, kernel: Kernel, functions: Functions, warnings: Faults
) -> Kernel:
    """Raise `CompileError` for a gradient item, whose kernel has no text in the file.

    It takes the place of the derivation in a checker, which would take long.
    """
    del item, kernel, functions, warnings
    raise CompileError(())
