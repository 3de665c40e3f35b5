"""Printing of commands: colours and progress on a terminal, plain text otherwise."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

import click

from kerngen.cli.arguments.paths import shown_path
from kerngen.output.errors import OutputError
from kerngen.source.cells import clean
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.words import counted

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

MOST_SHOWN: Final = 20
"""The most errors of a file that are printed: the first ones explain most of the others."""

_QUIET: Final = "kerngen.quiet"


def console_for(stream: TextIO) -> Console:
    """Return a console for a stream that does not wrap lines or interpret markup."""
    from rich.console import Console

    return Console(file=stream, soft_wrap=True, markup=False, highlight=False)


def print_diagnostics(
    diagnostics: Iterable[Diagnostic], stream: TextIO, limit: int = MOST_SHOWN
) -> None:
    """Print diagnostics and their number.

    For each file, at most `limit` diagnostics are printed; 0 is no limit.
    """
    found = list(diagnostics)
    shown = _first(found, limit) if limit else found
    stream.write(_rendered(shown, stream))
    stream.write(f"\n{counted(len(found), 'error')}{_left_out(found, shown)}\n")
    stream.write(f"For more about {_one_of(shown)}\n")


def print_warnings(warnings: Sequence[Diagnostic], stream: TextIO) -> None:
    """Print warnings."""
    if warnings:
        stream.write(f"{_rendered(warnings, stream)}\n")


def _rendered(diagnostics: Iterable[Diagnostic], stream: TextIO) -> str:
    from kerngen.source.render import render

    console = console_for(stream)
    color = console.is_terminal and not console.no_color
    return render(diagnostics, color=color)


def _first(found: Iterable[Diagnostic], limit: int) -> list[Diagnostic]:
    """Return at most `limit` diagnostics of each file."""
    seen = Counter[str]()
    shown: list[Diagnostic] = []
    for diagnostic in found:
        path = diagnostic.span.source.path
        seen[path] += 1
        if seen[path] <= limit:
            shown.append(diagnostic)
    return shown


def _left_out(found: Sequence[Diagnostic], shown: Sequence[Diagnostic]) -> str:
    if len(shown) == len(found):
        return ""
    option = "--error-limit 0 of 'kerngen check'"
    return f", {len(shown)} of them shown: {option} shows all"


def _one_of(found: Sequence[Diagnostic]) -> str:
    codes = list(dict.fromkeys(diagnostic.code for diagnostic in found))
    which = "an" if len(codes) > 1 else "this"
    return f"{which} error, try 'kerngen explain {codes[0]}'."


def be_quiet() -> None:
    """Suppress messages of success for this command."""
    click.get_current_context().meta[_QUIET] = True


def say(text: str, *, err: bool = False) -> None:
    """Print a message of success, unless `be_quiet` was called."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or not ctx.meta.get(_QUIET):
        click.echo(text, err=err)


def say_waiting(folder: Path) -> None:
    """Print that the command waits for another process."""
    say(
        f"Waiting for the folder '{shown_path(folder)}': another kerngen command "
        f"holds it.",
        err=True,
    )


def print_diff(diff: str) -> None:
    """Print a unified diff, in colours on a terminal."""
    console = console_for(sys.stdout)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.splitlines():
        text = clean(line) if console.is_terminal else line
        console.print(text, style=styles.get(line[:1]))


def is_watched() -> bool:
    """Whether stderr is a terminal."""
    return console_for(sys.stderr).is_terminal and sys.stderr.isatty()


def progress(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """Yield items, with a progress bar if stderr is a terminal."""
    if total < 2 or not is_watched():
        yield from items
        return
    from rich.progress import track

    console = console_for(sys.stderr)
    yield from track(items, doing, total, console=console, transient=True)


def report_console() -> Console:
    """Return a console for tables and markup."""
    from rich.console import Console

    # Output that is piped has no width: 200 columns keep tables from being folded.
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def escape(text: str) -> str:
    """Escape text so that markup in it is printed literally."""
    from rich.markup import escape as escaped

    return escaped(text)


def no_adapter(purpose: str) -> click.ClickException:
    """Return the error for a command that needs an adapter, when there is none."""
    return click.ClickException(
        f"There is no adapter to {purpose}: 'kerngen doctor' says what is missing."
    )


@contextmanager
def reporting(stream: TextIO, limit: int = MOST_SHOWN) -> Generator[None]:
    """Turn diagnostics raised in a block into messages and exit status 1."""
    try:
        with reporting_system():
            yield
    except CompileError as error:
        print_diagnostics(error.diagnostics, stream, limit)
        raise click.exceptions.Exit(1) from None
    except OutputError as error:
        raise click.ClickException(clean(str(error))) from None


@contextmanager
def reporting_system() -> Generator[None]:
    """Turn an OSError raised in a block into a message and exit status 1.

    Control characters in texts that a message quotes are printed by their numbers, as a
    terminal would obey them.
    """
    try:
        yield
    except click.ClickException as error:
        lines = error.message.split("\n")
        vars(error)["message"] = "\n".join(map(clean, lines))  # final, for click
        raise
    except BrokenPipeError:
        raise  # the reader of our output has closed it, as `head` does
    except OSError as error:
        name = error.filename2 or error.filename
        where = f"'{clean(str(name))}': " if name else ""
        raise click.ClickException(f"{where}{error.strerror or error}.") from None
