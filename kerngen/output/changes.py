"""Changes to a folder as data, and the small steps that both ways to make them share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Changes:
    """Files to write and files to remove, by path relative to the folder."""

    write: Mapping[str, bytes]
    remove: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.write or self.remove)

    @property
    def paths(self) -> frozenset[str]:
        """Every path that is written or removed."""
        return self.remove.union(self.write)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files that aren't there yet, making the folders they need."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)


def write_note(note: Path, value: object) -> None:
    """Write a file of JSON in one step: it is there whole or not at all."""
    draft = note.with_suffix(".draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(note)


def remove_empty_folders(removed: Iterable[str], folder: Path) -> None:
    """Remove the folders, below `folder`, that removed files left empty."""
    parents = {up for path in removed for up in PurePosixPath(path).parents if up.parts}
    for parent in sorted(parents, key=lambda up: len(up.parts), reverse=True):
        try:
            (folder / parent).rmdir()
        except OSError:  # not empty: somebody else's files are in it
            continue
