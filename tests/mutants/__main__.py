"""Mutation tests: `python -m tests.mutants --folder verify --minutes 20 --jobs 2`."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeAlias

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.project.tree import ROOT

from .mutations import Mutant
from .sample import every_folder, sample
from .trial import BaselineError, Bench, Outcome, copy_tree

Counts: TypeAlias = Counter[Outcome]
Benches: TypeAlias = SimpleQueue[Bench]

_FOLDERS: Final = every_folder(ROOT)


@click.command()
@click.option("--seed", default=0, show_default=True, help="Which changes are made.")
@click.option("--minutes", default=10.0, show_default=True, help="After which to end.")
@click.option("--mutants", type=int, help="How many to make at most.")
@click.option("--folder", multiple=True, type=click.Choice(_FOLDERS), metavar="NAME")
@click.option("--jobs", default=1, show_default=True, help="Copies to work in.")
@click.option("--own", is_flag=True, help="Run only the tests of a change's folder.")
@click.option("--least", default=90.0, show_default=True, help="Percent to be caught.")
def main(
    seed: int,
    minutes: float,
    mutants: int | None,
    folder: tuple[str, ...],
    jobs: int,
    own: bool,
    least: float,
) -> None:
    """Change kerngen at random, a token at a time, and run the tests on each change.

    All is done in copies of the tree. Each change that no test notices is printed; a run
    whose output goes to a file lists the others, too. The exit status is 1 if less than a
    share of them is noticed.
    """
    chosen = sample(ROOT, seed, folder or _FOLDERS)[:mutants]
    counts: dict[str, Counts] = {}
    # Not as wide as a terminal: lines of a change are not cut.
    console = Console(soft_wrap=True, highlight=False, markup=False)
    shown = Progress(console=console, disable=not console.is_terminal, transient=True)
    start = time.monotonic()
    with (
        benches(jobs, wider=not own) as free,
        closing(_examined(chosen, free, jobs, start + 60 * minutes)) as examined,
        shown as progress,
    ):
        task = progress.add_task("", total=60 * minutes)
        for mutant, outcome in examined:
            name = Path(mutant.path).parts[1]
            counts.setdefault(name, Counter())[outcome] += 1
            if outcome is not Outcome.CAUGHT:
                console.print(f"{outcome.value}: {mutant.diff}\n")
            elif not console.is_terminal:
                console.print(f"{outcome.value}: {mutant.place}")
            done = f"{together(counts).total()} mutants"
            progress.update(task, description=done, completed=time.monotonic() - start)
    console.print(table_of(counts))
    sys.exit(caught(together(counts)) < least)


@contextmanager
def benches(jobs: int, *, wider: bool) -> Generator[Benches]:
    """Yield a queue of copies of the tree."""
    free = Benches()
    with ExitStack() as stack:
        for _ in range(jobs):
            tree = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            copy_tree(ROOT, tree)
            free.put(Bench(tree, wider))
        yield free


def _examined(
    mutants: Sequence[Mutant], free: Benches, jobs: int, deadline: float
) -> Generator[tuple[Mutant, Outcome]]:
    """Examine mutants side by side, in their order, until it is too late to begin."""

    def examine(mutant: Mutant) -> tuple[Mutant, Outcome] | None:
        if time.monotonic() > deadline or not mutant.is_program:
            return None
        bench = free.get()
        try:
            return mutant, bench.examine(mutant)
        except BaselineError as error:
            raise click.ClickException(str(error)) from error
        finally:
            free.put(bench)

    with ThreadPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(examine, mutants))


def together(counts: dict[str, Counts]) -> Counts:
    """Add up the outcomes of all folders."""
    return sum(counts.values(), Counts())


def caught(counts: Counts) -> float:
    """Return the percentage that is noticed; a test that never ends is noticed, too."""
    return 100 * (1 - counts[Outcome.SURVIVED] / max(counts.total(), 1))


def table_of(counts: dict[str, Counts]) -> Table:
    """Return one row for each folder, and one for all of them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("folder")
    for name in ("mutants", *(outcome.value for outcome in Outcome), "noticed"):
        table.add_column(name, justify="right")
    total = together(counts)
    for folder, row in (*sorted(counts.items()), ("together", total)):
        each = [str(row[outcome]) for outcome in Outcome]
        table.add_row(folder, str(row.total()), *each, f"{caught(row):.0f} %")
    return table


if __name__ == "__main__":
    main()
