"""A sample of mutants: of each folder as many as of any other, and of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import TypeVar

from .mutations import Kind, Mutant, mutants_of

Item = TypeVar("Item")


def every_folder(root: Path) -> list[str]:
    """Return the folders of kerngen."""
    return sorted(
        path.name for path in (root / "kerngen").iterdir() if [*path.glob("*.py")]
    )


def sample(root: Path, seed: int, folders: Sequence[str]) -> list[Mutant]:
    """Return all mutants of folders in an order that depends on the seed alone."""
    return _in_turn(_of_folder(root, seed, folder) for folder in folders)


def _of_folder(root: Path, seed: int, folder: str) -> list[Mutant]:
    files = sorted((root / "kerngen" / folder).rglob("*.py"))
    if not files:
        raise FileNotFoundError(f"'kerngen/{folder}' has no modules.")
    names = [file.relative_to(root).as_posix() for file in files]
    found = [
        mutant
        for name, file in zip(names, files, strict=True)
        for mutant in mutants_of(name, file.read_bytes())
    ]
    kinds = [[mutant for mutant in found if mutant.kind is kind] for kind in Kind]
    for kind in kinds:
        Random(seed).shuffle(kind)
    return _in_turn(kinds)


def _in_turn(rows: Iterable[Sequence[Item]]) -> list[Item]:
    """Return the first of each row, then the second of each, ..."""
    columns = zip_longest(*rows)
    return [item for column in columns for item in column if item is not None]
