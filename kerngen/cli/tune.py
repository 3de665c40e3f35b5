"""`kerngen tune`: find the schedules of a kernel that are fastest on this adapter."""

from __future__ import annotations

import posixpath
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.kernels import find_stage, split_kernel
from kerngen.cli.arguments.options import Sizes
from kerngen.cli.arguments.paths import TARGET
from kerngen.cli.console import (
    console_for,
    escape,
    is_watched,
    no_adapter,
    report_console,
    reporting,
)
from kerngen.cli.project import Selection, select
from kerngen.cli.settings import find_project
from kerngen.cli.tuned import Present, read_present
from kerngen.source.cells import clean
from kerngen.source.words import counted

if TYPE_CHECKING:
    from kerngen.compiler import Compiler
    from kerngen.runtime import Context
    from kerngen.tune.search import Search
    from kerngen.tune.session import Found
    from kerngen.tune.trial import TunedKernel
    from kerngen.tune.write import Written

_PRINTED: Final = "printed by kerngen tune.kern"
"""The file name of the schedules in diagnostics, if they are printed and not written."""


@click.command(
    epilog=options.examples(
        "kerngen tune dense --sizes m=1,k=4096,n=4096 --out kernels/tuned.kern",
        "kerngen tune kernels/layers.kern:dense --budget 300",
    )
)
@click.argument("kernel")
@options.sizes
@click.option(
    "--checks",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Time shaders with wgpu's runtime checks, or without them.",
)
@options.budget(120, "For all stages and sizes together.")
@click.option(
    "--out",
    type=TARGET,
    metavar="FILE.kern",
    help="Where to write the schedules; without it, they are printed.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tune on N adapters of the same model side by side, each at some of the sizes.",
)
def tune(
    kernel: str,
    sizes: tuple[Sizes, ...],
    checks: Literal["on", "off"],
    budget: float,
    out: Path | None,
    jobs: int | None,
) -> None:
    """Find fast schedules of KERNEL by trying them on your adapter.

    KERNEL is a kernel of the project's sources, FILE.kern or FILE.kern:kernel; with
    .stage behind it, only that stage is tuned.  Every candidate is compiled, compared
    with the NumPy reference, and timed.  The winners are schedules with guards around
    the sizes, in a file that uses the kernel's: commit it, and 'kerngen build' uses it.
    """
    with reporting(sys.stderr):
        target = _find(kernel, out)
        unchecked = checks == "off"
        if jobs is None:
            found = _tuned(target, out, sizes, budget, unchecked)
        else:
            found = _in_jobs(kernel, out, sizes, budget, unchecked, jobs)
        written = _written(target, found)
        _report(found["results"])
        _write(target, written, out)


def _one(
    kernel: str,
    out: Path | None,
    sizes: Sequence[Sizes],
    budget: float,
    unchecked: bool,
    adapter: int | None,
) -> dict[str, Any]:
    """Tune at some sizes on one adapter, in a process of its own."""
    return _tuned(_find(kernel, out), out, sizes, budget, unchecked, adapter)


def _tuned(
    target: _Target,
    out: Path | None,
    sizes: Sequence[Sizes],
    budget: float,
    unchecked: bool,
    adapter: int | None = None,
) -> dict[str, Any]:
    """Return the winners for a target as data."""
    from kerngen.tune.farm import data_of

    with _open(unchecked=unchecked, adapter=adapter) as ctx:
        _refuse_another(ctx, target, out)
        found = _tune(ctx, target, sizes, budget)
        name = target.subject.kernel.name
        return data_of(ctx, name, found, whole=target.whole)


def _in_jobs(
    kernel: str,
    out: Path | None,
    sizes: Sequence[Sizes],
    budget: float,
    unchecked: bool,
    jobs: int,
) -> dict[str, Any]:
    """Tune in processes side by side, each on an adapter of its own."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    from kerngen.cli.jobs.adapters import numbers
    from kerngen.tune.farm import merged

    usable = numbers()
    if jobs > len(usable):
        raise click.UsageError(
            f"--jobs {jobs}: there is {counted(len(usable), 'adapter')} of this model, "
            "and two processes on one would disturb each other's timings."
        )
    count = max(1, min(jobs, len(sizes)))
    try:
        # Spawned: a device can't be used after a fork.
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            tasks = [
                pool.submit(
                    _one, kernel, out, sizes[n::count], budget, unchecked, usable[n]
                )
                for n in range(count)
            ]
            return merged([task.result() for task in tasks])
    except BrokenProcessPool:
        raise click.ClickException(
            "A process ended in the middle: the adapter's driver may have crashed."
        ) from None


def _refuse_another(ctx: Context, target: _Target, out: Path | None) -> None:
    """Raise if the file has timings of another adapter: they can't be compared."""
    from kerngen.bench.record import adapter_of
    from kerngen.tune.merge import adapter_of_file

    before, now = adapter_of_file(target.present.text), adapter_of(ctx)["device"]
    if before and before != now and not before.startswith(f"{now}, "):
        raise click.ClickException(
            f"'{out}' has the times of another adapter, {before}; this is {now}. Write "
            "to another file with --out: the times of both can't be compared."
        )


