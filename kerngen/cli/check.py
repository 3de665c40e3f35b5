"""`kerngen check`: print diagnostics, write nothing."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import PATH, STDIN
from kerngen.cli.console import (
    MOST_SHOWN,
    print_diagnostics,
    print_warnings,
    progress,
    reporting,
    say,
    say_waiting,
)
from kerngen.cli.project import refuse_stdin_among_files, select, select_or_read
from kerngen.source.words import counted

if TYPE_CHECKING:
    from kerngen.cli.project import Selection, SourceFile
    from kerngen.report.findings import Sources
    from kerngen.source.diagnostic import Diagnostic
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
@click.option(
    "--fix",
    "fixing",
    is_flag=True,
    help="Change the files by the hints that are edits, then check them.",
)
@options.quiet
def check(
    sources: tuple[Path, ...],
    as_json: bool,
    stdin_filename: str | None,
    error_limit: int,
    fixing: bool,
) -> None:
    """Check SRC for errors, and write nothing but fixes with --fix.

    SRC are .kern files and folders of them, or '-' for stdin; by default, the
    project's.  Hints, such as a name that is never read, are not errors.  A fix removes
    an error and causes no other.
    """
    refuse_stdin_among_files(sources, stdin_filename)
    refused = _refused_as_json if as_json else nullcontext
    for src in (sources or (None,)) if fixing else ():
        if src == STDIN:
            raise click.UsageError("--fix changes files: it can't be given with '-'.")
        with refused(src):
            _fix(select(src), aside=as_json)
    parts: list[Sources] = []
    for src in sources or (None,):
        with refused(src):
            parts.append(_sources(src, stdin_filename))
    with refused(None), reporting(sys.stdout, error_limit):
        found = [*dict.fromkeys(each for part in parts for each in _diagnostics(part))]
    right = () if found else parts
    warnings = tuple(dict.fromkeys(w for part in right for w in part.warnings()))
    hints = dict.fromkeys(hint for part in right for hint in part.hints())
    if as_json:
        from kerngen.report.findings import as_json as listed

        click.echo(json.dumps(listed([*found, *warnings], hints), indent=2))
    elif found:
        print_diagnostics(found, sys.stdout, error_limit)
    else:
        print_warnings(warnings, sys.stdout)
        for hint in hints:
            say(f"hint: {hint.text}{_at(hint.span)}")
        files = {source.shown for part in parts for source in part.files}
        say(f"{counted(len(files), 'file')} checked: no errors.")
    if found:
        raise click.exceptions.Exit(1)


def _fix(selection: Selection, *, aside: bool) -> None:
    """Write fixed files; with JSON on stdout, messages go to stderr.

    A fix may depend on that of a file that is used, so all files are tried again while
    anything was fixed, in at most as many rounds as there are files.
    """
    numbers = dict.fromkeys(selection.files, 0)
    left = [*selection.files]
    for _ in selection.files:
        fixed = 0
        for file in (*left,):
            try:
                number = _fixed(selection, file)
            except OSError as error:
                left.remove(file)
                click.echo(f"{file.shown} can't be changed: {error.strerror}", err=True)
            else:
                numbers[file] += number
                fixed += number
        if not fixed:
            break
    for file, number in numbers.items():
        if number:
            say(f"{counted(number, 'error')} fixed in {file.shown}", err=aside)


def _fixed(selection: Selection, file: SourceFile) -> int:
    """Write a file with its fixes, and return their number."""
    from kerngen.output.atomic_replace import replace_atomically
    from kerngen.report.findings import Sources
    from kerngen.report.fixes import fixed
    from kerngen.source.diagnostic import CompileError

    part = Sources(selection.library(), (file,))
    try:
        before = part.library.source(file.name).text
        after, number = fixed(part, file.name)
    except CompileError:
        return 0  # what can't be read is reported by the check
    if number:
        mark = codecs.BOM_UTF8 * file.file.read_bytes().startswith(codecs.BOM_UTF8)
        old, new = (mark + each.encode() for each in (before, after))
        replace_atomically(file.file, old, new, say_waiting)
    return number


@contextmanager
def _refused_as_json(src: Path | None) -> Generator[None]:
    """Print errors of arguments, such as a file that does not exist, as JSON."""
    try:
        yield
    except click.UsageError:
        raise
    except click.ClickException as error:
        from kerngen.source.render import note_to_json

        path = "" if src is None else str(src)
        click.echo(json.dumps([note_to_json("error", error.message, path)], indent=2))
        raise click.exceptions.Exit(error.exit_code) from None


def _sources(src: Path | None, stdin_filename: str | None) -> Sources:
    from kerngen.report.findings import Sources

    selection = select_or_read(src, stdin_filename)
    return Sources(selection.library(), selection.files)


def _diagnostics(part: Sources) -> list[Diagnostic]:
    files = part.files
    return part.diagnostics(progress(files, len(files), "Checking"))


def _at(span: Span | None) -> str:
    """Return the line with the place of something."""
    if span is None:
        return ""
    line, column = span.source.position(span.start)
    return f"\n --> {span.source.path}:{line}:{column}\n"
