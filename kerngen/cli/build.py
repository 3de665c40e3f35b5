"""`kerngen build`: generate what has changed."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.arguments.targets import Targets
from kerngen.cli.compiled import Compiled
from kerngen.cli.compiling import compile_sources
from kerngen.cli.console import (
    console_for,
    print_diff,
    print_warnings,
    reporting,
    say,
    say_waiting,
)
from kerngen.cli.project import Selection, SourceFile, choose_out, select
from kerngen.cli.settings import find_project
from kerngen.emit.targets import targets_of
from kerngen.output.files import Generated
from kerngen.output.freshness import Freshness, stamp_all
from kerngen.output.manifest import read_manifest
from kerngen.output.write import (
    Difference,
    OvertakenError,
    Summary,
    check,
    write,
)
from kerngen.source.cells import clean
from kerngen.source.counted import counted
from kerngen.source.diagnostic import CompileError
from kerngen.syntax.library import Library


@click.command(
    epilog=options.examples(
        "kerngen build",
        "kerngen build kernels --out my_kernels",
        "kerngen build --target python,typescript",
        "kerngen build --check  # in CI: exits with 1 if files are out of date",
    )
)
@options.src
@options.out_folder
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Write nothing; exit 1, with a diff, if a build would change files.",
)
@options.target
@options.jobs
@options.quiet
def build(
    src: Path | None,
    out: Path | None,
    checking: bool,
    targets: Targets | None,
    jobs: int | None,
) -> None:
    """Generate WGSL, and modules that call it, from SRC.

    SRC is a .kern file or a folder of them; by default, the project's.  A folder's
    build removes what its sources no longer generate.  A build that fails leaves the
    old output as it was.
    """
    project = find_project()
    selection = select(src, project)
    folder = choose_out(out, selection, project)
    with reporting(sys.stderr):
        if checking:
            _check(selection, folder, targets or project.targets, jobs)
        else:
            build_sources(selection, folder, targets or project.targets, jobs)


def build_sources(
    selection: Selection, out: Path, targets: Targets, jobs: int | None
) -> None:
    """Generate what has changed, and print a summary."""
    while True:
        with suppress(OvertakenError):  # by a build of newer texts, perhaps
            return _build_once(selection, out, targets, jobs)


def _build_once(
    selection: Selection, out: Path, targets: Targets, jobs: int | None
) -> None:
    library = selection.library()
    freshness = Freshness(out)
    fresh = {
        source.name
        for source in selection.files
        if _is_fresh(freshness, library, source.name, targets)
    }
    stale = [source for source in selection.files if source.name not in fresh]
    compiled = compile_sources(stale, library, jobs, targets)
    _refuse_lone_structs(compiled, selection, out)
    generated = [_generated(source, one, library) for source, one in compiled.items()]
    summary = write(
        generated,
        out,
        keep=lambda name: name in fresh or not selection.covers(name),
        seen=freshness.seen,
        waiting=say_waiting,
    )
    if generated:
        stamp_all(out, {one.source: one.entry for one in generated})
    report_summary(summary, out)
    for source, one in compiled.items():
        _report_notes(source, one)


def _report_notes(source: SourceFile, compiled: Compiled) -> None:
    from kerngen.report.python_names import rename_notes

    for note in rename_notes(source, compiled.renamed):
        say(f"note: {note}.")
    print_warnings(compiled.warnings, sys.stderr)


def _is_fresh(
    freshness: Freshness, library: Library, name: str, targets: Targets
) -> bool:
    """Whether building a source would change nothing; a faulty one is not fresh."""
    entry = freshness.seen.sources.get(name)
    if entry is None or targets_of(entry.files) != targets:
        return False
    try:
        return freshness.is_fresh(name, library.digest(name))
    except CompileError:
        return False


def _check(selection: Selection, out: Path, targets: Targets, jobs: int | None) -> None:
    library = selection.library()
    compiled = compile_sources(selection.files, library, jobs, targets)
    _refuse_lone_structs(compiled, selection, out)
    generated = [_generated(source, one, library) for source, one in compiled.items()]
    differences = check(generated, out, keep=lambda name: not selection.covers(name))
    report_differences(differences, out, "build")


def report_differences(
    differences: Sequence[Difference], out: Path, command: str
) -> None:
    """Print the files that a command would change; exit with 1 if there are any."""
    if not differences:
        say(f"{shown_path(out)} is up to date.")
        return
    for difference in differences:
        _print_difference(difference)
    click.echo(
        f"{shown_path(out)}: {counted(len(differences), 'file')} out of date. "
        f"'kerngen {command}' brings them up to date.",
        err=True,
    )
    raise click.exceptions.Exit(1)


def _refuse_lone_structs(
    compiled: Mapping[SourceFile, Compiled], selection: Selection, out: Path
) -> None:
    """Refuse a module that imports a struct's class from where no module will be."""
    if not any(one.used for one in compiled.values()):
        return
    from kerngen.emit.module_name import module_name, module_path

    before = read_manifest(out).sources.items()
    kept = (entry for name, entry in before if not selection.covers(name))
    modules = {path for entry in kept for path in entry.files}
    modules |= {str(s.folder / f"{module_name(s.name)}.py") for s in selection.files}
    for source, one in compiled.items():
        for struct in one.used:
            path = module_path(source.name, struct.path)
            if posixpath.normpath(source.folder / path) not in modules:
                raise click.ClickException(
                    f"'{source.name}' uses '{struct.name}' of '{struct.path}', which this "
                    f"build leaves out: build the folder that holds both."
                )


def _generated(source: SourceFile, compiled: Compiled, library: Library) -> Generated:
    files = compiled.files.items()
    placed = {(source.folder / path).as_posix(): data for path, data in files}
    return Generated(source.name, library.digest(source.name), placed)


def report_summary(summary: Summary, out: Path) -> None:
    """Print the changes to the output folder."""
    parts = [f"{counted(len(summary.written), 'file')} written"]
    parts += [f"{summary.unchanged} unchanged"]
    parts += [f"{len(summary.removed)} removed"] if summary.removed else []
    say(f"{shown_path(out)}: {', '.join(parts)}.")
    for path in map(clean, summary.left):
        click.echo(
            f"warning: '{path}' is no longer generated, but was changed by hand, so it "
            "is kept.",
            err=True,
        )


def _print_difference(difference: Difference) -> None:
    title = f"{difference.kind}: {clean(difference.path)}"
    console_for(sys.stdout).print(title, style="bold")
    print_diff(difference.diff)
