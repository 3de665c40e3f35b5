"""`kerngen lsp`: the language server that editors start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerngen.cli.arguments import options
from kerngen.parts import LSP, needing

if TYPE_CHECKING:
    from kerngen.cli.project import Selection


@click.command(epilog=options.examples("kerngen lsp"))
@click.option(
    "--stdio", is_flag=True, help="Talk over stdin and stdout; it always does."
)
def lsp(stdio: bool) -> None:
    """Serve an editor, which starts it and talks over stdin and stdout.

    The page "Editors" of the documentation has the settings of VS Code, Neovim, Emacs,
    Zed, Helix and JetBrains.
    """
    del stdio
    with needing("'kerngen lsp'", LSP):
        from kerngen.lsp.server import serve

    serve(find_selection)


def find_selection(file: Path) -> Selection:
    """Return the sources around a file; raise `ProjectError` for wrong settings."""
    from kerngen.cli.project import select_around
    from kerngen.cli.settings import find_project
    from kerngen.lsp.files import ProjectError

    try:
        return select_around(file, file.name, find_project(file.parent))
    except click.ClickException as error:
        raise ProjectError(error.message) from None
    except OSError as error:
        raise ProjectError(f"'{error.filename}': {error.strerror}.") from None
