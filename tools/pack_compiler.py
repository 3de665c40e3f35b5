"""Pack the compiler, and what it imports, for Python in a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import lark

import kerngen

PARTS = (
    "check emit gradient ir layout output plan report schedule shader source syntax "
    "typescript"
).split()
"""The folders of kerngen that a compilation imports."""


def files() -> Iterator[tuple[Path, str]]:
    """Yield each file with its name in the archive."""
    package = Path(kerngen.__file__).parent
    for file in sorted(package.glob("*.py")):
        yield file, f"kerngen/{file.name}"
    for root, prefix in [
        *((package / part, f"kerngen/{part}") for part in PARTS),
        (Path(lark.__file__).parent, "lark"),
    ]:
        for file in sorted(root.rglob("*")):
            if file.suffix in {".py", ".lark"} and "__pyinstaller" not in file.parts:
                yield file, f"{prefix}/{file.relative_to(root).as_posix()}"


def main(out: str) -> None:
    """Write the archive."""
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for file, name in files():
            archive.write(file, name)


main(*sys.argv[1:])
