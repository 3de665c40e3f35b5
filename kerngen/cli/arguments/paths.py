"""Path arguments of the command line, checked before a command begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from kerngen.source.cells import clean


class PathType(click.ParamType[Path]):
    """The type of a path argument."""

    name = "path"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path; fail if it is empty."""
        if not str(value):
            self.fail(
                "a path can't be empty; '.' is the folder you are in.", param, ctx
            )
        return Path(str(value))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the shell's completions of a path."""
        return click.Path().shell_complete(ctx, param, incomplete)


class TargetType(PathType):
    """The type of a path that a command will write."""

    name = "FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path; fail if nothing can be written there."""
        path = super().convert(value, param, ctx)
        if path.is_dir():
            self.fail(f"'{path}' is a folder.", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"There is no folder '{path.parent}'.", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"'{path}' can't be written.", param, ctx)
        return path


def working_directory() -> Path:
    """Return the working directory; fail if it no longer exists."""
    try:
        return Path.cwd()
    except OSError as error:
        raise click.ClickException(
            f"The working directory: {error.strerror}."
        ) from None


def absolute(path: Path) -> Path:
    """Return the absolute path, links resolved; fail for a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a NUL
        raise click.ClickException(f"{str(path)!r}: {error}.") from None


def shown_path(file: Path) -> str:
    """Return a file's path as the user knows it, printable."""
    here = working_directory()
    return clean(str(file.relative_to(here) if file.is_relative_to(here) else file))


PATH: Final = PathType()
TARGET: Final = TargetType()
STDIN: Final = Path("-")
"""The path argument for stdin."""
