"""`kerngen verify`: run kernels on this adapter, and compare them with their equations."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.kernels import split_kernel
from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.console import (
    console_for,
    is_watched,
    no_adapter,
    report_console,
    reporting,
)
from kerngen.cli.project import Selection, select
from kerngen.source.cells import clean
from kerngen.source.similar import suggesting

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from kerngen.verify.campaign import Campaign
    from kerngen.verify.guarded import Guarded
    from kerngen.verify.meaning.programs import Subject
    from kerngen.verify.report import Report
    from kerngen.verify.result import WayResult


@click.command(
    epilog=options.examples(
        "kerngen verify", "kerngen verify kernels/layers.kern:dense --examples 100"
    )
)
@options.src
@click.option("--kernel", metavar="NAME", default="", help="Only kernels of this name.")
@click.option(
    "--schedule",
    metavar="TEXT",
    default="",
    help="Only ways whose name contains this, such as 'gemm', 'total reduce' or 'edge'.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Calls for each way to run a kernel.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Another seed generates other calls.",
)
@options.budget(
    120, "For the calls of all kernels together; the report names what is not run."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run N processes, each with a seed of its own: the next ones from --seed on. "
    "Machines with several GPUs use all of them.",
)
@options.as_json("all results as JSON")
def verify(
    src: Path | None,
    kernel: str,
    schedule: str,
    examples: int,
    seed: int,
    budget: float,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run the kernels of SRC, and check their results.

    SRC is a .kern file, FILE.kern:kernel, or a folder of them.  Calls are generated:
    lengths around the limits of each schedule, numbers of all sizes, tensors that share
    memory.  Each variant of each schedule of a build runs on this machine's adapter,
    between guard zones, and so does the NumPy reference.  Results are compared with the
    equations, computed in float64 with a bound on the error of f32.
    """
    from kerngen.verify.campaign import Campaign
    from kerngen.verify.effort import Effort
    from kerngen.verify.report import Report

    file, only = asked(src, kernel)
    selection = select(file)
    if jobs is not None:
        from kerngen.cli.jobs.verify import verify_in_jobs
        from kerngen.verify.farm import VerifyOptions

        with reporting(sys.stderr):
            task = VerifyOptions(seed, only, schedule, examples, budget)
            verify_in_jobs(selection, task, jobs, as_json=as_json)
        return
    with (
        reporting(sys.stderr),
        _progress() as progress,
        _subjects(selection, only) as chosen,
        _open() as held,
    ):
        effort = Effort(examples, seed, time.monotonic() + budget)
        campaign = Campaign(held, effort, schedule, progress.show)
        results, planned, interrupted = _results(campaign, chosen, progress)
        sources = shown_path(selection.base) if selection.root is not None else ""
        adapter = held.ctx.adapter_name
        report = Report(adapter, seed, results, planned, sources, interrupted)
    _print(report, as_json=as_json)
    _exit(report)


def asked(src: Path | None, kernel: str) -> tuple[Path | None, str]:
    """Return the file or folder of SRC, and the name of the kernel, "" for all."""
    file, name = split_kernel(str(src)) if src else (None, "")
    if file and name and kernel not in {"", name}:
        raise click.UsageError(f"SRC asks for '{name}', --kernel for '{kernel}'.")
    return (file, name or kernel) if file else (src, kernel)


def _exit(report: Report) -> None:
    """Exit with the status of the report: 130 after Ctrl-C, 1 if a way is wrong."""
    from kerngen.verify.result import Verdict

    if report.interrupted:
        click.echo(report.interruption, err=True)
        raise click.exceptions.Exit(130)
    if any(result.verdict is Verdict.WRONG for result in report.results):
        raise click.exceptions.Exit(1)
    on_device = [result for result in report.results if result.on_device]
    if on_device and not any(result.tally.cases for result in on_device):
        whys = dict.fromkeys(result.why for result in on_device)
        raise click.ClickException(f"Nothing was run on the adapter: {'; '.join(whys)}")


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
    campaign: Campaign, chosen: list[tuple[str, Subject]], progress: _Progress
) -> tuple[list[WayResult], int, bool]:
    """Return the results, how many ways were planned, and whether Ctrl-C came.

    Ctrl-C ends it early: what was found so far is kept.
    """
    planned = len(campaign.planned(chosen))
    if not planned:
        raise click.ClickException(f"No schedule has '{campaign.only}' in its name.")
    progress.plan(planned)
    results: list[WayResult] = []
    try:
        results.extend(campaign.results(chosen))
    except KeyboardInterrupt:
        campaign.interrupted = True
    return results, planned, campaign.interrupted


class _Progress(Protocol):
    """Shows the progress of the command on stderr."""

    def plan(self, total: int) -> None:
        """Set the number of ways to run kernels."""
        ...

    def show(self, name: str) -> None:
        """Show which of them begins."""
        ...


@contextmanager
def _progress() -> Generator[_Progress]:
    """Show progress as a bar on a terminal, in lines elsewhere."""
    if not is_watched():
        yield _Lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console_for(sys.stderr), transient=True) as shown:
        yield _Bar(shown, shown.add_task(_COMPILING, total=None))


_COMPILING: Final = "Compiling the kernels"
_LINE_SECONDS: Final = 2.0
"""Seconds between two lines: a campaign may have hundreds of ways."""


@final
@dataclass
class _Lines:
    """Progress for logs: `Verifying 3 of 12: dense gemv_rows4`."""

    total: int = 0
    begun: int = 0
    next_line: float = 0.0

    def __post_init__(self) -> None:
        """Report the first step."""
        click.echo(f"{_COMPILING} ...", err=True)

    def plan(self, total: int) -> None:
        """Set the number of ways to run kernels."""
        self.total = total

    def show(self, name: str) -> None:
        """Print which of them begins, unless there was a line just now."""
        self.begun += 1
        now = time.monotonic()
        if now >= self.next_line:
            self.next_line = now + _LINE_SECONDS
            text = f"Verifying {self.begun} of {self.total}: {clean(name)}"
            click.echo(text, err=True)


@final
@dataclass(frozen=True)
class _Bar:
    """Progress for a person."""

    shown: Progress
    task: TaskID

    def plan(self, total: int) -> None:
        """Set the number of ways to run kernels."""
        self.shown.update(self.task, total=total, completed=-1)

    def show(self, name: str) -> None:
        """Show which of them begins."""
        self.shown.update(self.task, description=name, advance=1)


def _print(report: Report, *, as_json: bool) -> None:
    from kerngen.verify.report import (
        data_of,
        print_counterexample,
        print_hazards,
        summary,
        table_of,
    )

    if as_json:
        click.echo(json.dumps(data_of(report), indent=2))
        return
    console = report_console()
    console.print(table_of(report.results))
    for result in report.results:
        if result.counterexample is not None:
            print_counterexample(console, result, report.sources)
    print_hazards(console, report.results)
    click.echo(f"\n{report.adapter}: {summary(report)}")
