"""`kerngen build`: generate what changed, or check that nothing would."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from kerngen.cli.console import console_for, count, progress, reporting
from kerngen.cli.project import (
    Selection,
    SourceFile,
    choose_out,
    find_project,
    select,
)
from kerngen.output.files import Generated
from kerngen.output.freshness import Freshness, stamp_all
from kerngen.output.manifest import digest
from kerngen.output.write import Difference, Summary, check, write
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.source.reading import read_source


@click.command()
@click.argument("src", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="The folder to write to; it becomes a Python package.",
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Write nothing; exit 1, with a diff, if a build would.",
)
def build(src: Path | None, out: Path | None, checking: bool) -> None:
    """Generate WGSL, bindings and references from SRC, a .kern file or a folder of them.

    A folder's build removes what its sources no longer generate.  A build that fails
    leaves the old output as it was.
    """
    project = find_project()
    selection = select(src, project)
    target = choose_out(out, selection, project)
    with reporting(sys.stderr):
        if checking:
            _check(selection, target)
        else:
            _build(selection, target)


def _build(selection: Selection, out: Path) -> None:
    texts = _read(selection.files)
    freshness = Freshness(out)
    stale = [
        source
        for source, text in texts.items()
        if not freshness.is_fresh(source.name, digest(text.encode()))
    ]
    fresh = {source.name for source in texts} - {source.name for source in stale}
    generated = _compile(stale, texts)
    summary = write(
        generated,
        out,
        keep=lambda name: name in fresh or not selection.covers(name),
    )
    if generated:
        stamp_all(out, {one.source for one in generated})
    _report(summary, out)


def _check(selection: Selection, out: Path) -> None:
    generated = _compile(selection.files, _read(selection.files))
    differences = check(generated, out, keep=lambda name: not selection.covers(name))
    if not differences:
        click.echo(f"{_shown(out)} is up to date.")
        return
    for difference in differences:
        _print_difference(difference)
    click.echo(
        f"{_shown(out)}: {count(len(differences), 'file')} out of date. "
        f"'kerngen build' brings them up to date.",
        err=True,
    )
    raise click.exceptions.Exit(1)


def _read(sources: Sequence[SourceFile]) -> dict[SourceFile, str]:
    faults = Faults()
    texts: dict[SourceFile, str] = {}
    for source in sources:
        with faults.collect():
            texts[source] = read_source(source.file, source.shown).text
    faults.raise_if_any()
    return texts


def _compile(
    sources: Sequence[SourceFile], texts: dict[SourceFile, str]
) -> list[Generated]:
    """Compile sources; if any is wrong, raise with the faults of all."""
    if not sources:
        return []
    faults = Faults()
    generated: list[Generated] = []
    for source in progress(sources, "Compiling"):
        with faults.collect():
            generated.append(_compile_one(source, texts[source]))
    faults.raise_if_any()
    return generated


def _compile_one(source: SourceFile, text: str) -> Generated:
    from kerngen.compiler import compile_text

    try:
        files = compile_text(text, source.name).files
    except CompileError:
        # Headers bear the stable name; its user is shown the way to the file from here.
        compile_text(text, source.shown)
        raise
    return Generated(
        source.name,
        digest(text.encode()),
        {(source.folder / path).as_posix(): data for path, data in files.items()},
    )


def _report(summary: Summary, out: Path) -> None:
    parts = [f"{count(len(summary.written), 'file')} written"]
    parts += [f"{summary.unchanged} unchanged"]
    parts += [f"{len(summary.removed)} removed"] if summary.removed else []
    click.echo(f"{_shown(out)}: {', '.join(parts)}.")
    for path in summary.left:
        click.echo(
            f"warning: '{path}' is no longer generated, but was changed by hand: left.",
            err=True,
        )


def _print_difference(difference: Difference) -> None:
    console = console_for(sys.stdout)
    console.print(f"{difference.kind}: {difference.path}", style="bold")
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in difference.diff.splitlines():
        console.print(line, style=styles.get(line[:1]))


def _shown(out: Path) -> str:
    here = Path.cwd()
    return str(out.relative_to(here) if out.is_relative_to(here) else out)
