"""`kerngen fmt`: bring sources into their canonical form."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import PATH, STDIN, shown_path
from kerngen.cli.console import (
    print_diagnostics,
    print_diff,
    reporting,
    say,
    say_waiting,
)
from kerngen.cli.project import (
    UNNAMED,
    find_sources,
    read_stdin,
    refuse_no_source,
    refuse_stdin_among_files,
)
from kerngen.cli.settings import find_project
from kerngen.source.cells import clean
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.source.reading import read_data
from kerngen.source.words import counted
from kerngen.syntax.library import SUFFIX

if TYPE_CHECKING:
    from kerngen.format.files import Formatted


@click.command(
    epilog=options.examples(
        "kerngen fmt",
        "kerngen fmt --check kernels  # in CI",
        "kerngen fmt - < layers.kern",
    )
)
@click.argument("paths", nargs=-1, type=PATH)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Write nothing; exit 1, and list the files, if some would change.",
)
@click.option(
    "--diff",
    "diffing",
    is_flag=True,
    help="Write nothing; exit 1, and print the changes, if there are some.",
)
@options.stdin_filename
@options.quiet
def fmt(
    paths: tuple[Path, ...], checking: bool, diffing: bool, stdin_filename: str | None
) -> None:
    """Format PATHS, .kern files and folders of them, in place.

    By default, they are the project's; '-' formats stdin to stdout.  The style
    has no options.  A file that can't be parsed is left as it is.
    """
    refuse_stdin_among_files(paths, stdin_filename)
    run = _Run(writing=not (checking or diffing), diffing=diffing)
    with reporting(sys.stderr):
        if paths == (STDIN,):
            run.format_stdin(stdin_filename or UNNAMED)
        else:
            run.format_files(tuple(_files(paths)))
    run.report()


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the sources that are named, or the project's, each once."""
    source = find_project().source
    if not paths and source is None:
        raise click.UsageError(
            "Give PATHS, .kern files or folders of them: no pyproject.toml here sets "
            "'source' under [tool.kerngen]."
        )
    seen: set[str] = set()
    for path in paths or (source or Path(),):
        refuse_no_source(path)
        files = find_sources(path)
        if not files:
            click.echo(
                f"warning: There are no {SUFFIX} files in '{clean(str(path))}'.",
                err=True,
            )
        for file in files:
            # For a link to itself it returns the link, and reading that fails.
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield file


@final
@dataclass
class _Run:
    """One run of the command, with its counts and faults."""

    writing: bool
    diffing: bool
    files: int = 0
    changed: int = 0
    faults: Faults = field(default_factory=Faults)
    failed: int = 0

    def format_files(self, files: tuple[Path, ...]) -> None:
        """Format each file; the others are formatted even if one is faulty."""
        for file in files:
            self.files += 1
            try:
                self._format(file)
            except CompileError as error:
                self.failed += 1
                for diagnostic in error.diagnostics:
                    self.faults.add(diagnostic)
            except OSError as error:
                self.failed += 1
                reason = error.strerror or error
                click.echo(f"error: '{shown_path(file)}': {reason}.", err=True)

    def _format(self, file: Path) -> None:
        from kerngen.format.files import format_data
        from kerngen.output.atomic_replace import replace_atomically

        result = format_data(read_data(file), shown_path(file))
        if result.changed and self.writing:
            replace_atomically(file, result.before, result.after, say_waiting)
        self._tell(result)

    def format_stdin(self, name: str) -> None:
        """Format the text on stdin to stdout."""
        from kerngen.format.files import format_data

        result = format_data(read_stdin(), name)
        if self.writing:
            if sys.stdout is None:  # its caller has closed it
                raise click.ClickException(
                    "The text can't be written: stdout is closed."
                )
            sys.stdout.buffer.write(result.after)
        else:
            self.files = 1
            self._tell(result)

    def _tell(self, result: Formatted) -> None:
        if not result.changed:
            return
        self.changed += 1
        if self.diffing:
            print_diff(result.diff())
        else:
            did = "reformatted" if self.writing else "would reformat"
            say(f"{did} {clean(result.shown)}")

    def report(self) -> None:
        """Print the faults and a summary, and exit with the status of the run."""
        if self.faults:
            print_diagnostics(self.faults, sys.stderr)
        if self.files:
            say(f"{', '.join(self._counts())}.", err=self.diffing)
        if self.failed or (self.changed and not self.writing):
            raise click.exceptions.Exit(1)

    def _counts(self) -> Iterator[str]:
        """Yield the numbers of files with each outcome, zeros left out."""
        changed, same = "reformatted", "left unchanged"
        if not self.writing:
            changed, same = "would be reformatted", "already formatted"
        counts = {
            changed: self.changed,
            same: self.files - self.changed - self.failed,
            "could not be formatted": self.failed,
        }
        for words, number in counts.items():
            if number:
                yield f"{counted(number, 'file')} {words}"
