"""Changes to a folder as data, and the file operations that apply them."""

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
        """All paths that are written or removed."""
        return self.remove.union(self.write)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write new files, with the folders that they need."""
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)


def write_note(note: Path, value: object) -> None:
    """Write a JSON file in one step: never half of it."""
    draft = note.with_suffix(".draft")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(note)


def remove_empty_folders(removed: Iterable[str], folder: Path) -> None:
    """Remove folders below `folder` that are empty after files were removed."""
    parents = {up for path in removed for up in PurePosixPath(path).parents if up.parts}
    for parent in sorted(parents, key=lambda up: len(up.parts), reverse=True):
        try:
            (folder / parent).rmdir()
        except OSError:  # not empty: somebody else's files are in it
            continue
