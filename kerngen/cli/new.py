"""`kerngen new`: a project that builds, type-checks and passes its tests at once."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from kerngen import __version__


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="The project's name, if it is not the folder's.")
def new(path: Path, name: str | None) -> None:
    """Make a project in PATH, a new or an empty folder; '.' is the one you are in.

    It has a kernel, a test of it, settings for kerngen, mypy, pyright and pytest, and a
    workflow for GitHub.  If there is git, and no repository around it, it is one.
    """
    from kerngen.cli.build import build_sources
    from kerngen.cli.console import reporting
    from kerngen.cli.project import Project, absolute, select
    from kerngen.scaffold.name import ProjectName
    from kerngen.scaffold.project import (
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
        write_project(folder, project, __version__)
        begin_history(folder)
        out = out_of(folder, project)
        build_sources(select(None, Project(folder / SOURCE, out)), out, None)
    click.echo(f"Project '{project.name}' is in '{path}'. Next:\n")
    if folder != Path.cwd():
        click.echo(f"  cd {shlex.quote(str(path))}")
    click.echo('  pip install -e ".[test]"\n  pytest\n')
    click.echo(f"Change {SOURCE}/layers.kern, and run 'kerngen build'.")