def _write(target: _Target, written: Written, out: Path | None) -> None:
    """Write the schedules, or print them if there is no file, or they don't compile."""
    from kerngen.source.diagnostic import CompileError

    try:
        compiler = _check(target, written.text)
    except CompileError:
        click.echo(f"\n{written.text}", nl=False)
        raise
    if out is None:
        click.echo(f"\n{written.text}", nl=False)
        return
    try:
        target.present.replace(out, written.text)
    except OSError:
        click.echo(f"\n{written.text}", nl=False)
        raise
    if target.present.gone:
        names = ", ".join(f"'{name}'" for name in target.present.gone)
        click.echo(
            f"{clean(str(out))}: schedules of kernels that are gone were dropped: {names}."
        )
    kept = (
        f"; {counted(written.kept, 'result')} of earlier runs kept"
        if written.kept
        else ""
    )
    click.echo(f"{clean(str(out))}: written{kept}; 'kerngen build' uses it.")
    _warn_of_others(compiler, target)


def _check(target: _Target, text: str) -> Compiler:
    """Raise the errors of a build with this text of the file, and of all it schedules."""
    from kerngen.compiler import Compiler

    selection = target.selection.having(target.written, text.encode())
    library = selection.library()
    compiler = Compiler(library, formatted=False)
    used = (each.name for each in library.uses(target.written))
    for name in dict.fromkeys((target.subject.name, *used, target.written)):
        compiler.check(name)
    return compiler


def _check_kept(target: _Target, shapes: Sequence[Sizes]) -> None:
    """Raise the errors of the schedules that stay in the file, before the search begins."""
    from kerngen.tune.merge import others
    from kerngen.tune.write import subject

    if not target.present.text:
        return
    kernel, whole = target.subject.kernel.name, target.whole
    found = {
        subject(kernel, stage, sizes, whole=whole)
        for stage in target.stages
        for sizes in shapes
    }
    _check(target, others(target.present.text, found))


def _warn_of_others(compiler: Compiler, target: _Target) -> None:
    """Warn where a kernel is scheduled by several files, with the one that counts."""
    name, kernel = target.subject.name, target.subject.kernel.name
    module = compiler.module(name)
    schedules = next(k for k in module.kernels if k.name == kernel).schedules
    paths = dict.fromkeys(each.span.source.path for each in schedules)
    if len(paths) > 1:
        click.echo(
            f"warning: '{kernel}' has schedules in {', '.join(paths)}: where several "
            "hold, that of the first file is used.",
            err=True,
        )


@final
@dataclass(frozen=True, slots=True)
class _Target:
    """The kernel to tune, its sources, and the name of the file to be `written`.

    `used` is the path of the kernel's file from there. `whole` is whether the kernel has
    one stage.
    """

    subject: TunedKernel
    stages: tuple[str, ...]
    whole: bool
    selection: Selection
    written: str
    used: str
    present: Present


def _find(wanted: str, out: Path | None) -> _Target:
    from kerngen.compiler import Compiler
    from kerngen.tune.session import tunable_stages
    from kerngen.tune.trial import TunedKernel

    file, rest = split_kernel(wanted)
    project = find_project()
    if not file and project.source is None:
        raise click.UsageError(
            "Give FILE.kern:kernel: no pyproject.toml here sets 'source' under "
            "[tool.kerngen]."
        )
    everything = select(file, project)
    present = read_present(out, everything)
    mine = _stable_name(out, everything)
    # The file that will be overwritten is left out: its schedules would be tried first, and
    # it may not even compile.
    selection = everything.without(mine)
    library = selection.library()
    compiler = Compiler(library, formatted=False)
    chosen, stage = find_stage(selection, rest)
    name, kernel = chosen.file.name, chosen.name
    module = compiler.module(name)
    found = next(each for each in module.kernels if each.name == kernel)
    others = compiler.compile_with_used(name)[:-1]
    subject = TunedKernel(compiler, name, found, others)
    stages = tunable_stages(subject)
    if stage and stage not in stages:
        raise click.ClickException(
            f"'{kernel}' has no stage '{stage}' to tune: it has {', '.join(stages)}."
        )
    written = mine or posixpath.join(posixpath.dirname(name), _PRINTED)
    used = posixpath.relpath(name, posixpath.dirname(written) or ".")
    tuned = (stage,) if stage else stages
    present = present.without_gone(selection, written, kernel, used)
    return _Target(subject, tuned, len(stages) == 1, selection, written, used, present)


