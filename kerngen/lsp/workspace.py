"""The open files and what was found in each, kept up to date with every change.

A file is checked again when its text changes, or that of a file which it uses or which
schedules its kernels: `Workspace.update` returns what is then to be shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, final

from lsprotocol import types

from kerngen.check.model import Model
from kerngen.lsp.columns import Columns
from kerngen.lsp.diagnostics import to_protocol
from kerngen.lsp.files import Buffer, Files, FindProject, Project, ProjectError, path_of
from kerngen.report.findings import Found, Hint, Sources
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax import ast
from kerngen.syntax.library import Library

_Key: TypeAlias = tuple[Source, ...]
"""All texts that the findings of a file follow from."""


@final
@dataclass(frozen=True)
class Checked:
    """An open file, and what was found in it.

    `program` and `model` are what could be read and understood, even where there are
    faults.  `sources` has the compiler, which knows the files that it uses.
    """

    path: Path
    source: Source
    project: Project
    sources: Sources
    found: tuple[Found, ...]
    program: ast.Program
    model: Model
    encoding: str
    shown: tuple[tuple[Found, Path, types.Diagnostic], ...]
    key: _Key | None = field(repr=False)

    @property
    def name(self) -> str:
        """The file's name in its library."""
        return self.project.files[0].name

    @property
    def columns(self) -> Columns:
        """The positions of the text."""
        return Columns(self.source.text, self.encoding)

    @property
    def is_right(self) -> bool:
        """Whether it has no faults, and is a module."""
        return all(isinstance(f, Hint) or f.severity == "warning" for f in self.found)


@final
class Workspace:
    """All open files.  `find` returns the project of a file."""

    def __init__(self, find: FindProject, encoding: str = "utf-16") -> None:
        self.files = Files()
        self.encoding = encoding
        self._find = find
        self._projects: dict[Path, Project | ProjectError] = {}
        self._checked: dict[Path, Checked] = {}
        self._shown: dict[str, list[types.Diagnostic]] = {}

    def put(self, uri: str, text: str) -> None:
        """Open a file, or change it."""
        path = path_of(uri)
        known = self.files.buffers.get(path)
        if known is None:
            self.forget_projects()
        self.files.buffers[path] = Buffer(known.uri if known else uri, text)

    def close(self, uri: str) -> None:
        """Close a file: what counts is now on the disk."""
        path = path_of(uri)
        self.files.buffers.pop(path, None)
        self._checked.pop(path, None)
        self.forget_projects()

    def forget_projects(self) -> None:
        """Look for the settings and files of projects anew: some may have changed."""
        self._projects.clear()

    def checked(self, uri: str) -> Checked | None:
        """Return an open file as it is now; nothing of one that can't be checked."""
        path = path_of(uri)
        if path in self.files.buffers:
            self._check(path)
        return self._checked.get(path)

    def all_checked(self) -> Iterator[Checked]:
        """Yield every open file that can be checked."""
        found = (self.checked(b.uri) for b in [*self.files.buffers.values()])
        return (each for each in found if each is not None)

    def update(self) -> dict[str, list[types.Diagnostic]]:
        """Check what changed; return the diagnostics of each URI where they did."""
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
        """Return all diagnostics by URI: of each open file, and of files that it uses."""
        now: dict[str, dict[Found, types.Diagnostic]] = {}
        for path, buffer in self.files.buffers.items():
            now.setdefault(buffer.uri, {})
            self._check(path)
            if checked := self._checked.get(path):
                for found, file, shown in checked.shown:
                    now.setdefault(self.files.uri(file), {})[found] = shown
            else:
                problem = Hint(str(self._projects[path]), str(path), None, "error")
                shown = to_protocol(problem, lambda _: buffer.uri, self.encoding)
                now[buffer.uri][problem] = shown
        return {uri: [*shown.values()] for uri, shown in now.items()}

    def _check(self, path: Path) -> None:
        """Bring what is known of an open file up to date."""
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
        self, path: Path, project: Project, library: Library, key: _Key | None
    ) -> Checked:
        sources = Sources(library, project.files)
        found = sources.found()
        name = project.files[0].name
        checker = sources.compiler.checker
        try:
            source = library.source(name)
        except CompileError as error:
            source = error.diagnostics[0].span.source
        return Checked(
            path,
            source,
            project,
            sources,
            found,
            checker.programs.get(name) or ast.Program("", ()),
            checker.models.get(name) or Model(),
            self.encoding,
            tuple(self._shown_of(path, project, found)),
            key,
        )

    def _shown_of(
        self, path: Path, project: Project, found: Iterable[Found]
    ) -> Iterator[tuple[Found, Path, types.Diagnostic]]:
        """Yield findings with their file, and as the protocol has them."""

        def uri_of(source: Source) -> str:
            return self.files.uri(_path(project, source.name))

        for each in found:
            file = _path(project, each.span.source.name) if each.span else path
            yield each, file, to_protocol(each, uri_of, self.encoding)

    def _library(self, project: Project) -> Library:
        """Return the files of a project, as they are now."""
        beside = _path(project, project.files[0].name).parent

        def read(name: str) -> Source:
            path = _path(project, name)
            shown = name if project.root else os.path.relpath(path, beside)
            return self.files.read(path, name, Path(shown).as_posix())

        build = (name for name in project.build if _is_there(read, name))
        return Library(read, build, project.root)


def _path(project: Project, name: str) -> Path:
    """Return the file of a name."""
    return Path(os.path.normpath(project.origin / name))


def _is_there(read: Callable[[str], Source], name: str) -> bool:
    """Whether a file of the build is still there; whether it is right, matters later."""
    try:
        read(name)
    except CompileError:
        return True
    except OSError:
        return False
    return True


def _key(library: Library, name: str) -> _Key | None:
    """Return what the findings of a file follow from; None where that is not known."""
    try:
        needed = library.closure(name)
        tuners = (tuner for each in needed for tuner in library.tuners(each))
        closures = (library.closure(each) for each in dict.fromkeys(tuners))
        names = dict.fromkeys((*needed, *(each for c in closures for each in c)))
        return tuple(library.source(each) for each in names)
    except CompileError:
        return None
