"""`kerngen tune`: find the schedules of a kernel that are fastest on this adapter."""

from __future__ import annotations

import os
import posixpath
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import click

from kerngen.cli.console import (
    console_for,
    escape,
    no_adapter,
    report_console,
    reporting,
)
from kerngen.cli.project import Selection, find_project, select
from kerngen.cli.seconds import number_of_seconds
from kerngen.cli.sizes import SIZES, Sizes
from kerngen.syntax.library import SUFFIX

if TYPE_CHECKING:
    from kerngen.compiler import Compiler
    from kerngen.runtime import Context
    from kerngen.tune.search import Search
    from kerngen.tune.session import Found
    from kerngen.tune.trial import Subject

_PRINTED: Final = "printed by kerngen tune.kern"
"""What the schedules are called while they are compiled, if no file is to have them."""


@click.command()
@click.argument("kernel")
@click.option(
    "--shapes",
    type=SIZES,
    multiple=True,
    help="Lengths by dim, as m=4096,k=4096,n=4096; repeat it for several.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    callback=number_of_seconds,
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="For all stages and shapes together.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.kern",
    help="Where to write the schedules; without it, they are printed.",
)
@click.option("--unchecked", is_flag=True, help="Time shaders without runtime checks.")
def tune(
    kernel: str,
    shapes: tuple[Sizes, ...],
    budget: float,
    out: Path | None,
    unchecked: bool,
) -> None:
    """Find fast schedules of KERNEL by trying them on the adapter at hand.

    KERNEL is a kernel of the project's sources, FILE.kern or FILE.kern:kernel; .stage
    behind a kernel is for that alone.  Every candidate is compiled, its results are held
    to the NumPy reference, and it is timed.  The winners are schedules with guards around
    the shapes, in a file that uses the kernel's: commit it, and 'kerngen build' takes it.
    """
    with reporting(sys.stderr):
        target = _find(kernel, out)
        with _open(unchecked=unchecked) as ctx:
            found = _tune(ctx, target, shapes, budget)
            text = _text(ctx, target, found, unchecked=unchecked)
        _report(found)
        _write(target, text, out)


def _write(target: _Target, text: str, out: Path | None) -> None:
    """Write or print the schedules; those that no build would take are printed."""
    from kerngen.compiler import Compiler
    from kerngen.source.diagnostic import CompileError

    library = target.selection.library_with(target.written, text)
    try:
        Compiler(library, formatted=False).programs(target.subject.name)
    except CompileError:
        click.echo(f"\n{text}", nl=False)
        raise
    if out is None:
        click.echo(f"\n{text}", nl=False)
        return
    out.write_text(text, encoding="utf-8")
    click.echo(f"{out}: written; 'kerngen build' takes it along.")


@final
@dataclass(frozen=True, slots=True)
class _Target:
    """What is tuned, in which sources, and the name of the file to be `written`.

    `used` is the path of the kernel's file from there.
    """

    subject: Subject
    stages: tuple[str, ...]
    whole: bool
    selection: Selection
    written: str
    used: str


def _find(wanted: str, out: Path | None) -> _Target:
    from kerngen.bench.package import compile_closure
    from kerngen.compiler import Compiler
    from kerngen.tune.session import tunable_stages
    from kerngen.tune.trial import Subject

    whole_file = f"{wanted}:" if wanted.endswith(SUFFIX) else wanted
    file, _, rest = whole_file.rpartition(f"{SUFFIX}:")
    project = find_project()
    if not file and project.source is None:
        raise click.UsageError(
            "Give FILE.kern:kernel: no pyproject.toml here sets 'source' under "
            "[tool.kerngen]."
        )
    everything = select(Path(f"{file}{SUFFIX}") if file else None, project)
    _check_out(out, everything)
    mine = _stable_name(out, everything)
    # What is to be overwritten counts for nothing, even if it can't be compiled.
    selection = everything.without(mine)
    library = selection.library()
    compiler = Compiler(library, formatted=False)
    name, kernel, stage = _resolve(compiler, selection, rest)
    module = compiler.module(name)
    found = next(each for each in module.kernels if each.name == kernel)
    others = compile_closure(library, name)[1:]
    subject = Subject(compiler, name, found, others)
    stages = tunable_stages(subject)
    if stage and stage not in stages:
        raise click.ClickException(
            f"'{kernel}' has no stage '{stage}' to tune: it has {', '.join(stages)}."
        )
    written = mine or posixpath.join(posixpath.dirname(name), _PRINTED)
    used = posixpath.relpath(name, posixpath.dirname(written) or ".")
    chosen = (stage,) if stage else stages
    return _Target(subject, chosen, len(stages) == 1, selection, written, used)


def _resolve(
    compiler: Compiler, selection: Selection, wanted: str
) -> tuple[str, str, str]:
    """Return the file, the kernel and the stage that are meant; no stage is all."""
    known = [
        (file.name, Path(file.name).stem, kernel.name)
        for file in selection.files
        for kernel in compiler.module(file.name).kernels
    ]
    if not wanted and len(known) == 1:
        return known[0][0], known[0][2], ""
    if not wanted:
        shown = ", ".join(each for *_, each in known) or "none"
        raise click.ClickException(f"Say which kernel, as FILE.kern:kernel: {shown}.")
    kernel, _, stage = wanted.rpartition(".")
    for name, of_stage in ((wanted, ""), (kernel, stage)):
        matches = [
            (file, each)
            for file, stem, each in known
            if name in {each, f"{stem}.{each}"}
        ]
        if len(matches) == 1:
            return (*matches[0], of_stage)
        if matches:
            shown = ", ".join(f"{Path(file).stem}.{each}" for file, each in matches)
            raise click.ClickException(f"There are several kernels '{name}': {shown}.")
    raise click.ClickException(f"There is no kernel '{wanted}'.")