def _stable_name(out: Path | None, selection: Selection) -> str:
    return out.resolve().relative_to(selection.origin).as_posix() if out else ""


@contextmanager
def _open(*, unchecked: bool, adapter: int | None) -> Generator[Context]:
    import kerngen.runtime as gpu

    try:
        ctx = gpu.open(unchecked=unchecked, adapter=adapter)
    except gpu.Error as error:
        raise click.ClickException(str(error)) from None
    with ctx:
        if ctx.kind == "reference":
            raise no_adapter("tune for")
        yield ctx


def _tune(
    ctx: Context, target: _Target, sizes: Sequence[Sizes], budget: float
) -> list[Found]:
    from kerngen.bench.arguments import own_sizes
    from kerngen.bench.own import default_sizes
    from kerngen.runtime import ShapeError
    from kerngen.tune.session import InterruptError, PresentError
    from kerngen.tune.session import tune as tune_all
    from kerngen.tune.trial import kernel_of_subject

    kernel = kernel_of_subject(target.subject)
    for name in dict.fromkeys(chain.from_iterable(sizes)):
        if name not in kernel.size_names:
            raise click.UsageError(
                f"--sizes has '{name}', but {kernel.name} has "
                f"{', '.join(kernel.size_names)}."
            )
    try:
        chosen = [*sizes] or [default_sizes(kernel, ctx.kind)]
        own = [own_sizes(kernel, each) for each in chosen]
        distinct = [each for n, each in enumerate(own) if each not in own[:n]]
        _check_kept(target, distinct)
        with _watching(budget) as watch:
            return tune_all(ctx, target.subject, target.stages, distinct, budget, watch)
    except KeyError as error:
        raise click.UsageError(f"--sizes lacks {error}.") from None
    except (PresentError, ShapeError) as error:
        raise click.ClickException(str(error)) from None
    except InterruptError as interrupted:
        from kerngen.tune.farm import row_of

        _report([row_of(each) for each in interrupted.found])
        click.echo("interrupted: the best so far; no schedules are written.", err=True)
        raise click.exceptions.Exit(130) from None


def _ignore(stage: str, sizes: Sizes, search: Search) -> None:
    """Ignore a trial, where stderr is no terminal."""
    del stage, sizes, search


@contextmanager
def _watching(budget: float) -> Generator[Callable[[str, Sizes, Search], None]]:
    """Show the best so far on a terminal, beside how much of the budget is spent."""
    if not is_watched():
        yield _ignore
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from kerngen.bench.words import duration

    columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    begin = time.monotonic()
    with Progress(
        *columns, console=console_for(sys.stderr), transient=True
    ) as progress:
        bar = progress.add_task("", total=budget)

        def watch(stage: str, sizes: Sizes, search: Search) -> None:
            best = search.best.text if search.best else "what there is"
            at = ", ".join(f"{name}={size}" for name, size in sizes.items())
            said = f"{stage} {at}: {len(search.found)} tried, best {duration(search.seconds)}: {best}"
            spent = min(time.monotonic() - begin, budget)
            progress.update(bar, completed=spent, description=escape(said))

        yield watch


def _written(target: _Target, found: Mapping[str, Any]) -> Written:
    from kerngen.tune.farm import lines_of
    from kerngen.tune.write import write_lines

    return write_lines(
        lines_of(dict(found)),
        kernel=target.subject.kernel.name,
        used=target.used,
        whole=target.whole,
        about=found["about"],
        present=target.present.text,
    )


def _report(rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.table import Table

    from kerngen.bench.words import duration

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stage", "sizes"):
        table.add_column(name)
    for name in ("before", "best", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("schedule")
    table.add_column("candidates")
    for row in rows:
        table.add_row(
            row["stage"],
            ", ".join(f"{name}={size}" for name, size in row["sizes"].items()),
            duration(row["before"]),
            duration(row["after"]),
            f"{row['before'] / row['after']:.2f}x",
            row["best"] or "as it was",
            ", ".join(f"{n} {verdict}" for verdict, n in row["verdicts"].items()),
        )
    console = report_console()
    console.print(table)
    for row in rows:
        for candidate, why in row["wrong"]:
            console.print(f"[red]wrong:[/] {escape(candidate)}: {escape(why)}")
