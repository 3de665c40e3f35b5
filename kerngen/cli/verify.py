"""`kerngen verify`: a user's own kernels on the user's own adapter, held to their meaning."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerngen.cli.console import no_adapter, report_console, reporting, watched
from kerngen.cli.project import Selection, find_project, select, shown_path
from kerngen.cli.seconds import number_of_seconds
from kerngen.source.similar import suggesting

if TYPE_CHECKING:
    from kerngen.verify.campaign import Effort, Result
    from kerngen.verify.guarded import Guarded
    from kerngen.verify.meaning import Subject


@click.command()
@click.argument("src", required=False, type=click.Path(path_type=Path))
@click.option(
    "--kernel", metavar="NAME", default="", help="Only the kernels so called."
)
@click.option(
    "--schedule",
    metavar="TEXT",
    default="",
    help="Only what has this in its name, as 'gemm', 'total reduce' or 'edge'.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Calls of each way to run a kernel.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Another one makes other calls up.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    callback=number_of_seconds,
    metavar="SECONDS",
    help="For the calls of all kernels together; what is not run is said.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def verify(
    src: Path | None,
    kernel: str,
    schedule: str,
    examples: int,
    seed: int,
    budget: float | None,
    as_json: bool,
) -> None:
    """Run the kernels of SRC, a .kern file or a folder of them, and check what they give.

    Calls are made up: lengths around the edges of each schedule, numbers of all sizes,
    tensors that share memory.  Each variant of each schedule of a build is run on the
    adapter at hand, amid guard zones, and the NumPy reference as well.  Results are held
    to the equations, computed in float64 beside a bound on what f32 may be off.
    """
    from kerngen.verify.campaign import Effort, Verdict

    selection = select(src, find_project())
    with reporting(sys.stderr), _subjects(selection, kernel) as chosen, _open() as held:
        adapter = held.ctx.adapter_name
        end = float("inf") if budget is None else time.monotonic() + budget
        effort = Effort(examples, seed, end)
        results = [*_results(held, effort, chosen, schedule)]
    if not results:
        raise click.ClickException(f"No schedule has '{schedule}' in its name.")
    _print(results, seed, adapter, as_json=as_json)
    if any(result.verdict is Verdict.WRONG for result in results):
        raise click.exceptions.Exit(1)


@contextmanager
def _subjects(selection: Selection, only: str) -> Generator[list[tuple[str, Subject]]]:
    """Yield the kernels that are asked for, each with its file as it is shown."""
    from kerngen.verify.subjects import subjects

    names = [file.name for file in selection.files]
    shown = {file.name: file.shown for file in selection.files}
    with subjects(selection.library(), names) as found:
        chosen = [
            (shown[name], subject)
            for name, several in found.items()
            for subject in several
            if only in {"", subject.kernel.name}
        ]
        if not chosen:
            known = [s.kernel.name for several in found.values() for s in several]
            raise click.ClickException(_none_chosen(selection, only, known))
        yield chosen


def _none_chosen(selection: Selection, only: str, known: list[str]) -> str:
    if not known:
        return f"There are no kernels in '{shown_path(selection.chosen)}'."
    return suggesting(f"There is no kernel '{only}'.", only, known)


@contextmanager
def _open() -> Generator[Guarded]:
    import kerngen.runtime as gpu
    from kerngen.verify.guarded import guarded
    from kerngen.verify.notes import notes_elsewhere

    try:
        with gpu.open() as ctx:
            kind = ctx.kind
        if kind == "reference":
            raise no_adapter("verify kernels on")
        with notes_elsewhere(), guarded() as held:
            yield held
    except gpu.Error as error:
        raise click.ClickException(str(error)) from None


def _results(
    held: Guarded, effort: Effort, chosen: list[tuple[str, Subject]], schedule: str
) -> Iterator[Result]:
    """Yield what is found, with progress if a person watches."""
    from kerngen.verify.campaign import Campaign
    from kerngen.verify.ways import ways

    total = sum(1 + len(ways(subject.runtime)) for _, subject in chosen)
    campaign = Campaign(held, effort, total)
    found = (
        result
        for file, subject in chosen
        for result in campaign.results(file, subject, schedule)
    )
    yield from watched(found, total, "Verifying")


def _print(results: list[Result], seed: int, adapter: str, *, as_json: bool) -> None:
    from kerngen.verify.report import (
        data_of,
        print_counterexample,
        summary,
        table_of,
    )

    if as_json:
        click.echo(json.dumps(data_of(results, seed, adapter), indent=2))
        return
    console = report_console()
    console.print(table_of(results))
    for result in results:
        if result.counterexample is not None:
            print_counterexample(console, result)
    click.echo(f"\n{adapter}: {summary(results, seed)}")
