"""The pages of docs/reference, made of the tables and docstrings that they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.docs.reference import builtins, commands, runtime, strategies, words
from tests.project.tree import ROOT

FOLDER: Final = ROOT / "docs" / "reference"

PAGES: Final[Mapping[Path, Callable[[], str]]] = {
    FOLDER / "words.md": words.page,
    FOLDER / "builtins.md": builtins.page,
    FOLDER / "strategies.md": strategies.page,
    FOLDER / "commands.md": commands.page,
    FOLDER / "runtime.md": runtime.page,
}
"""Each page with what makes it."""
