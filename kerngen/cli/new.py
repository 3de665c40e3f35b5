"""`kerngen new`: make a project that builds, type-checks and passes its tests at once."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from kerngen import __version__
from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import PATH, absolute, shown_path
from kerngen.source.cells import clean


@click.command(
    epilog=options.examples(
        "kerngen new my-layers",
        "kerngen new my-shaders --bind",
        "cd my-layers && pip install -e '.[test]' && pytest",
    )
)
@click.argument("path", type=PATH)
@click.option("--name", help="The project's name, if it is not the folder's.")
@click.option(
    "--bind",
    "with_shaders",
    is_flag=True,
    help="Add a shader in WGSL, bound by 'kerngen bind', and a test of it.",
)
def new(path: Path, name: str | None, with_shaders: bool) -> None:
    """Make a project in PATH, a new or an empty folder.

    '.' is the folder that you are in.  The project has a kernel, a test of it, settings
    for kerngen, mypy, pyright and pytest, and a workflow for GitHub.  Where git is
    installed, and the folder is in no repository, it becomes one.
    """
    from kerngen.cli.arguments.targets import DEFAULT
    from kerngen.cli.bind import bind_shaders
    from kerngen.cli.build import build_sources
    from kerngen.cli.console import reporting
    from kerngen.cli.project import select
    from kerngen.cli.settings import Project
    from kerngen.scaffold.name import ProjectName
    from kerngen.scaffold.project import (
        SHADERS,
        SOURCE,
        NotEmptyError,
        begin_history,
        out_of,
        refuse_what_is_there,
        write_project,
    )

    folder = absolute(path)
    try:
        project = ProjectName(folder.name if name is None else name)
        refuse_what_is_there(path)
    except (ValueError, NotEmptyError) as error:
        hint = " Or give another by --name." if isinstance(error, ValueError) else ""
        raise click.ClickException(f"{error}{hint * (name is None)}") from None
    with reporting(sys.stderr):
        write_project(folder, project, __version__, bind=with_shaders)
        begin_history(folder)
        out = out_of(folder, project)
        build_sources(select(None, Project(folder / SOURCE, out)), out, DEFAULT, None)
        if with_shaders:
            bind_shaders(folder / SHADERS, out)
    _print_next_steps(folder, project.name, with_shaders=with_shaders)


def _print_next_steps(folder: Path, name: str, *, with_shaders: bool) -> None:
    """Print the next commands for a new project."""
    from kerngen.origin import origin
    from kerngen.scaffold.project import SHADERS, SOURCE

    here = shown_path(folder)
    click.echo(f"Project '{name}' is in '{clean(here)}'. Next:\n")
    if folder != Path.cwd():
        click.echo(f"  cd {clean(shlex.quote(here))}")
    click.echo('  pip install -e ".[test]"\n  pytest\n')
    click.echo(f"Change {SOURCE}/layers.kern, and run 'kerngen build'.")
    if with_shaders:
        click.echo(f"Or {SHADERS}/drift.wgsl, and run 'kerngen bind {SHADERS}'.")
    if found := origin():
        click.echo(
            f"\nThis kerngen comes from {clean(found)}, not from a package index: in "
            f"another environment, install it from there first."
        )
