"""The files of a build, and which of them use which.

A file's name is a path with slashes, such as `dsl/linear.kern`; `read` finds a file by its
name.  Nothing here parses, so that a build can find out quickly that all its output is fresh.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import final

from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.order import around, needed_first
from kerngen.source.similar import MOST_CHAINED, chained, closest
from kerngen.source.text import Source, Span
from kerngen.syntax import faults_uses
from kerngen.syntax.outline import Outline, Use, outline_of

SUFFIX = ".kern"


@final
@dataclass(frozen=True, slots=True)
class UsedFile:
    """A file that another one uses: its name, and the span of the path."""

    name: str
    span: Span


@final
class Library:
    """The files of a build and all files that they use; each is read once.

    `files` are those of the build, whose schedules count for other files' kernels. With
    a `root` folder, no file outside of it can be used.
    """

    def __init__(
        self,
        read: Callable[[str], Source],
        files: Iterable[str],
        root: str | None = None,
    ) -> None:
        self._read = read
        self._files = tuple(sorted(files, key=PurePosixPath))
        self._root = root
        self._sources: dict[str, Source] = {}
        self._outlines: dict[str, Outline] = {}
        self._users: dict[str, list[str]] | None = None

    @classmethod
    def of_text(cls, text: str, name: str) -> Library:
        """Return a library with one file, which exists only as text."""

        def read(wanted: str) -> Source:
            if wanted != name:
                raise FileNotFoundError(wanted)
            return Source(name, text)

        return cls(read, [name])

    def reading(self, read: Callable[[str], Source]) -> Library:
        """Return a library of the same files, whose texts `read` returns."""
        return Library(read, self._files, self._root)

    def source(self, name: str) -> Source:
        """Return a file; raise `OSError` or `CompileError` if it can't be read."""
        if name not in self._sources:
            self._sources[name] = self._read(name)
        return self._sources[name]

    def uses(self, name: str) -> tuple[UsedFile, ...]:
        """Return the files that a file uses directly, in its order.

        Raises `CompileError` with the faults of its paths.
        """
        faults = Faults()
        found: dict[str, Span] = {}
        for use in self._outline(name).uses:
            with faults.collect():
                used = self._resolve(name, use)
                if used in found:
                    other = found[used]
                    fault = faults_uses.UsedTwice(
                        span=use.span, other=other, path=use.path
                    )
                    raise CompileError([fault])
                found[used] = use.span
        faults.raise_if_any()
        return tuple(UsedFile(used, span) for used, span in found.items())

    def closure(self, name: str) -> tuple[str, ...]:
        """Return all files that a file needs: each after those it uses, itself last.

        Raises `CompileError` if one is missing.
        """
        faults = Faults()

        def used_by(user: str) -> Iterator[str]:
            with faults.collect():
                yield from (used.name for used in self.uses(user))

        needed, cycles = needed_first((name,), used_by)
        for cycle in cycles:
            faults.add(self._cycle(cycle))
        faults.raise_if_any()
        return tuple(needed)

    def kernels(self, name: str) -> frozenset[str]:
        """Return the names of a file's kernels, even if the file has errors."""
        return self._glance(name).kernels

    def tuners(self, name: str) -> tuple[str, ...]:
        """Return the files of the build that schedule a file's kernels, by path."""
        kernels = self._outline(name).kernels
        return tuple(
            user
            for user in self._users_of(name)
            if self._glance(user).schedules_any(kernels)
        )

    def tuned_by(self, name: str) -> tuple[str, ...]:
        """Return the files that a file uses and whose kernels it schedules."""
        own = self._outline(name)
        used = (use.name for use in self.uses(name))
        return tuple(u for u in used if own.schedules_any(self._outline(u).kernels))

    def needing(self, name: str) -> tuple[str, ...]:
        """Return the files of the build that use a file, or use one that does."""
        found = dict.fromkeys(self._users_of(name))
        left = [*found]
        while left:
            more = dict.fromkeys(self._users_of(left.pop()))
            left += more.keys() - found.keys() - {name}
            found |= more
        found.pop(name, None)
        return tuple(found)

    def digest(self, name: str) -> str:
        """Return the hash of all texts that a file's output depends on.

        For a file that uses no other, it is the hash of its text. Raises `CompileError`
        if a file is missing.
        """
        needed = dict.fromkeys(self.closure(name))
        for tuner in self.tuners(name):
            needed |= dict.fromkeys(self.closure(tuner))
        hashes = {each: _hash(self.source(each).text) for each in needed}
        if len(hashes) == 1:
            return hashes[name]
        listed = (f"{each} {hashes[each]}\n" for each in (name, *hashes))
        return _hash("".join(listed))

    def _outline(self, name: str) -> Outline:
        if name not in self._outlines:
            self._outlines[name] = outline_of(self.source(name))
        return self._outlines[name]

    def _glance(self, name: str) -> Outline:
        """Return the outline of a file, even of one that can't be read without errors.

        Its errors are reported only where its items are needed.
        """
        try:
            return self._outline(name)
        except CompileError as error:
            return outline_of(error.diagnostics[0].span.source)

    def _users_of(self, name: str) -> list[str]:
        """Return the files of the build that use a file, by path."""
        if self._users is None:
            self._users = {}
            for user in self._files:
                paths = (use.path for use in self._glance(user).uses)
                for used in dict.fromkeys(_join(user, path) for path in paths):
                    self._users.setdefault(used, []).append(user)
        return self._users.get(name, [])

    def _cycle(self, cycle: tuple[str, ...]) -> Diagnostic:
        """Return the fault of a cycle, the same whichever of its files was reached first."""
        files = around(cycle, min(cycle))
        span, *others = (
            next(use.span for use in self.uses(user) if use.name == used)
            for user, used in islice(pairwise(files), MOST_CHAINED)
        )
        chain = chained(files, "uses")
        return faults_uses.UseCycle(span=span, chain=chain, others=tuple(others))

    def _resolve(self, user: str, use: Use) -> str:
        """Return the name of the file of a `use`; raise `CompileError` if it is wrong."""
        if why := _misformed(use.path):
            fault = faults_uses.NotAUsePath(span=use.span, path=use.path, why=why)
            raise CompileError([fault])
        name = _join(user, use.path)
        if name == user:
            raise CompileError([faults_uses.UsesItself(span=use.span)])
        if self._root is not None and not _is_inside(name, self._root):
            outside = faults_uses.OutsideSources(
                span=use.span, path=use.path, root=self._root
            )
            raise CompileError([outside])
        self._expect(name, user, use)
        return name

    def _expect(self, name: str, user: str, use: Use) -> None:
        try:
            self.source(name)
        except CompileError:
            pass  # reported when the file itself is read
        except (FileNotFoundError, NotADirectoryError):
            fault: Diagnostic = faults_uses.MissingFile(
                span=use.span,
                path=use.path,
                shown=name,
                suggestion=self._like(user, use.path),
            )
            raise CompileError([fault]) from None
        except OSError as error:
            fault = faults_uses.UnreadableFile(
                span=use.span, path=use.path, shown=name, why=_reason(error)
            )
            raise CompileError([fault]) from None

    def _like(self, user: str, path: str) -> str:
        """Return the path of the file of the build that a wrong path may mean, or ""."""
        folder = posixpath.dirname(user) or "."
        known = (posixpath.relpath(f, folder) for f in self._files if f != user)
        by_stem = {name.removesuffix(SUFFIX): name for name in known}
        return by_stem.get(closest(path.removesuffix(SUFFIX), by_stem), "")


