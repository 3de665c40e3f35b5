"""The sources of a command, from its arguments and the project's settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import final

import click

from kerngen.cli.arguments.paths import STDIN, absolute, shown_path
from kerngen.cli.settings import Project, find_project
from kerngen.source.reading import LARGEST, decode_source, read_source
from kerngen.source.text import Source
from kerngen.source.words import package_fault, package_like, python_word
from kerngen.syntax.library import SUFFIX, Library, origin_of, sources_below

UNNAMED = "<stdin>"
"""The name of stdin in messages, unless `--stdin-filename` gives one."""


@final
@dataclass(frozen=True, slots=True)
class SourceFile:
    """One `.kern` file.

    `name` is its stable name, the same wherever the command runs: mostly the source
    folder's name and the path `inside` it.  `shown` is its path from the working directory,
    absolute if it is elsewhere.  In the folder `kernels` of a project:

        name kernels/nn/norm.kern, inside nn/norm.kern, shown nn/norm.kern
    """

    file: Path
    name: str
    shown: str
    inside: PurePosixPath

    @property
    def folder(self) -> PurePosixPath:
        """The folder of its module in the output."""
        return PurePosixPath(*map(python_word, self.inside.parent.parts))

    @property
    def module(self) -> str:
        """The name of its Python module; a text from stdin has none."""
        if self.inside.name == UNNAMED:
            return UNNAMED
        return ".".join(map(python_word, self.inside.with_suffix("").parts))

    @property
    def is_renamed(self) -> bool:
        """Whether the module's name differs from the file's."""
        return self.module.split(".") != [*self.inside.with_suffix("").parts]


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """The sources that a command was asked for.

    - `chosen`: the file or folder that was asked for, inside of `base`
    - `origin`: the folder that names are relative to
    - `build`: the names of all files whose schedules count: those asked for, and the others
      of a project
    - `root`: the folder that no `use` leads out of; None for a file outside of a project
    - `texts`: texts to use in place of the contents of files, by name
    """

    base: Path
    chosen: Path
    origin: Path
    files: tuple[SourceFile, ...]
    build: tuple[str, ...]
    root: str | None
    texts: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def library(self) -> Library:
        """Return the library of the sources and all that they use."""
        return Library(self._read, self.build, self.root)

    def having(self, name: str, text: bytes) -> Selection:
        """Return the sources with another text for one file."""
        build = tuple(dict.fromkeys((*self.build, name)))
        return replace(self, build=build, texts={**self.texts, name: text})

    def without(self, name: str) -> Selection:
        """Return the sources without one file."""
        return replace(
            self,
            files=tuple(file for file in self.files if file.name != name),
            build=tuple(each for each in self.build if each != name),
        )

    def _read(self, name: str) -> Source:
        file = Path(os.path.normpath(self.origin / name))
        if name in self.texts:
            known = {each.name: each.shown for each in self.files}
            shown = known.get(name) or shown_path(file)
            return decode_source(self.texts[name], shown, name)
        return read_source(file, shown_path(file), name)

    def covers(self, name: str) -> bool:
        """Whether a source with this name, existing or not, was asked for."""
        chosen = PurePosixPath(_stable_name(self.chosen, self.origin))
        inside = PurePosixPath(name).is_relative_to(chosen)
        return name.endswith(SUFFIX) and (inside or self.chosen == self.base)


def select(src: Path | None, project: Project | None = None) -> Selection:
    """Return the sources for the argument SRC, or the project's."""
    project = project or find_project()
    if src == STDIN:
        raise click.UsageError("This command reads no stdin: give a file or a folder.")
    if src is None and project.source is None:
        raise click.UsageError(
            "Give SRC, a .kern file or a folder of them: no pyproject.toml here sets "
            "'source' under [tool.kerngen]."
        )
    chosen = absolute(src or project.source or Path())
    refuse_no_source(src or chosen, "" if src else shown_path(project.file))
    base = _base(chosen, project, is_file=chosen.is_file())
    origin = origin_of(base)
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


def select_file(path: Path, stdin: str | None = None) -> tuple[Selection, SourceFile]:
    """Return one source with all that it may use; '-' is stdin."""
    if path.is_dir():
        raise click.UsageError(f"'{path}' is a folder. Give one {SUFFIX} file.")
    selection = select_or_read(path, stdin)
    (source,) = selection.files
    return selection, source


def select_or_read(src: Path | None, stdin: str | None = None) -> Selection:
    """Return the sources for SRC; for '-' the text on stdin, with `stdin` as its path.

    The text on stdin may be a new text of an existing file, which it then replaces.
    """
    if src != STDIN:
        return select(src)
    file = absolute(Path(stdin or UNNAMED))
    if stdin is not None and (file.is_dir() or file.suffix != SUFFIX):
        raise click.UsageError(f"--stdin-filename '{stdin}' is not a {SUFFIX} file.")
    selection = select_around(file, stdin or UNNAMED, find_project())
    return selection.having(selection.files[0].name, read_stdin())


