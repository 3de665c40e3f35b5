"""`kerngen check`: diagnostics only."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from kerngen.cli.console import count, print_diagnostics, progress, reporting
from kerngen.cli.project import Selection, find_project, select
from kerngen.source.diagnostic import Diagnostic, Faults


@click.command()
@click.argument("src", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of faults.")
def check(src: Path | None, as_json: bool) -> None:
    """Check SRC, a .kern file or a folder of them, and write nothing."""
    selection = select(src, find_project())
    with reporting(sys.stdout):
        found = _diagnostics(selection)
    if as_json:
        from kerngen.source.render import to_json

        click.echo(json.dumps(to_json(found), indent=2))
    elif found:
        print_diagnostics(found, sys.stdout)
    else:
        click.echo(f"{count(len(selection.files), 'file')} checked: no errors.")
    if found:
        raise click.exceptions.Exit(1)


def _diagnostics(selection: Selection) -> list[Diagnostic]:
    from kerngen.compiler import Compiler

    library = selection.library()
    compiler = Compiler(library)
    asked = {source.name for source in selection.files}
    faults = Faults()
    for source in progress(selection.files, "Checking"):
        with faults.collect():
            compiler.programs(source.name)
            # Whether a schedule fits turns out where its kernel is compiled.
            for tuned in set(library.tuned_by(source.name)) - asked:
                compiler.programs(tuned)
    return list(faults)
