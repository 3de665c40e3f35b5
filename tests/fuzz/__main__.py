"""Fuzz the compiler: `python -m tests.fuzz [--inputs N] [--folder DIR] [--guided]`.

What is found is written to the folder, an input and its report for each fault; a second
run with the same folder goes on where the first one ended.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--inputs", default=1_000_000, show_default=True, help="How many.")
@click.option("--folder", default=Path("build/fuzz"), type=click.Path(path_type=Path))
@click.option("--seed", default=0, show_default=True)
@click.option("--guided", is_flag=True, help="Let atheris choose, by what code runs.")
@click.option("--judged/--unjudged", default=True, help="Ask naga and Tint of shaders.")
def main(inputs: int, folder: Path, seed: int, guided: bool, judged: bool) -> None:
    """Fuzz the compiler; exit 1 if an input does harm."""
    if guided:
        _instrument()
    from tests.programs.judges import both

    from .campaign import run
    from .oracle import Oracle

    with ExitStack() as stack:
        oracle = Oracle(stack.enter_context(both())) if judged else Oracle()
        if guided:
            from .guided import fuzz

            fuzz(folder, seed, inputs, oracle)
        tally = run(folder, seed, inputs, oracle)
    click.echo(tally)
    for key, times in tally.found.items():
        click.echo(f"{times:6} {key}")
    sys.exit(bool(tally.found))


def _instrument() -> None:
    """Have atheris see which branches of the compiler run: before it is imported."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["kerngen"]):
        import_module("tests.fuzz.oracle")


if __name__ == "__main__":
    main()
