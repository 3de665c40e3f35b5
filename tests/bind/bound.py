"""Bind WGSL texts for tests, and import what they become."""

from __future__ import annotations

import itertools
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from kerngen.bind.build import bind
from kerngen.source.text import Source

_numbers: Final = itertools.count()


def files_of(text: str, name: str = "shader.wgsl") -> dict[str, bytes]:
    """Return the files that a text becomes, by path."""
    return dict(bind(Source(name, text), text.encode()).files)


def module_of(text: str, folder: Path) -> Any:
    """Write what a text becomes to a folder, and import it."""
    name = f"bound{next(_numbers)}"
    for path, content in files_of(text, f"{name}.wgsl").items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    sys.path.insert(0, str(folder))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(folder))
