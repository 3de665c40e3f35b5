"""Path confinement: paths from a manifest must lead into the output folder.

A manifest comes with a repository, and anybody may have written it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kerngen.output.errors import OutputError


def confined(out: Path, path: str) -> Path:
    """Return the path of an output file; raise `OutputError` if it leads outside."""
    if leads_out(path) or through_link(out, path):
        raise OutputError(f"'{path}' leads out of '{out}', which no build writes to.")
    return out / path


def leads_out(path: str) -> bool:
    """Whether a relative path leads out of its folder."""
    parts = set(path.split("/"))
    return path.startswith("/") or "\\" in path or bool({"", ".", ".."} & parts)


def blocked(out: Path, path: str) -> Iterator[Path]:
    """Yield files and links on the way to a file, where folders should be."""
    for parent in PurePosixPath(path).parents:
        folder = out / parent
        real = folder.is_dir() and not folder.is_symlink()
        if parent.parts and os.path.lexists(folder) and not real:
            yield folder


def through_link(out: Path, path: str) -> bool:
    """Whether a folder on the way to a file is a symbolic link."""
    folders = PurePosixPath(path).parents
    return any((out / folder).is_symlink() for folder in folders if folder.parts)
