"""The findings of `kerngen check`: errors, warnings and hints, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias, final

from kerngen.check.files.unused import (
    Unused,
    find_overlaps,
    find_unused,
    words_of_guards,
)
from kerngen.compiler import Compiler
from kerngen.emit.module_name import module_name
from kerngen.output.clashes import find_clashes
from kerngen.report.layout_data import hints as layout_hints
from kerngen.report.layout_text import hint_text
from kerngen.report.python_names import NamedFile, rename_notes, renamed_items
from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.faults_build import ClashingFiles
from kerngen.source.render import note_to_json, to_json
from kerngen.source.text import Span
from kerngen.syntax.library import Library


@final
@dataclass(frozen=True, slots=True)
class Hint:
    """A hint about a file, or about the project if it has no span.

    It is also used for an error without a span or code, such as wrong settings.  Editors
    show the span in grey if `is_unused`.
    """

    text: str
    path: str
    span: Span | None = None
    severity: Literal["hint", "error"] = "hint"
    is_unused: bool = False


Found: TypeAlias = Diagnostic | Hint


@final
class Sources:
    """Files of one library, with a compiler for them."""

    def __init__(
        self,
        library: Library,
        files: Sequence[NamedFile],
        guards: frozenset[str] = frozenset(),
    ) -> None:
        """Check these files of the library.

        `guards` are names that guards read, beside those in the files.
        """
        self._guards = guards
        self.library = library
        self.files = files
        self.compiler = Compiler(library)

    def diagnostics(self, files: Iterable[NamedFile]) -> list[Diagnostic]:
        """Return all errors of files; if there are none, those of files that clash.

        `files` may be an iterator that shows a progress bar.
        """
        asked = {source.name for source in self.files}
        faults = Faults()
        paths: dict[str, list[str]] = {}
        for source in files:
            with faults.collect():
                made = self.compiler.check(source.name)
                paths[source.name] = [str(source.folder / path) for path in made]
                # Whether a schedule fits turns out where its kernel is compiled.
                for tuned in set(self.library.tuned_by(source.name)) - asked:
                    self.compiler.check(tuned)
        return list(faults) or [*clashing_files(self.library, paths)]

    def found(self) -> tuple[Found, ...]:
        """Return the findings of `kerngen check`: errors, or else warnings and hints."""
        try:
            faults = self.diagnostics(self.files)
        except CompileError as error:
            faults = [*error.diagnostics]
        return tuple(faults) or (*self.warnings(), *self.hints())

    def warnings(self) -> Iterator[Diagnostic]:
        """Yield the warnings of files that have no faults."""
        for file in self.files:
            yield from self.compiler.module(file.name).warnings

    def hints(self) -> Iterator[Hint]:
        """Yield the hints about files without errors."""
        for file in self.files:
            module = self.compiler.module(file.name)
            items = renamed_items(module)
            path = self.library.source(file.name).path
            yield from (Hint(f"{note}.", path) for note in rename_notes(file, items))
            for unused in self._unused(file.name):
                yield Hint(unused.text, path, unused.span, is_unused=True)
            for kernel in module.kernels:
                for overlap in find_overlaps(kernel):
                    yield Hint(overlap.text, path, overlap.span)
            for better in layout_hints(module):
                yield Hint(hint_text(better), path, better.struct.span)

    def _unused(self, name: str) -> Iterator[Unused]:
        """Yield hints about the unused names of a file."""
        names = (name, *self.library.tuners(name))
        programs = [self.compiler.checker.programs[each] for each in names]
        guards = self._guards.union(*map(words_of_guards, programs))
        return find_unused(programs[0], guards)


def as_json(faults: Iterable[Diagnostic], hints: Iterable[Hint]) -> list[Any]:
    """Return findings in the form of `kerngen check --json`."""
    notes = [
        note_to_json(each.severity, each.text, each.path, each.span) for each in hints
    ]
    return [*to_json(faults), *notes]


@final
@dataclass(frozen=True, slots=True)
class TextSource:
    """A text that is no file; its module is named as that of a file `name` would be."""

    name: str

    @property
    def shown(self) -> str:
        """The name."""
        return self.name

    @property
    def folder(self) -> PurePosixPath:
        """Where its module would be."""
        return PurePosixPath()

    @property
    def module(self) -> str:
        """The module's name."""
        return module_name(self.name)

    @property
    def is_renamed(self) -> bool:
        """Whether the module's name differs from the text's."""
        return self.module != PurePosixPath(self.name).stem


def check_text(text: str, path: str) -> list[Any]:
    """Return the findings in a text, in the form of `kerngen check --json`."""
    found = Sources(Library.of_text(text, path), (TextSource(path),)).found()
    return as_json(
        (each for each in found if isinstance(each, Diagnostic)),
        (each for each in found if isinstance(each, Hint)),
    )


# Files whose generated files would overwrite each other


def clashing_files(
    library: Library, paths: Mapping[str, Iterable[str]]
) -> Iterator[ClashingFiles]:
    """Yield a fault for each source whose generated files clash with another's."""

    def start(name: str) -> Span:
        return Span(library.source(name), 0, 0)

    for clash in find_clashes(paths):
        yield ClashingFiles(
            span=start(clash.source),
            why=clash.why,
            remedy=f"{clash.remedy}.",
            other=start(clash.other) if clash.other else None,
        )
