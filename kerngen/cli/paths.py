"""Paths on the command line: never empty, and refused before a long run, not after."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from kerngen.source.cells import clean


class PathType(click.ParamType[Path]):
    """A path as it was given."""

    name = "path"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path, or fail: what is empty is a mistake of a script, as a rule."""
        if not str(value):
            self.fail(
                "a path can't be empty; '.' is the folder you are in.", param, ctx
            )
        return Path(str(value))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell complete it."""
        return click.Path().shell_complete(ctx, param, incomplete)


class TargetType(PathType):
    """A file that can be written: there or not, in a folder that is there."""

    name = "FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path, or fail with why nothing can be written there."""
        path = super().convert(value, param, ctx)
        if path.is_dir():
            self.fail(f"'{path}' is a folder.", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"There is no folder '{path.parent}'.", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"'{path}' can't be written.", param, ctx)
        return path


def working_directory() -> Path:
    """Return the folder the command runs in; it may be gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise click.ClickException(
            f"The working directory: {error.strerror}."
        ) from None


def absolute(path: Path) -> Path:
    """Return a path from the root, its links followed; refuse what leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a NUL
        raise click.ClickException(f"{str(path)!r}: {error}.") from None


def shown_path(file: Path) -> str:
    """Return how a user would find a file from here, as it can be printed."""
    here = working_directory()
    return clean(str(file.relative_to(here) if file.is_relative_to(here) else file))


PATH: Final = PathType()
TARGET: Final = TargetType()
STDIN: Final = Path("-")
"""What is given to read a source from stdin."""
