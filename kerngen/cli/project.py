"""What a command works on: the sources that its arguments and the project's settings name.

`Project` holds the settings, `Selection` the sources chosen for one run.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import cast, final

import click

from kerngen.source.reading import read_source
from kerngen.source.text import Source
from kerngen.source.words import python_word
from kerngen.syntax.library import SUFFIX, Library


@final
@dataclass(frozen=True, slots=True)
class Project:
    """`[tool.kerngen]` of the nearest pyproject.toml, as absolute paths."""

    source: Path | None = None
    out: Path | None = None


@final
@dataclass(frozen=True, slots=True)
class SourceFile:
    """One `.kern` file.

    `name` is its stable name, the same wherever the command runs: as a rule the source
    folder's name and the path inside.  `shown` is how its user would find it from here.
    `folder` is where in the output its module belongs.
    """

    file: Path
    name: str
    shown: str
    folder: PurePosixPath


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """The sources of one run: `chosen` is the file or folder asked for, inside `base`.

    Names are paths inside `origin`.  `build` are the names of all files whose schedules
    count: those asked for, and the others of a project.  `root` is the folder that no
    `use` leads out of; a file that belongs to no folder of sources has none.
    """

    base: Path
    chosen: Path
    origin: Path
    files: tuple[SourceFile, ...]
    build: tuple[str, ...]
    root: str | None

    def library(self) -> Library:
        """Return the files of the run and all that they use."""
        return Library(self._read, self.build, self.root)

    def library_with(self, name: str, text: str) -> Library:
        """Return the same as if a file of the build had this text."""

        def read(wanted: str) -> Source:
            return Source(name, text) if wanted == name else self._read(wanted)

        return Library(read, {*self.build, name}, self.root)

    def without(self, name: str) -> Selection:
        """Return the sources as if one of them were gone."""
        return replace(
            self,
            files=tuple(file for file in self.files if file.name != name),
            build=tuple(each for each in self.build if each != name),
        )

    def _read(self, name: str) -> Source:
        file = Path(os.path.normpath(self.origin / name))
        return read_source(file, shown_path(file), name)

    def covers(self, name: str) -> bool:
        """Whether a source of that name, here or gone, is among those asked for."""
        chosen = PurePosixPath(_stable_name(self.chosen, self.origin))
        return PurePosixPath(name).is_relative_to(chosen) or self.chosen == self.base


def find_project() -> Project:
    """Read the settings of the project around the working directory, if there is one."""
    try:
        here = Path.cwd()
    except OSError as error:
        raise click.ClickException(
            f"The working directory: {error.strerror}."
        ) from None
    for folder in (here, *here.parents):
        if (folder / "pyproject.toml").is_file():
            return _read_project(folder / "pyproject.toml")
    return Project()


def _read_project(file: Path) -> Project:
    try:
        tools: object = tomllib.loads(file.read_text("utf-8")).get("tool", {})
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"'{file}' can't be read: {error}") from None
    if not isinstance(tools, dict):
        raise click.ClickException(f"'{file}': 'tool' is a table, not {tools}.")
    table = cast("dict[str, object]", tools).get("kerngen", {})
    settings = cast("dict[str, object]", table) if isinstance(table, dict) else {}
    paths: dict[str, Path] = {}
    for key, value in settings.items():
        if key in {"source", "out"} and isinstance(value, str):
            paths[key] = absolute(file.parent / value)
    if paths.keys() != settings.keys() or not isinstance(table, dict):
        raise click.ClickException(
            f"'{file}': [tool.kerngen] takes the paths 'source' and 'out', not {table}."
        )
    return Project(**paths)


def absolute(path: Path) -> Path:
    """Return a path from the root, its links followed; refuse what leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a NUL
        raise click.ClickException(f"{str(path)!r}: {error}.") from None


def select(src: Path | None, project: Project) -> Selection:
    """Return the sources that SRC names, or else the project's."""
    if src is None and project.source is None:
        raise click.UsageError(
            "Give SRC, a .kern file or a folder of them: no pyproject.toml here sets "
            "'source' under [tool.kerngen]."
        )
    chosen = absolute(Path(src or project.source or ""))
    if not chosen.exists():
        raise click.ClickException(f"'{src or chosen}' does not exist.")
    if chosen.is_file() and chosen.suffix != SUFFIX:
        raise click.ClickException(f"'{src or chosen}' is not a {SUFFIX} file.")
    base = _base(chosen, project)
    origin = _origin(base)
    files = _sources(chosen, base, origin)
    if not files:
        raise click.ClickException(f"There are no {SUFFIX} files in '{src or chosen}'.")
    is_lone = chosen.is_file() and base != project.source
    build = files if is_lone or chosen == base else _sources(base, base, origin)
    return Selection(
        base,
        chosen,
        origin,
        files,
        build=tuple(file.name for file in build),
        root=None if is_lone else _stable_name(base, origin),
    )


def _sources(chosen: Path, base: Path, origin: Path) -> tuple[SourceFile, ...]:
    return tuple(
        SourceFile(
            file,
            _stable_name(file, origin),
            shown_path(file),
            PurePosixPath(*map(python_word, file.relative_to(base).parent.parts)),
        )
        for file in find_sources(chosen)
    )


def choose_out(out: Path | None, selection: Selection, project: Project) -> Path:
    """Return the folder to write to: the one given, or the project's for its sources."""
    if out is not None:
        return absolute(out)
    if project.out is None:
        raise click.UsageError(
            "Give --out, the folder to write to: no pyproject.toml here sets 'out' under "
            "[tool.kerngen]."
        )
    if project.source not in {None, selection.base}:
        raise click.UsageError(
            f"Give --out: '{project.out}' is for the sources in '{project.source}', and "
            f"'{selection.chosen}' is not one of them."
        )
    return project.out


def _base(chosen: Path, project: Project) -> Path:
    """The source folder: the project's if it holds what was chosen."""
    if project.source is not None and chosen.is_relative_to(project.source):
        return project.source
    return chosen.parent if chosen.is_file() else chosen


def _origin(base: Path) -> Path:
    """What names are paths inside of: the source folder's own parent, as a rule.

    A folder that is a whole project may be called anything: its name stays out.
    """
    return base if (base / "pyproject.toml").is_file() else base.parent


def find_sources(chosen: Path) -> Iterator[Path]:
    """Every source below a folder, hidden ones left out, in an order that is stable."""
    if not chosen.is_dir():
        yield chosen
        return
    for file in sorted(chosen.rglob(f"*{SUFFIX}")):
        hidden = any(p.startswith(".") for p in file.relative_to(chosen).parts)
        if not hidden and not file.is_dir():
            yield _utf8_named(file)


def _utf8_named(file: Path) -> Path:
    """Return a source; refuse a name that generated files could not hold."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise click.ClickException(
            f"The name of {str(file)!r} is not in UTF-8: rename the file."
        ) from None
    return file


def _stable_name(path: Path, origin: Path) -> str:
    return path.relative_to(origin).as_posix()


def shown_path(file: Path) -> str:
    """Return how a user would find a file from here."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
