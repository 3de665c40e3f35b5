"""Fuzz the compiler: `python -m tests.fuzz [--inputs N] [--jobs N] [--guided]`.

What is found is written to the folder, an input and its report for each fault; a second
run with the same folder goes on where the first one ended.
"""

from __future__ import annotations

import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--inputs", default=1_000_000, show_default=True, help="How many.")
@click.option("--folder", default=Path("build/fuzz"), type=click.Path(path_type=Path))
@click.option("--seed", default=0, show_default=True)
@click.option("--jobs", default=1, help="Processes, each with the next seed.")
@click.option("--guided", is_flag=True, help="Let atheris choose, by what code runs.")
@click.option("--judged/--unjudged", default=True, help="Ask naga and Tint of shaders.")
def main(
    inputs: int, folder: Path, seed: int, jobs: int, guided: bool, judged: bool
) -> None:
    """Fuzz the compiler; exit 1 if an input does harm."""
    if guided:
        _instrument()
    from .campaign import judging, run_all

    if guided:
        from .guided import fuzz

        with judging(judged) as oracle:
            fuzz(folder, seed, inputs, oracle)
    found = Counter[str]()
    for tally in run_all(folder, judged, range(seed, seed + jobs), inputs):
        click.echo(f"seed {tally.seed}: {tally}")
        found.update(tally.found)
    for key, times in found.items():
        click.echo(f"{times:6} {key}")
    sys.exit(bool(found))


def _instrument() -> None:
    """Have atheris see which branches of the compiler run: before it is imported."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["kerngen"]):
        import_module("tests.fuzz.oracle")


if __name__ == "__main__":
    main()
