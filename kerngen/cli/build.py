"""`kerngen build`: generate what has changed."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.targets import Targets
from kerngen.cli.compiled import Compiled
from kerngen.cli.compiling import compile_sources
from kerngen.cli.console import print_warnings, reporting, say
from kerngen.cli.project import Selection, SourceFile, choose_out, select
from kerngen.cli.settings import find_project
from kerngen.cli.updating import report_differences, update
from kerngen.emit.targets import targets_of
from kerngen.output.files import Generated
from kerngen.output.freshness import Freshness
from kerngen.output.manifest import read_manifest
from kerngen.output.write import OvertakenError, check
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
    compiled: dict[SourceFile, Compiled] = {}  # filled by `generate`, for the notes

    def generate(stale: list[SourceFile]) -> list[Generated]:
        compiled.update(compile_sources(stale, library, jobs, targets))
        _refuse_lone_structs(compiled, selection, out)
        return [_generated(source, one, library) for source, one in compiled.items()]

    update(
        out,
        {source.name: source for source in selection.files},
        lambda freshness, name: _is_fresh(freshness, library, name, targets),
        generate,
        selection.covers,
    )
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


def _refuse_lone_structs(
    compiled: Mapping[SourceFile, Compiled], selection: Selection, out: Path
) -> None:
    """Refuse a module that imports a struct's class from a module that won't exist."""
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
