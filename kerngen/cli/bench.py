"""`kerngen bench`: time kernels beside the adapter's ceilings and other libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.kernels import find_kernel, kernels_of, split_kernel
from kerngen.cli.arguments.options import Sizes
from kerngen.cli.arguments.paths import TARGET
from kerngen.cli.console import escape, progress, report_console, reporting
from kerngen.cli.project import find_sources, select, select_file
from kerngen.cli.settings import find_project
from kerngen.parts import BENCH, needing

if TYPE_CHECKING:
    from kerngen.bench.case import BenchCase
    from kerngen.bench.record import RunData
    from kerngen.bench.session import Session
    from kerngen.runtime import Context
    from kerngen.runtime.backend import Kind

Checks: TypeAlias = Literal["on", "off", "both"]


def _picture(
    _context: click.Context, _option: click.Parameter, file: Path | None
) -> Path | None:
    """Return the file of the plot; refuse a format that matplotlib can't write."""
    if file is None:
        return None
    with needing("--plot", BENCH):
        from kerngen.bench.plot import FORMATS

    if file.suffix[1:].lower() not in FORMATS:
        raise click.UsageError(
            f"--plot: '{file}' should end in one of .{', .'.join(FORMATS)}."
        )
    return file


@click.command(
    epilog=options.examples(
        "kerngen bench softmax",
        "kerngen bench kernels/layers.kern:dense --sizes m=512,k=1024,n=1024",
        "kerngen bench --quick --peers none --out run.json",
    )
)
@click.argument("kernels", nargs=-1)
@options.sizes
@click.option(
    "--checks",
    type=click.Choice(["on", "off", "both"]),
    default="both",
    show_default=True,
    help="Shaders with wgpu's runtime checks, without them, or a column each.",
)
@click.option(
    "--peers",
    metavar="NAMES",
    help="torch, tinygrad, numpy, joined by commas, or none. By default PyTorch; "
    "on a software adapter NumPy, too.",
)
@click.option(
    "--quick", is_flag=True, help="One size of each kernel, and fewer samples."
)
@options.budget(600, "Cases that are not measured by then are left out, and listed.")
@options.as_json("all results as JSON")
@click.option(
    "--out",
    type=TARGET,
    metavar="FILE.json",
    help="Save the results to this file, after every case.",
)
@click.option(
    "--plot",
    type=TARGET,
    metavar="FILE.png",
    callback=_picture,
    help="Draw the roofline.",
)
def bench(
    kernels: tuple[str, ...],
    sizes: tuple[Sizes, ...],
    checks: Checks,
    peers: str | None,
    quick: bool,
    budget: float,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Time KERNELS beside the adapter's ceilings and other libraries.

    KERNELS are yours, by name, FILE.kern or FILE.kern:kernel, or standard ones; without
    any, it is a suite of the standard ones.  Each sample is a series of launches between
    two timestamps of the device, on inputs that rotate so that no cache holds them; the
    result is the median of 20 samples.
    """
    names = _peer_names(peers)
    request = _Request(kernels, sizes, checks, quick, budget, names, out, as_json)
    with ExitStack() as stack, reporting(sys.stderr):
        found, finished = _run(stack, request)
        if plot is not None:
            from kerngen.bench.plot import draw_roofline

            draw_roofline(found, plot)
    if not finished:
        raise click.exceptions.Exit(130)
    if not any(result["timings"] for result in found["results"]):
        raise click.ClickException("Nothing was timed.")


@final
@dataclass(frozen=True, slots=True)
class _Request:
    """The options of a run; without `peers`, the usual ones take part."""

    kernels: tuple[str, ...]
    sizes: tuple[Sizes, ...]
    checks: Checks
    quick: bool
    budget: float
    peers: tuple[str, ...] | None
    file: Path | None
    as_json: bool


def _run(stack: ExitStack, request: _Request) -> tuple[RunData, bool]:
    """Run and print; return the results, and whether the run was finished.

    Contexts and modules that cases need are closed with the stack.
    """
    from kerngen.bench.run import Budget
    from kerngen.bench.session import begin

    contexts = _open(stack, request.checks)
    kind = next(iter(contexts.values())).kind
    cases = [*_cases(stack, request, kind)]
    budget = Budget(request.budget)
    session = begin(contexts, request.peers, budget, quick=request.quick)
    found = session.found
    if not request.as_json:
        _print_heading(found, small=kind != "gpu" and not request.sizes)
    finished = _measure(session, cases, request.file)
    if request.as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        _print_table(found)
    if not finished:
        done = f"{len(found['results'])} of {len(cases)} cases timed"
        click.echo(f"interrupted: {done}", err=True)
    return found, finished


def _print_heading(found: RunData, *, small: bool) -> None:
    from kerngen.bench.words import heading

    console = report_console()
    for label, text in heading(found):
        console.print(f"[bold]{label:9}[/] {escape(text)}")
    if small:
        console.print(f"[bold]{'sizes':9}[/] small, because this adapter is not a GPU")


def _print_table(found: RunData) -> None:
    from kerngen.bench.table import notes_of, table_of, walls_of

    console = report_console()
    console.print(table_of(found))
    walls = walls_of(found)
    if walls is not None:
        console.print("\n[bold]A launch on the device, in a loop, and with a read:[/]")
        console.print(walls)
    for note in notes_of(found):
        console.print(f"[yellow]not timed:[/] {escape(note)}")


def _measure(session: Session, cases: list[BenchCase], file: Path | None) -> bool:
    """Time the cases, and write the results after each; return False if interrupted."""
    from kerngen.bench.record import keep

    try:
        for _ in progress(session.results(cases), len(cases), "Timing"):
            keep(session.found, file)
    except KeyboardInterrupt:
        # Ctrl-C may have interrupted the last write of the file.
        keep(session.found, file)
        return False
    return True


def _open(stack: ExitStack, checks: Checks) -> dict[str, Context]:
    """Open a context for each way to make shaders; the first one is without checks."""
    from kerngen.bench.session import open_contexts
    from kerngen.runtime import Error

    try:
        contexts, missing = open_contexts(checks)
    except Error as error:
        raise click.ClickException(str(error)) from None
    for ctx in contexts.values():
        stack.enter_context(ctx)
    if missing:
        click.echo(f"warning: {missing}", err=True)
    return contexts


def _cases(stack: ExitStack, request: _Request, kind: Kind) -> Iterator[BenchCase]:
    from kerngen.runtime import ShapeError

    if not request.kernels:
        yield from _suite(request, kind)
    for name in request.kernels:
        try:
            if mine := _mine(name):
                yield from _own(stack, *mine, request.sizes, kind)
            else:
                yield from _standard(name, request, kind)
        except ShapeError as error:
            raise click.ClickException(str(error)) from None
        except KeyError as error:
            raise click.UsageError(f"--sizes lacks {error} for '{name}'.") from None


def _suite(request: _Request, kind: Kind) -> Iterator[BenchCase]:
    with needing("'kerngen bench' without a KERNEL", BENCH):
        from kerngen.bench.choose import suite

    if request.sizes:
        raise click.UsageError("--sizes needs a KERNEL that has these dims.")
    yield from suite(kind, quick=request.quick)


def _standard(name: str, request: _Request, kind: Kind) -> Iterator[BenchCase]:
    """Yield the cases of a standard kernel, which may not be installed."""
    with needing("'kerngen bench' of a standard kernel", BENCH):
        from kerngen.bench.choose import UnknownKernelError, named

    try:
        cases = named(name, request.sizes, kind)
        one = request.quick and not request.sizes
        yield from islice(cases, 1 if one else None)
    except UnknownKernelError as error:
        raise click.ClickException(str(error)) from None


def _mine(wanted: str) -> tuple[Path, str] | None:
    """Return the file and kernel of a user's kernel; None for a standard kernel's name."""
    from kerngen.bench.own import standard_folders

    file, kernel = split_kernel(wanted)
    if file:
        return file, kernel
    project = find_project()
    source = project.source
    if source is None or not source.exists() or not find_sources(source):
        return None
    if project.out in standard_folders():
        return None  # the project is that of the standard kernels
    selection = select(None, project)
    if not any(each.is_called(wanted) for each in kernels_of(selection)):
        return None
    found = find_kernel(selection, wanted)
    return found.file.file, found.name


def _own(
    stack: ExitStack, file: Path, name: str, sizes: tuple[Sizes, ...], kind: Kind
) -> Iterator[BenchCase]:
    """Yield the cases of a file's kernels, or only of the kernel `name`."""
    from kerngen.bench.own import own_cases
    from kerngen.compiler import Compiler
    from kerngen.jit.memory import installed

    selection, source = select_file(file)
    kernel = find_kernel(selection, name).name if name else ""
    compiler = Compiler(selection.library(), formatted=False)
    compiled = compiler.compile_with_used(source.name)
    modules = stack.enter_context(installed(compiled))
    own = compiled[-1]
    if not own.programs:
        raise click.ClickException(f"There are no kernels in '{source.shown}'.")
    yield from own_cases(own, modules[source.name], kernel, sizes, kind)


def _peer_names(given: str | None) -> tuple[str, ...] | None:
    from kerngen.bench.peers import PEERS

    if given is None:
        return None
    names = tuple(name for name in given.split(",") if name not in {"", "none"})
    for name in names:
        if name not in PEERS:
            raise click.UsageError(
                f"--peers: there is no '{name}'; there are {', '.join(PEERS)}."
            )
    return names
