"""Compare trainings here and in PyTorch, and PyTorch with itself: a table, a picture.

    python -m tests.parity --picture parity.png

It ends with 1 if ours are further from PyTorch's than they may be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import kerngen.runtime as gpu
from tests.parity.noise import GATE, Study, study
from tests.parity.picture import save_picture
from tests.parity.record import EARLY, EARLY_LIMIT, LIMIT, Differences
from tests.parity.tasks import TASKS


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, save the picture, and say what is out of bounds."""
    parser = argparse.ArgumentParser(prog="tools/parity", description=__doc__)
    parser.add_argument("--picture", type=Path, help="where to save the picture, a PNG")
    given = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    studies: list[Study] = []
    with gpu.open() as ctx:
        for task in TASKS.values():
            with console.status(f"Training: {task.network}"):
                studies.append(study(ctx, task))
        console.print(tabulate(ctx.adapter_name, studies))
    if given.picture:
        save_picture(given.picture, studies)
        console.print(f"Saved {given.picture}.")
    return report(console, studies)


def tabulate(adapter: str, studies: Sequence[Study]) -> Table:
    """Return the largest differences of each pair of trainings."""
    table = Table(
        title=f"Largest relative differences, kerngen on {adapter}",
        caption=f"At most {EARLY_LIMIT:g} to step {EARLY}, then {LIMIT:g}.",
    )
    table.add_column("network, steps")
    table.add_column("difference")
    for header in (f"loss@{EARLY}", "loss@end", f"norm@{EARLY}", "norm@end"):
        table.add_column(header, justify="right")
    table.add_column("worst parameter")
    for each in studies:
        for number, (title, differences) in enumerate(each.differences.items()):
            name = f"{each.network}, {len(differences.losses)}" if not number else ""
            table.add_row(name, title, *_figures(differences))
        table.add_section()
    return table


def _figures(differences: Differences) -> list[str]:
    worst = max(differences.parameters, key=lambda name: differences.parameters[name])
    steps = [
        float(np.max(series[:end]))
        for series in (differences.losses, differences.norms)
        for end in (EARLY, None)
    ]
    last = differences.parameters[worst]
    return [*map(_figure, steps), f"{_figure(last)} {worst}" if last else "equal"]


def _figure(difference: float) -> str:
    return f"{difference:.1e}" if difference else "equal"


def report(console: Console, studies: Sequence[Study]) -> int:
    """Print what is further apart than it may be; return how the program ends."""
    faults = [
        f"{each.network}: {fault}"
        for each in studies
        for fault in each.differences[GATE].faults()
    ]
    for fault in faults:
        console.print(f"[red]Too far apart:[/] {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
