"""The output languages of a build, and the files of each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import PurePosixPath
from typing import Final, final


@final
class Target(Enum):
    """An output language, by its name in `kerngen build --target python`."""

    PYTHON = "python"
    TYPESCRIPT = "typescript"


SUFFIXES: Final = {
    Target.PYTHON: (".py",),
    Target.TYPESCRIPT: (".js", ".d.ts"),
}
"""The suffixes of a module's files in each language."""


def targets_of(files: Iterable[str]) -> frozenset[Target]:
    """Return the output languages that some generated files are in, by the files' names."""
    ends = {PurePosixPath(path).suffix for path in files}
    return frozenset(t for t, suffixes in SUFFIXES.items() if suffixes[0] in ends)
