"""Pack the compiler for Python in a page, and the rules by which the page highlights.

    pack_compiler.py FOLDER

It writes `compiler.zip`, of sources, and `highlight.json`; `precompile.mjs` makes bytecode
of the sources.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import lark

import kerngen
from kerngen.syntax.highlight import RULES

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
    """Write both files."""
    with ZipFile(Path(out) / "compiler.zip", "w", ZIP_DEFLATED) as archive:
        for file, name in files():
            archive.write(file, name)
    (Path(out) / "highlight.json").write_text(json.dumps(RULES), "utf-8")


main(*sys.argv[1:])
