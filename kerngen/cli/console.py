"""How commands talk: colours and progress on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from kerngen.output.errors import OutputError
from kerngen.source.cells import clean
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.worded import counted

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")


def console_for(stream: TextIO) -> Console:
    """Return a console that neither wraps nor reads markup: what is printed is data."""
    from rich.console import Console

    return Console(file=stream, soft_wrap=True, markup=False, highlight=False)


def print_diagnostics(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """Print diagnostics for people, how many there are, and where to read on."""
    from kerngen.source.render import render

    found = list(diagnostics)
    console = console_for(stream)
    color = console.is_terminal and not console.no_color
    stream.write(render(found, color=color))
    stream.write(f"\n{counted(len(found), 'error')}\n")
    stream.write(f"For more about {_one_of(found)}\n")


def _one_of(found: Sequence[Diagnostic]) -> str:
    codes = list(dict.fromkeys(diagnostic.code for diagnostic in found))
    which = "an" if len(codes) > 1 else "this"
    return f"{which} error, try 'kerngen explain {codes[0]}'."


def print_diff(diff: str) -> None:
    """Print a unified diff, in colours on a terminal."""
    console = console_for(sys.stdout)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.splitlines():
        console.print(line, style=styles.get(line[:1]))


def progress(items: Iterable[T], number: int, doing: str) -> Iterator[T]:
    """Yield so many items, with a progress bar if a person is watching."""
    if number < 2 or not (console := console_for(sys.stderr)).is_terminal:
        yield from items
        return
    from rich.progress import track

    yield from track(items, doing, total=number, console=console, transient=True)


def report_console() -> Console:
    """Return a console for tables and marked-up text, wide enough in a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def escape(text: str) -> str:
    """Return a text that stands for itself among marked-up text."""
    from rich.markup import escape as escaped

    return escaped(text)


def watched(items: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """Yield what comes in the course of a long run, with progress if a person watches."""
    console = console_for(sys.stderr)
    if not console.is_terminal:
        yield from items
        return
    from rich.progress import track

    yield from track(items, doing, total, console=console, transient=True)


def no_adapter(purpose: str) -> click.ClickException:
    """Return what to raise where a command needs an adapter, and there is none."""
    return click.ClickException(
        f"There is no adapter to {purpose}: 'kerngen doctor' says what is missing."
    )


@contextmanager
def reporting(stream: TextIO) -> Generator[None]:
    """Turn a user's faults into messages and exit status 1."""
    try:
        with reporting_system():
            yield
    except CompileError as error:
        print_diagnostics(error.diagnostics, stream)
        raise click.exceptions.Exit(1) from None
    except OutputError as error:
        raise click.ClickException(clean(str(error))) from None


@contextmanager
def reporting_system() -> Generator[None]:
    """Turn what the system refuses, a path or a full disk, into a message and status 1."""
    try:
        yield
    except BrokenPipeError:
        raise  # who read our output has seen enough
    except OSError as error:
        name = error.filename2 or error.filename
        where = f"'{clean(str(name))}': " if name else ""
        raise click.ClickException(f"{where}{error.strerror or error}.") from None
