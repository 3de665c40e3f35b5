"""The files that the server reads: open buffers, else files on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias, final

from pygls.uris import from_fs_path, to_fs_path

from kerngen.report.python_names import NamedFile
from kerngen.source.reading import LARGEST, decode_source, read_source
from kerngen.source.text import Source

_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]")

_Stamp: TypeAlias = tuple[int, int, int]
"""The time, size and inode number of a file, by which changes on the disk are found."""


class OpenProject(Protocol):
    """The project of an open file; names of files are relative to `origin`.

    `files` has the open file, `build` the files of the build, whose schedules count.  No
    `use` leads out of `root`, if there is one.
    """

    @property
    def origin(self) -> Path:
        """The folder that names are relative to."""
        ...

    @property
    def files(self) -> Sequence[NamedFile]:
        """The open file."""
        ...

    @property
    def build(self) -> Sequence[str]:
        """The names of all files of the build."""
        ...

    @property
    def root(self) -> str | None:
        """The folder that no `use` may lead out of, or None."""
        ...


FindProject: TypeAlias = Callable[[Path], OpenProject]
"""Finds the project of a file; raises `ProjectError`."""


@final
class ProjectError(Exception):
    """Raised for wrong settings of a project, with a sentence about them."""


def path_of(uri: str) -> Path:
    """Return the path of a URI; one that is not a file gets a path that does not exist.

    The path is a valid Python name, so that an unsaved file gets no hint about its
    name.
    """
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path or f"/{_NO_LETTER.sub(_number, uri)}").resolve()


def _number(character: re.Match[str]) -> str:
    return f"_{ord(character[0]):x}"


def uri_of(path: Path) -> str:
    """Return the URI of a file."""
    return from_fs_path(str(path)) or ""


@final
@dataclass
class OpenText:
    """An open text, with its URI."""

    uri: str
    text: str


@final
class Files:
    """File contents by path; each is read again only if it changes."""

    def __init__(self) -> None:
        self.buffers: dict[Path, OpenText] = {}
        self._texts: dict[tuple[Path, str], tuple[OpenText | _Stamp, str, Source]] = {}

    def read(self, path: Path, name: str, shown: str) -> Source:
        """Return a file's source: the same object as long as it is unchanged.

        `shown` is its name in messages.  Raises `OSError` and `CompileError` as
        `read_source` does.
        """
        buffer = self.buffers.get(path)
        stamp = buffer or _stamp(path)
        text = buffer.text if buffer else ""
        known = self._texts.get((path, name))
        if known is None or known[:2] != (stamp, text):
            made = (
                _decoded(text, name, shown)
                if buffer
                else read_source(path, shown, name)
            )
            known = self._texts[path, name] = stamp, text, made
        return known[2]

    def uri(self, path: Path) -> str:
        """Return the URI that the editor uses for a file."""
        buffer = self.buffers.get(path)
        return buffer.uri if buffer else uri_of(path)


def _decoded(text: str, name: str, shown: str) -> Source:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > LARGEST:
        return decode_source(data, shown, name)
    return Source(shown, text, name)


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
