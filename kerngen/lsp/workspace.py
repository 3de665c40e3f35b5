"""The workspace: open files with their results, kept up to date.

A file is checked again when its text changes, or that of a file which it uses or which
schedules its kernels.  `Workspace.update` returns the diagnostics that are new then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, final

from lsprotocol import types

from kerngen.explain.pages import FOLDER, codes
from kerngen.lsp.checked import Checked, Key
from kerngen.lsp.columns import range_of
from kerngen.lsp.files import (
    Files,
    FindProject,
    OpenProject,
    OpenText,
    ProjectError,
    path_of,
    uri_of,
)
from kerngen.report.findings import Found, Hint
from kerngen.report.incremental import Incremental
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.text import Source, Span
from kerngen.syntax.library import Library


@final
class Workspace:
    """All open files; `find` returns the project of a file."""

    def __init__(self, find: FindProject, encoding: str = "utf-16") -> None:
        self.files = Files()
        self.encoding = encoding
        self._find = find
        self._projects: dict[Path, OpenProject | ProjectError] = {}
        self._checked: dict[Path, Checked] = {}
        self._incremental: dict[tuple[Path, str], Incremental] = {}
        self._shown: dict[str, list[types.Diagnostic]] = {}

    def put(self, uri: str, text: str) -> None:
        """Open a file, or change its text."""
        path = path_of(uri)
        known = self.files.buffers.get(path)
        if known is None:
            self.forget_projects()
        self.files.buffers[path] = OpenText(known.uri if known else uri, text)

    def close(self, uri: str) -> None:
        """Close a file, so that the text on disk is used."""
        path = path_of(uri)
        self.files.buffers.pop(path, None)
        self._checked.pop(path, None)
        self.forget_projects()

    def forget_projects(self) -> None:
        """Drop all projects' settings, as they may have changed."""
        self._projects.clear()

    def checked(self, uri: str) -> Checked | None:
        """Return an open file with its results, or None if it can't be checked."""
        path = path_of(uri)
        if path in self.files.buffers:
            self._check(path)
        return self._checked.get(path)

    def all_checked(self) -> Iterator[Checked]:
        """Yield every open file that can be checked."""
        found = (self.checked(b.uri) for b in [*self.files.buffers.values()])
        return (each for each in found if each is not None)

    def update(self) -> dict[str, list[types.Diagnostic]]:
        """Check changed files; return new diagnostics by URI."""
        now = self.diagnostics()
        gone = {
            uri: list[types.Diagnostic]()
            for uri in self._shown
            if self._shown[uri] and uri not in now
        }
        changed = {u: shown for u, shown in now.items() if self._shown.get(u) != shown}
        self._shown = now
        return {**gone, **changed}

    def diagnostics(self) -> dict[str, list[types.Diagnostic]]:
        """Return all diagnostics by URI."""
        now: dict[str, dict[Found, types.Diagnostic]] = {}
        for path, buffer in self.files.buffers.items():
            now.setdefault(buffer.uri, {})
            self._check(path)
            if checked := self._checked.get(path):
                for found, file, shown in checked.shown:
                    now.setdefault(self.files.uri(file), {})[found] = shown
            else:
                problem = Hint(str(self._projects[path]), str(path), None, "error")
                shown = to_protocol(problem, _nowhere, self.encoding)
                now[buffer.uri][problem] = shown
        return {uri: [*shown.values()] for uri, shown in now.items()}

    def _check(self, path: Path) -> None:
        """Check an open file, unless all texts that its findings follow from are the same."""
        if path not in self._projects:
            try:
                self._projects[path] = self._find(path)
            except ProjectError as error:
                self._projects[path] = error
        project = self._projects[path]
        if isinstance(project, ProjectError):
            self._checked.pop(path, None)
            return
        library = self._library(project)
        name = project.files[0].name
        key = _key(library, name)
        known = self._checked.get(path)
        if key is None or known is None or known.key != key:
            self._checked[path] = self._fresh(path, project, library, key)

    def _fresh(
        self, path: Path, project: OpenProject, library: Library, key: Key | None
    ) -> Checked:
        """Check a file; items that did not change since its last check are not repeated."""
        name = project.files[0].name
        known = self._incremental.setdefault((path, name), Incremental())
        found, sources = known.found(library, project.files)
        try:
            source = library.source(name)
        except CompileError as error:
            source = error.diagnostics[0].span.source

        def uri_of(source: Source) -> str:
            return self.files.uri(_path(project, source.name))

        def shown() -> Iterator[tuple[Found, Path, types.Diagnostic]]:
            for each in found:
                file = _path(project, each.span.source.name) if each.span else path
                yield each, file, to_protocol(each, uri_of, self.encoding)

        return Checked(
            path,
            source,
            project,
            sources,
            found,
            self.encoding,
            uri_of,
            tuple(shown()),
            key,
        )

    def _library(self, project: OpenProject) -> Library:
        """Return the files of a project, as they are now."""
        beside = _path(project, project.files[0].name).parent

        def read(name: str) -> Source:
            path = _path(project, name)
            shown = name if project.root else os.path.relpath(path, beside)
            return self.files.read(path, name, Path(shown).as_posix())

        build = (name for name in project.build if _is_there(read, name))
        return Library(read, build, project.root)


