"""Files that a long run will write: refused before it begins, not after."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, final

import click


@final
class TargetType(click.ParamType[Path]):
    """A file that can be written: there or not, in a folder that is there."""

    name = "FILE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path, or fail with why nothing can be written there."""
        path = Path(str(value))
        if path.is_dir():
            self.fail(f"'{path}' is a folder.", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"There is no folder '{path.parent}'.", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"'{path}' can't be written.", param, ctx)
        return path


TARGET: Final = TargetType()