def select_around(file: Path, shown: str, project: Project) -> Selection:
    """Return one source, existing or not, with all that it may use."""
    base = _base(file, project, is_file=True)
    origin = origin_of(base)
    name = _stable_name(file, origin)
    is_lone = base != project.source
    others = () if is_lone else _sources(base, base, origin)
    return Selection(
        base,
        file,
        origin,
        (SourceFile(file, name, shown, PurePosixPath(file.relative_to(base))),),
        build=tuple(dict.fromkeys((*(each.name for each in others), name))),
        root=None if is_lone else _stable_name(base, origin),
    )


def refuse_stdin_among_files(paths: Sequence[Path], stdin_filename: str | None) -> None:
    """Refuse '-' beside other paths, and a name for stdin without '-'."""
    if stdin_filename is not None and STDIN not in paths:
        raise click.UsageError("--stdin-filename is for stdin: give '-' as well.")
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("'-' can't be given together with files.")


def read_stdin() -> bytes:
    """Read a source from stdin, just enough to detect one beyond the size limit."""
    if sys.stdin is None:  # its caller has closed it
        raise click.UsageError("'-' reads stdin, which is closed.")
    return sys.stdin.buffer.read(LARGEST + 1)


def refuse_no_source(path: Path, setting: str = "") -> None:
    """Refuse a path that is neither a folder nor a source."""
    named = f", which {setting} names as 'source'," if setting else ""
    if not path.exists():
        raise click.ClickException(f"'{path}'{named} does not exist.")
    if path.is_file() and path.suffix != SUFFIX:
        raise click.ClickException(f"'{path}'{named} is not a {SUFFIX} file.")


def _sources(chosen: Path, base: Path, origin: Path) -> tuple[SourceFile, ...]:
    return tuple(
        SourceFile(
            file,
            _stable_name(file, origin),
            shown_path(file),
            PurePosixPath(file.relative_to(base)),
        )
        for file in find_sources(chosen)
    )


def choose_out(out: Path | None, selection: Selection, project: Project) -> Path:
    """Return the output folder: the given one, or the project's."""
    if (
        out is None
        and project.out is not None
        and project.source not in {None, selection.base, selection.chosen}
    ):
        raise click.UsageError(
            f"Give --out: '{project.out}' is for the sources in '{project.source}', and "
            f"'{selection.chosen}' is not one of them."
        )
    return package_folder(out, project)


def package_folder(out: Path | None, project: Project) -> Path:
    """Return the output folder: the given one, or the project's."""
    if out is not None:
        folder = absolute(out)
        if why := _no_package(folder):
            raise click.UsageError(f"--out: '{out}' can't be a package: {why}")
        return folder
    if project.out is None:
        raise click.UsageError(
            "Give --out, the folder to write to: no pyproject.toml here sets 'out' under "
            "[tool.kerngen]."
        )
    if why := _no_package(project.out):
        shown = shown_path(project.file)
        raise click.ClickException(f"{shown}: 'out' can't be a package: {why}")
    return project.out


def _no_package(folder: Path) -> str:
    """Return why no Python package can be made of a folder, or ""."""
    if folder.is_file():
        return ""  # writing refuses it
    if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
        return "it is a project's own folder. Give one for generated files alone."
    # Within a package, a name such as 'json' hides no other module.
    hides_nothing = (folder.parent / "__init__.py").exists()
    if hides_nothing and python_word(folder.name) == folder.name:
        return ""
    why = package_fault(folder.name)
    return why and f"{why}. '{package_like(folder.name)}' would do."


def _base(chosen: Path, project: Project, *, is_file: bool) -> Path:
    """Return the source folder: the project's if the chosen path is in it."""
    source = project.source
    if source is not None and source.is_dir() and chosen.is_relative_to(source):
        return source
    return chosen.parent if is_file else chosen


def find_sources(chosen: Path) -> list[Path]:
    """Return every source below a folder, hidden ones left out, in a stable order.

    Raises `OSError` where a folder can't be read.
    """
    if not chosen.is_dir():
        return [chosen]
    return sorted(map(_utf8_named, sources_below(chosen)))


def _utf8_named(file: Path) -> Path:
    """Return a source; refuse a name that is not in UTF-8, as generated files are."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise click.ClickException(
            f"The name of {str(file)!r} is not in UTF-8: rename the file."
        ) from None
    return file


def _stable_name(path: Path, origin: Path) -> str:
    return path.relative_to(origin).as_posix()
