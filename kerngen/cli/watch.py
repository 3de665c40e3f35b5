"""`kerngen watch`: build again whenever a source is saved."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep, strftime
from typing import TYPE_CHECKING, Final, TypeAlias, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.arguments.targets import Targets
from kerngen.cli.build import build_sources
from kerngen.cli.console import reporting
from kerngen.cli.project import choose_out, select
from kerngen.cli.settings import find_project
from kerngen.syntax.library import SUFFIX, sources_below

if TYPE_CHECKING:
    from watchfiles import Change
    from watchfiles.main import FileChange

_States: TypeAlias = dict[Path, tuple[int, int]]
"""The time of the last change of each source, and its size."""

_LOOK_AFTER: Final = 1000
"""Milliseconds between two looks at all files, for changes that the system did not report."""


@click.command(
    epilog=options.examples("kerngen watch", "kerngen watch kernels --out my_kernels")
)
@options.src
@options.out_folder
@options.target
@options.jobs
def watch(
    src: Path | None, out: Path | None, targets: Targets | None, jobs: int | None
) -> None:
    """Build SRC again whenever a .kern file of its folder is saved.

    Errors are shown, and the old output stays until they are fixed.  A program that
    runs meanwhile loads the new kernels by 'kerngen.runtime.reload()'.  Ctrl-C ends.
    """
    project = find_project()
    selection = select(src, project)
    folder = choose_out(out, selection, project)
    session = _Session(src, selection.base, folder, targets or project.targets)
    try:
        session.build((), jobs)
        for changes in session.changes():
            session.build(changes, jobs=1)
    except KeyboardInterrupt:
        click.echo("\nStopped.")


@final
@dataclass
class _Session:
    """One run of the command."""

    src: Path | None
    base: Path
    out: Path
    targets: Targets
    states: _States = field(default_factory=dict[Path, tuple[int, int]])

    def build(self, changes: Iterable[str], jobs: int | None) -> None:
        """Build, and print errors or a summary; an error does not end the command."""
        if sys.stdout.isatty():
            click.clear()
        for change in changes:
            click.echo(f"{strftime('%H:%M:%S')} {change}")
        start = perf_counter()
        try:
            with reporting(sys.stdout):
                self.states = _states(self.base) if self.base.is_dir() else {}
                build_sources(select(self.src), self.out, self.targets, jobs)
        except click.ClickException as error:
            click.echo(f"error: {error.format_message()}")
        except click.exceptions.Exit:
            pass  # the faults are printed
        took = perf_counter() - start
        click.echo(f"{took:.2f} s. Watching {shown_path(self.base)}; Ctrl-C ends.")

    def changes(self) -> Iterator[list[str]]:
        """Yield the files that were saved, added and deleted, as it happens."""
        while True:
            yield from self._changes_while_there()
            if not self.base.is_dir():
                yield [f"{shown_path(self.base)} is gone"]
            while not self.base.is_dir():
                sleep(_LOOK_AFTER / 1000)
            yield [f"{shown_path(self.base)} is another folder than before"]

    def _changes_while_there(self) -> Iterator[list[str]]:
        """Yield changes as long as the folder is the same one.

        A switch of branches may remove it, and create another of the same name.
        """
        folder = _identity(self.base)
        if folder is None:
            return
        for changes in self._looks():
            if paths := {Path(path) for _, path in changes} or self._unnoticed():
                yield [self._told(path) for path in sorted(paths)]
            if _identity(self.base) != folder:
                return

    def _looks(self) -> Iterator[set[FileChange]]:
        """Yield the changes that the system reports, and an empty set every second."""
        from watchfiles import watch as watch_files

        try:
            yield from watch_files(
                self.base,
                watch_filter=self._is_source,
                rust_timeout=_LOOK_AFTER,
                yield_on_timeout=True,
            )
        except (OSError, RuntimeError) as error:  # a user may have few watches only
            why = str(error).partition(". about")[0]
            click.echo(f"note: {why}. Files are checked every second instead.")
            while True:
                sleep(_LOOK_AFTER / 1000)
                yield set()

    def _is_source(self, _change: Change, path: str) -> bool:
        """Whether a path is one that a build reads: no output, no editor's own file."""
        file = Path(path)
        inside = file.relative_to(self.base).parts
        return file.suffix == SUFFIX and not any(p.startswith(".") for p in inside)

    def _told(self, file: Path) -> str:
        """Return the text of a change: 'added', 'changed' or 'deleted'.

        The change that the system reports is not used: an editor may delete a file and
        create it again to change it.
        """
        change = "changed" if file in self.states else "added"
        return f"{shown_path(file)} {change if file.exists() else 'deleted'}"

    def _unnoticed(self) -> set[Path]:
        """Return the sources that differ from those of the last build.

        They were saved during the first build, or on a file system without notifications.
        """
        try:
            now = _states(self.base)
        except OSError:
            return set()
        return {file for file, _ in now.items() ^ self.states.items()}


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _states(base: Path) -> _States:
    """Return the states of all sources that a build may read, not only those asked for."""
    stats = {file: file.stat() for file in sources_below(base)}
    return {file: (stat.st_mtime_ns, stat.st_size) for file, stat in stats.items()}