def _join(user: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(user), path))


def _is_inside(name: str, folder: str) -> bool:
    if folder == ".":
        return not name.startswith("../")
    return name.startswith(f"{folder}/")


def _reason(error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    return f"the system says '{error.strerror or error}'"


def _misformed(path: str) -> str:
    """Return why a path is refused, or ""."""
    if not path:
        return "it is empty"
    if not path.isprintable():
        return "it has characters that can't be printed"
    if "\\" in path:
        return "folders are set apart by '/'"
    if path.startswith("/") or path[1:2] == ":":
        return "it is not relative"
    if not path.endswith(SUFFIX) or posixpath.basename(path) == SUFFIX:
        return f"a file of kernels ends in '{SUFFIX}'"
    return ""


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def origin_of(base: Path) -> Path:
    """Return the folder that names are relative to: usually the source folder's parent.

    If the folder is a whole project, names are relative to the folder itself.
    """
    return base if (base / "pyproject.toml").is_file() else base.parent


def sources_below(folder: Path) -> Iterator[Path]:
    """Yield every source below a folder, in any order; hidden ones are left out.

    Raises `OSError` where a folder can't be read.
    """
    for inside, inner, names in os.walk(folder, onerror=_raise):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield Path(inside, name)


def _raise(error: OSError) -> None:
    raise error