def _nowhere(_source: Source) -> str:
    """Return no URI, for a hint that has no place in a source."""
    return ""


def _path(project: OpenProject, name: str) -> Path:
    """Return the file of a name."""
    return Path(os.path.normpath(project.origin / name))


def _is_there(read: Callable[[str], Source], name: str) -> bool:
    """Whether a file of the build still exists; one that can't be decoded does."""
    try:
        read(name)
    except CompileError:
        return True
    except OSError:
        return False
    return True


def _key(library: Library, name: str) -> Key | None:
    """Return the texts that a file's findings depend on, or None if one is missing."""
    try:
        needed = library.closure(name)
        tuners = (tuner for each in needed for tuner in library.tuners(each))
        closures = (library.closure(each) for each in dict.fromkeys(tuners))
        names = dict.fromkeys((*needed, *(each for c in closures for each in c)))
        return tuple(library.source(each) for each in names)
    except CompileError:
        return None


# Diagnostics in the form of the protocol.


SOURCE: Final = "kerngen"
_SEVERITIES: Final[Mapping[str, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "hint": types.DiagnosticSeverity.Hint,
}
_NOWHERE: Final = types.Range(types.Position(0, 0), types.Position(0, 0))


def to_protocol(
    found: Found, uri_of_source: Callable[[Source], str], encoding: str
) -> types.Diagnostic:
    """Return an error, warning or hint; its code links to its page."""
    severity = _SEVERITIES[found.severity]
    if isinstance(found, Hint):
        place = range_of(found.span, encoding) if found.span else _NOWHERE
        tags = [types.DiagnosticTag.Unnecessary] if found.is_unused else None
        return types.Diagnostic(place, found.text, severity, source=SOURCE, tags=tags)

    def place_of(span: Span) -> types.Location:
        return types.Location(uri_of_source(span.source), range_of(span, encoding))

    return types.Diagnostic(
        range=range_of(found.span, encoding),
        message=message_of(found),
        severity=severity,
        code=found.code,
        code_description=_page(found.code),
        source=SOURCE,
        related_information=[
            types.DiagnosticRelatedInformation(place_of(each.span), each.label)
            for each in found.related
        ],
    )


def message_of(found: Diagnostic) -> str:
    """Return a diagnostic's message, with its hint below."""
    hint = f"\nhint: {found.help}" if found.help else ""
    label = f"\n{found.label}" if found.label else ""
    return f"{found.message}{label}{hint}"


@cache
def _page(code: str) -> types.CodeDescription | None:
    """Return the link to a code's page, a file of this installation."""
    if code not in codes():
        return None
    return types.CodeDescription(uri_of(Path(FOLDER, f"{code}.md").resolve()))
