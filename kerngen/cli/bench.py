"""`kerngen bench`: how fast kernels run here, beside ceilings and other libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, final

import click

from kerngen.cli.console import escape, report_console, reporting, watched
from kerngen.cli.project import find_project, select
from kerngen.cli.seconds import number_of_seconds
from kerngen.cli.sizes import SIZES, Sizes
from kerngen.cli.target import TARGET
from kerngen.syntax.library import SUFFIX

if TYPE_CHECKING:
    from kerngen.bench.case import Case
    from kerngen.bench.record import RunData
    from kerngen.bench.session import Session
    from kerngen.runtime import Context
    from kerngen.runtime.backend import Kind

Checks: TypeAlias = Literal["on", "off", "both"]


def _picture(
    _context: click.Context, _option: click.Parameter, file: Path | None
) -> Path | None:
    """Return where the picture goes; refuse what matplotlib can't draw, if it is there."""
    from importlib.util import find_spec

    if file is None:
        return None
    if find_spec("matplotlib") is None:
        raise click.UsageError(
            "--plot needs matplotlib: pip install 'kerngen[bench]' brings it."
        )
    from kerngen.bench.plot import FORMATS

    if file.suffix[1:].lower() not in FORMATS:
        raise click.UsageError(
            f"--plot: '{file}' should end in one of .{', .'.join(FORMATS)}."
        )
    return file


@click.command()
@click.argument("kernels", nargs=-1)
@click.option(
    "--sizes",
    "chosen",
    type=SIZES,
    multiple=True,
    help="Lengths by dim, as m=4096,k=4096,n=4096; repeat it for several.",
)
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
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    callback=number_of_seconds,
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="What is not measured by then is left out, and said.",
)
@click.option(
    "--json",
    "json_file",
    type=TARGET,
    metavar="FILE",
    help="Keep all that was found; written after every case.",
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
    chosen: tuple[Sizes, ...],
    checks: Checks,
    peers: str | None,
    quick: bool,
    budget: float,
    json_file: Path | None,
    plot: Path | None,
) -> None:
    """Time KERNELS: standard ones by name, or FILE.kern or FILE.kern:kernel of yours.

    Without any, it is a suite of the standard kernels.  Launches follow one another
    between two timestamps of the device, on inputs that are rotated so that they do not
    lie in a cache; what counts is the median of 20 samples.
    """
    names = _peer_names(peers)
    request = _Request(kernels, chosen, checks, quick, budget, names, json_file)
    with ExitStack() as stack, reporting(sys.stderr):
        found, finished = _run(stack, request)
        if plot is not None:
            from kerngen.bench.plot import draw_roofline

            draw_roofline(found, plot)
    if not finished:
        raise click.Abort


@final
@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked for; no `peers` means the usual ones."""

    kernels: tuple[str, ...]
    sizes: tuple[Sizes, ...]
    checks: Checks
    quick: bool
    budget: float
    peers: tuple[str, ...] | None
    file: Path | None


def _run(stack: ExitStack, request: _Request) -> tuple[RunData, bool]:
    """Run and print; return what was found, and whether nobody interrupted it.

    What cases need lives as long as the stack.
    """
    from kerngen.bench.run import Budget
    from kerngen.bench.session import begin
    from kerngen.bench.table import notes_of, table_of
    from kerngen.bench.words import heading

    contexts = _open(stack, request.checks)
    kind = next(iter(contexts.values())).kind
    cases = [*_cases(stack, request, kind)]
    budget = Budget(request.budget)
    session = begin(contexts, request.peers, budget, quick=request.quick)
    console = report_console()
    for label, text in heading(session.found):
        console.print(f"[bold]{label:9}[/] {escape(text)}")
    if kind != "gpu" and not request.sizes:
        console.print(f"[bold]{'sizes':9}[/] small ones: this adapter is no GPU")
    finished = _measure(session, cases, request.file)
    console.print(table_of(session.found))
    for note in notes_of(session.found):
        console.print(f"[yellow]not timed:[/] {escape(note)}")
    if not finished:
        done = len(session.found["results"])
        console.print(f"[yellow]interrupted:[/] {done} of {len(cases)} cases timed")
    return session.found, finished


def _measure(session: Session, cases: list[Case], file: Path | None) -> bool:
    """Time the cases, and keep what is found after each; false if interrupted."""
    from kerngen.bench.record import keep

    try:
        for _ in watched(session.results(cases), len(cases), "Timing"):
            keep(session.found, file)
    except KeyboardInterrupt:
        # Once more: it may have come in the middle of the file.
        keep(session.found, file)
        return False
    return True


def _open(stack: ExitStack, checks: Checks) -> dict[str, Context]:
    """Open a context for each way to make shaders; the first one is without checks."""
    from kerngen.bench.contexts import open_contexts
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


def _cases(stack: ExitStack, request: _Request, kind: Kind) -> Iterator[Case]:
    from kerngen.bench.choose import UnknownKernelError, named, suite
    from kerngen.runtime import ShapeError

    if not request.kernels:
        if request.sizes:
            raise click.UsageError("--sizes needs a KERNEL that has these dims.")
        yield from suite(kind, quick=request.quick)
    for name in request.kernels:
        try:
            if SUFFIX in name:
                yield from _own(stack, name, request.sizes, kind)
            else:
                cases = named(name, request.sizes, kind)
                one = request.quick and not request.sizes
                yield from islice(cases, 1 if one else None)
        except (UnknownKernelError, ShapeError) as error:
            raise click.ClickException(str(error)) from None
        except KeyError as error:
            raise click.UsageError(f"--sizes lacks {error} for '{name}'.") from None


def _own(
    stack: ExitStack, wanted: str, sizes: tuple[Sizes, ...], kind: Kind
) -> Iterator[Case]:
    """Yield the cases of `FILE.kern` or `FILE.kern:kernel`."""
    from kerngen.bench.own import own_cases
    from kerngen.bench.package import compile_closure, imported

    path, _, kernel = wanted.partition(f"{SUFFIX}:")
    file = path if path.endswith(SUFFIX) else f"{path}{SUFFIX}"
    if Path(file).is_dir():
        raise click.UsageError(f"'{file}' is a folder. Give one {SUFFIX} file.")
    selection = select(Path(file), find_project())
    (source,) = selection.files
    compiled = compile_closure(selection.library(), source.name)
    modules = stack.enter_context(imported(compiled))
    own = next(each.module for each in compiled if each.name == source.name)
    known = [program.staged.kernel.name for program in own.programs]
    if not known:
        raise click.ClickException(f"There are no kernels in '{file}'.")
    if kernel and kernel not in known:
        raise click.ClickException(
            f"There is no kernel '{kernel}' in '{file}': it has {', '.join(known)}."
        )
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
