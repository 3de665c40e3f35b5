"""The sources in a folder, and the folder that their names are relative to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kerngen.syntax.library import SUFFIX


def origin_of(base: Path) -> Path:
    """Return the folder that names are relative to: usually the source folder's parent.

    If the folder is a whole project, names are relative to the folder itself.
    """
    return base if (base / "pyproject.toml").is_file() else base.parent


def sources_below(folder: Path) -> Iterator[Path]:
    """Yield every source below a folder, in any order; hidden ones are left out.

    Raises `OSError` where a folder can't be read.
    """
    for inside, inner, names in os.walk(folder, onerror=_raise):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield Path(inside, name)


def _raise(error: OSError) -> None:
    raise error
