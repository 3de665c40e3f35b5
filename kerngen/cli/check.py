"""`kerngen check`: diagnostics only."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from kerngen.cli import options
from kerngen.cli.clashes import clashing_files
from kerngen.cli.console import (
    MOST_SHOWN,
    print_diagnostics,
    print_warnings,
    progress,
    reporting,
    say,
)
from kerngen.cli.paths import PATH
from kerngen.cli.project import Selection, refuse_stdin_among_files, select_or_read
from kerngen.cli.python_names import rename_notes, renamed_items
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.worded import counted

if TYPE_CHECKING:
    from kerngen.check.unused import Unused
    from kerngen.source.text import Span


@click.command(
    epilog=options.examples(
        "kerngen check",
        "kerngen check kernels/layers.kern kernels/losses.kern --json",
        "kerngen check - < layers.kern",
    )
)
@click.argument("sources", nargs=-1, metavar="[SRC]...", type=PATH)
@options.as_json("a JSON list of faults, or of hints")
@options.stdin_filename
@click.option(
    "--error-limit",
    type=click.IntRange(0),
    default=MOST_SHOWN,
    show_default=True,
    help="Show at most this many errors of each file; 0 shows all, as --json does.",
)
@options.quiet
def check(
    sources: tuple[Path, ...],
    as_json: bool,
    stdin_filename: str | None,
    error_limit: int,
) -> None:
    """Check SRC for errors, and write nothing.

    SRC are .kern files and folders of them, or '-' for stdin; by default, the
    project's.  Hints, such as a name that is never read, are not errors.
    """
    refuse_stdin_among_files(sources, stdin_filename)
    refused = _refused_as_json if as_json else nullcontext
    parts: list[_Part] = []
    for src in sources or (None,):
        with refused(src):
            parts.append(_Part(select_or_read(src, stdin_filename)))
    with refused(None), reporting(sys.stdout, error_limit):
        found = [*dict.fromkeys(each for part in parts for each in _diagnostics(part))]
    warnings = () if found else _warnings(parts)
    hints = () if found else dict.fromkeys(h for part in parts for h in _hints(part))
    if as_json:
        from kerngen.source.render import note_to_json, to_json

        told = [note_to_json("hint", each.text, each.path, each.span) for each in hints]
        click.echo(json.dumps([*to_json([*found, *warnings]), *told], indent=2))
    elif found:
        print_diagnostics(found, sys.stdout, error_limit)
    else:
        print_warnings(warnings, sys.stdout)
        for hint in hints:
            say(f"hint: {hint.text}{_at(hint.span)}")
        files = {source.file for part in parts for source in part.selection.files}
        say(f"{counted(len(files), 'file')} checked: no errors.")
    if found:
        raise click.exceptions.Exit(1)


@contextmanager
def _refused_as_json(src: Path | None) -> Generator[None]:
    """Print what the system refuses, such as a file that does not exist, as JSON."""
    try:
        yield
    except click.UsageError:
        raise
    except click.ClickException as error:
        from kerngen.source.render import note_to_json

        path = "" if src is None else str(src)
        click.echo(json.dumps([note_to_json("error", error.message, path)], indent=2))
        raise click.exceptions.Exit(error.exit_code) from None


@final
class _Part:
    """What one SRC names, and its compiler."""

    def __init__(self, selection: Selection) -> None:
        from kerngen.compiler import Compiler

        self.selection = selection
        self.library = selection.library()
        self.compiler = Compiler(self.library)


def _diagnostics(part: _Part) -> list[Diagnostic]:
    """Return all faults; where there are none, those of files side by side."""
    files, compiler = part.selection.files, part.compiler
    asked = {source.name for source in files}
    faults = Faults()
    paths: dict[str, list[str]] = {}
    for source in progress(files, len(files), "Checking"):
        with faults.collect():
            made = compiler.check(source.name)
            paths[source.name] = [str(source.folder / path) for path in made]
            # Whether a schedule fits turns out where its kernel is compiled.
            for tuned in set(part.library.tuned_by(source.name)) - asked:
                compiler.check(tuned)
    return list(faults) or [*clashing_files(part.library, paths)]


@final
@dataclass(frozen=True, slots=True)
class _Hint:
    """What could be better in a file; of names in Python, nowhere in particular."""

    text: str
    path: str
    span: Span | None = None


def _warnings(parts: Sequence[_Part]) -> tuple[Diagnostic, ...]:
    """Return the warnings of files that have no faults, each once."""
    return tuple(
        dict.fromkeys(
            warning
            for part in parts
            for file in part.selection.files
            for warning in part.compiler.module(file.name).warnings
        )
    )


def _hints(part: _Part) -> Iterator[_Hint]:
    """Yield what could be better in files that have no faults."""
    from kerngen.check.overlaps import find_overlaps
    from kerngen.cli.layout_data import hints
    from kerngen.cli.layout_text import hint_text

    for file in part.selection.files:
        module = part.compiler.module(file.name)
        items = renamed_items(module)
        path = part.library.source(file.name).path
        yield from (_Hint(f"{note}.", path) for note in rename_notes(file, items))
        for unused in _unused(part, file.name):
            yield _Hint(unused.text, path, unused.span)
        for kernel in module.kernels:
            for overlap in find_overlaps(kernel):
                yield _Hint(overlap.text, path, overlap.span)
        for better in hints(module):
            yield _Hint(hint_text(better), path, better.struct.span)


def _at(span: Span | None) -> str:
    """Return the line that says where something is."""
    if span is None:
        return ""
    line, column = span.source.position(span.start)
    return f"\n --> {span.source.path}:{line}:{column}\n"


def _unused(part: _Part, name: str) -> Iterator[Unused]:
    """Yield what a file introduces and never uses."""
    from kerngen.check.unused import find_unused, words_of_guards
    from kerngen.syntax.parser import read

    names = (name, *part.library.tuners(name))
    programs = [read(part.library.source(each)) for each in names]
    guards = frozenset[str]().union(*map(words_of_guards, programs))
    return find_unused(programs[0], guards)
