"""`kerngen check`: diagnostics only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerngen.cli.console import print_diagnostics, progress, reporting
from kerngen.cli.project import Selection, find_project, select
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.worded import counted
from kerngen.syntax.library import Library

if TYPE_CHECKING:
    from kerngen.compiler import Compiler


@click.command()
@click.argument("src", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of faults.")
def check(src: Path | None, as_json: bool) -> None:
    """Check SRC, a .kern file or a folder of them, and write nothing.

    Hints, such as an order of fields that makes a struct smaller, are no faults.
    """
    from kerngen.compiler import Compiler

    selection = select(src, find_project())
    library = selection.library()
    compiler = Compiler(library)
    with reporting(sys.stdout):
        found = _diagnostics(selection, library, compiler)
    if as_json:
        from kerngen.source.render import to_json

        click.echo(json.dumps(to_json(found), indent=2))
    elif found:
        print_diagnostics(found, sys.stdout)
    else:
        for line in _hints(selection, compiler):
            click.echo(line)
        click.echo(f"{counted(len(selection.files), 'file')} checked: no errors.")
    if found:
        raise click.exceptions.Exit(1)


def _diagnostics(
    selection: Selection, library: Library, compiler: Compiler
) -> list[Diagnostic]:
    asked = {source.name for source in selection.files}
    faults = Faults()
    for source in progress(selection.files, len(asked), "Checking"):
        with faults.collect():
            compiler.programs(source.name)
            # Whether a schedule fits turns out where its kernel is compiled.
            for tuned in set(library.tuned_by(source.name)) - asked:
                compiler.programs(tuned)
    return list(faults)


def _hints(selection: Selection, compiler: Compiler) -> Iterator[str]:
    """Yield what could be better in files that have no faults."""
    from kerngen.cli.layout_data import hints
    from kerngen.cli.layout_text import hint_text

    for file in selection.files:
        for better in hints(compiler.module(file.name)):
            yield f"hint: {hint_text(better)}"
            if span := better.struct.span:
                line, column = span.source.position(span.start)
                yield f" --> {span.source.path}:{line}:{column}\n"
