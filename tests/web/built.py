"""Sources built for tests of the web."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.source.text import Source
from kerngen.syntax.library import Library


def build(sources: Iterable[Path], out: Path, *targets: Target) -> None:
    """Write what becomes of sources of one folder."""
    by_name = {f"dsl/{path.name}": path for path in sources}
    library = Library(
        lambda name: Source(name, by_name[name].read_text("utf-8")), [*by_name]
    )
    compiler = Compiler(library, formatted=False, targets=targets)
    for name in by_name:
        for path, data in compiler.compile(name).files.items():
            file = out / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
