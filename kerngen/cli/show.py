"""`kerngen show`: what the compiler makes of one kernel."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from kerngen.cli.console import console_for, reporting
from kerngen.cli.project import Selection, find_project, select
from kerngen.source.similar import suggesting

if TYPE_CHECKING:
    from kerngen.schedule.program import KernelProgram


@click.command()
@click.argument("kernel")
@click.argument("src", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def show(kernel: str, src: Path | None, as_json: bool) -> None:
    """Show KERNEL: its equation, its uniform struct, its stages, each schedule's WGSL.

    KERNEL is a kernel's name, or file.kernel where two files have one of that name.  SRC
    is a .kern file or a folder of them.
    """
    selection = select(src, find_project())
    with reporting(sys.stderr):
        program = _find(kernel, selection)
        if as_json:
            from kerngen.cli.describe import as_data

            click.echo(json.dumps(as_data(program), indent=2))
            return
        from kerngen.cli.describe import as_text

        console = console_for(sys.stdout)
        for line, style in as_text(program):
            console.print(line, style=style)


def _find(wanted: str, selection: Selection) -> KernelProgram:
    """Return the one kernel of that name, or raise with what could have been meant."""
    found = dict(_programs(selection))
    matches = [
        program
        for name, program in found.items()
        if wanted in {name, name.rpartition(".")[2]}
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = (n for n in found if n.rpartition(".")[2] == wanted)
        raise click.ClickException(
            f"There are several kernels '{wanted}': {', '.join(names)}."
        )
    known = [*found, *(name.rpartition(".")[2] for name in found)]
    sentence = f"There is no kernel '{wanted}'."
    raise click.ClickException(suggesting(sentence, wanted, known))


def _programs(selection: Selection) -> Iterator[tuple[str, KernelProgram]]:
    from kerngen.compiler import Compiler

    compiler = Compiler(selection.library())
    for file in selection.files:
        for program in compiler.programs(file.name):
            name = program.staged.kernel.name
            yield f"{PurePosixPath(file.name).stem}.{name}", program
