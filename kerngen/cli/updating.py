"""The update of an output folder, for `kerngen build` and `bind`: stale files alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.console import console_for, print_diff, say, say_waiting
from kerngen.output.files import Generated
from kerngen.output.freshness import Freshness, stamp_all
from kerngen.output.write import Difference, Summary, write
from kerngen.source.cells import clean
from kerngen.source.words import counted

S = TypeVar("S")


def update(
    out: Path,
    sources: Mapping[str, S],
    is_fresh: Callable[[Freshness, str], bool],
    generate: Callable[[list[S]], Iterable[Generated]],
    covers: Callable[[str], bool],
) -> None:
    """Generate and write the files of stale sources, and print a summary.

    Files of other sources stay; those of a source that no longer exists are removed if the
    command `covers` its name.

    Raises `OvertakenError` if another run has written to the folder meanwhile.
    """
    freshness = Freshness(out)
    fresh = {name for name in sources if is_fresh(freshness, name)}
    stale = [source for name, source in sources.items() if name not in fresh]
    generated = [*generate(stale)]
    summary = write(
        generated,
        out,
        keep=lambda name: name in fresh or not covers(name),
        seen=freshness.seen,
        waiting=say_waiting,
    )
    if generated:
        stamp_all(out, {one.source: one.entry for one in generated})
    _report_summary(summary, out)


def report_differences(
    differences: Sequence[Difference], out: Path, command: str
) -> None:
    """Print the files that a command would change; exit with 1 if there are any."""
    if not differences:
        say(f"{shown_path(out)} is up to date.")
        return
    for difference in differences:
        _print_difference(difference)
    click.echo(
        f"{shown_path(out)}: {counted(len(differences), 'file')} out of date. "
        f"'kerngen {command}' brings them up to date.",
        err=True,
    )
    raise click.exceptions.Exit(1)


def _report_summary(summary: Summary, out: Path) -> None:
    """Print the changes to the output folder."""
    parts = [f"{counted(len(summary.written), 'file')} written"]
    parts += [f"{summary.unchanged} unchanged"]
    parts += [f"{len(summary.removed)} removed"] if summary.removed else []
    say(f"{shown_path(out)}: {', '.join(parts)}.")
    for path in map(clean, summary.left):
        click.echo(
            f"warning: '{path}' is no longer generated, but was changed by hand, so it "
            "is kept.",
            err=True,
        )


def _print_difference(difference: Difference) -> None:
    title = f"{difference.kind}: {clean(difference.path)}"
    console_for(sys.stdout).print(title, style="bold")
    print_diff(difference.diff)