def _check_out(out: Path | None, selection: Selection) -> None:
    """Refuse to overwrite a file that someone wrote, or one that no `use` leads from."""
    from kerngen.tune.write import HEADING

    if out is None:
        return
    if out.suffix != SUFFIX:
        raise click.UsageError(f"--out: '{out}' is not a {SUFFIX} file.")
    if not out.resolve().is_relative_to(selection.base):
        raise click.UsageError(
            f"--out: '{out}' is not in '{selection.base}', so no build of it counts "
            f"its schedules."
        )
    if not out.resolve().parent.is_dir():
        raise click.UsageError(f"--out: there is no folder '{out.parent}'.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise click.UsageError(f"--out: '{out}' can't be written.")
    if out.exists() and not out.read_bytes().startswith(HEADING.encode()):
        raise click.ClickException(f"'{out}' was not written by 'kerngen tune': left.")


def _stable_name(out: Path | None, selection: Selection) -> str:
    return out.resolve().relative_to(selection.origin).as_posix() if out else ""


@contextmanager
def _open(*, unchecked: bool) -> Generator[Context]:
    import kerngen.runtime as gpu

    try:
        ctx = gpu.open(unchecked=unchecked)
    except gpu.Error as error:
        raise click.ClickException(str(error)) from None
    with ctx:
        if ctx.kind == "reference":
            raise no_adapter("tune for")
        yield ctx


def _tune(
    ctx: Context, target: _Target, shapes: Sequence[Sizes], budget: float
) -> list[Found]:
    from kerngen.bench.arguments import own_sizes
    from kerngen.bench.own import default_sizes
    from kerngen.runtime import ShapeError
    from kerngen.tune.session import InterruptError, PresentError
    from kerngen.tune.session import tune as tune_all
    from kerngen.tune.trial import kernel_of_subject

    kernel = kernel_of_subject(target.subject)
    try:
        chosen = [*shapes] or [default_sizes(kernel, ctx.kind)]
        own = [own_sizes(kernel, each) for each in chosen]
        distinct = [each for n, each in enumerate(own) if each not in own[:n]]
        with _watching(budget) as watch:
            return tune_all(ctx, target.subject, target.stages, distinct, budget, watch)
    except KeyError as error:
        raise click.UsageError(f"--shapes lacks {error}.") from None
    except (PresentError, ShapeError) as error:
        raise click.ClickException(str(error)) from None
    except InterruptError as interrupted:
        _report(interrupted.found)
        click.echo("interrupted: the best so far; no schedules are written.", err=True)
        raise click.exceptions.Exit(130) from None


def _ignore(stage: str, sizes: Sizes, search: Search) -> None:
    """Show nothing."""
    del stage, sizes, search


@contextmanager
def _watching(budget: float) -> Generator[Callable[[str, Sizes, Search], None]]:
    """Show the best so far on a terminal, beside how much of the budget is spent."""
    console = console_for(sys.stderr)
    if not console.is_terminal:
        yield _ignore
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from kerngen.bench.words import duration

    columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    begin = time.monotonic()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=budget)

        def watch(stage: str, sizes: Sizes, search: Search) -> None:
            best = search.best.text if search.best else "what there is"
            at = ", ".join(f"{name}={size}" for name, size in sizes.items())
            said = f"{stage} {at}: {len(search.found)} tried, best {duration(search.seconds)}: {best}"
            spent = min(time.monotonic() - begin, budget)
            progress.update(bar, completed=spent, description=escape(said))

        yield watch


def _text(
    ctx: Context, target: _Target, found: Sequence[Found], *, unchecked: bool
) -> str:
    from kerngen.bench.record import adapter_of, versions_of
    from kerngen.tune.write import write_winners

    adapter = adapter_of(ctx)
    shown = (adapter.get(key, "") for key in ("device", "description", "backend_type"))
    versions = versions_of()
    names = ("kerngen", "wgpu-py", "wgpu-native")
    about = {
        "Adapter": ", ".join(part for part in shown if part),
        "Versions": ", ".join(f"{name} {versions[name]}" for name in names),
        "Date": time.strftime("%Y-%m-%d"),
        "Runtime checks": "off" if unchecked and ctx.unchecked else "on",
    }
    return write_winners(
        [each.winner for each in found],
        kernel=target.subject.kernel.name,
        used=target.used,
        whole=target.whole,
        about=about,
    )


def _report(found: Sequence[Found]) -> None:
    from rich.table import Table

    from kerngen.bench.words import duration

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stage", "sizes"):
        table.add_column(name)
    for name in ("before", "best", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("schedule")
    table.add_column("candidates")
    for each in found:
        winner = each.winner
        counts = ", ".join(f"{n} {v.value}" for v, n in each.verdicts.items())
        table.add_row(
            winner.stage,
            ", ".join(f"{name}={size}" for name, size in winner.sizes.items()),
            duration(winner.before),
            duration(winner.after),
            f"{winner.before / winner.after:.2f}x",
            winner.candidate.text if winner.candidate else "as it was",
            counts,
        )
    console = report_console()
    console.print(table)
    for each in found:
        for candidate, why in each.wrong:
            console.print(f"[red]wrong:[/] {escape(candidate.text)}: {escape(why)}")
