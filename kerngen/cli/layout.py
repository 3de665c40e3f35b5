"""`kerngen layout`: print the offset of every field of structs, and explain it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import PATH
from kerngen.cli.console import console_for, reporting
from kerngen.cli.project import select_file
from kerngen.source.similar import suggesting

if TYPE_CHECKING:
    from rich.console import Console

    from kerngen.ir.module import Module
    from kerngen.layout.order import BetterOrder
    from kerngen.report.layout_data import LayoutSubject
    from kerngen.report.layout_picture import Pieces


@click.command(
    epilog=options.examples(
        "kerngen layout kernels/lights.kern",
        "kerngen layout kernels/lights.kern Light --explain color",
    )
)
@click.argument("file", type=PATH)
@click.argument("struct", required=False)
@options.as_json("a JSON object")
@click.option(
    "--explain",
    metavar="FIELD",
    help="Explain why FIELD is where it is: 'Light.color', or 'color' after STRUCT.",
)
def layout(file: Path, struct: str | None, as_json: bool, explain: str | None) -> None:
    """Show the memory layout of the structs in FILE, byte by byte.

    FILE may be '-', stdin.  STRUCT is a struct of the file, or a kernel, whose
    parameters are a struct too.
    """
    if as_json and explain is not None:
        raise click.UsageError("Give either --json or --explain.")
    with reporting(sys.stderr):
        module = _module(file)
        if as_json:
            click.echo(_json(module, struct))
            return
        lines = (
            _explained(module, struct, explain) if explain else _table(module, struct)
        )
        console = console_for(sys.stdout)
        for line in lines:
            _print(line, console)


def _module(file: Path) -> Module:
    from kerngen.compiler import Compiler

    selection, source = select_file(file)
    return Compiler(selection.library()).module(source.name)


def _chosen(module: Module, struct: str | None) -> list[LayoutSubject]:
    """Return the structs of a name, or all structs without a name."""
    from kerngen.report.layout_data import subjects

    found = subjects(module, foreign=struct is not None)
    chosen = [each for each in found if struct is None or struct in each.names]
    if struct is not None and not chosen:
        names = (name for each in found for name in each.names)
        sentence = f"There is no struct '{struct}'."
        raise click.ClickException(suggesting(sentence, struct, names))
    if not chosen:
        raise click.ClickException("There are no structs in the file.")
    return chosen


def _better(module: Module, chosen: list[LayoutSubject]) -> list[BetterOrder]:
    from kerngen.report.layout_data import hints

    items = [each.item for each in chosen]
    return [each for each in hints(module) if each.struct in items]


def _json(module: Module, struct: str | None) -> str:
    from kerngen.report.layout_data import as_data

    chosen = _chosen(module, struct)
    data = as_data(module.path, chosen, _better(module, chosen))
    return json.dumps(data, indent=2)


def _table(module: Module, struct: str | None) -> Iterator[Pieces]:
    from kerngen.report.layout_text import as_text

    chosen = _chosen(module, struct)
    return as_text(chosen, _better(module, chosen))


def _explained(module: Module, struct: str | None, field: str) -> Iterator[Pieces]:
    from kerngen.cli.layouts.explain import explain_field
    from kerngen.cli.layouts.fields import choose, split

    chosen = _chosen(module, struct)
    subject, steps = choose(chosen, split(field))
    return explain_field(subject, steps)


def _print(line: Pieces, console: Console) -> None:
    from rich.text import Text

    console.print(Text.assemble(*line))
