"""Up-to-date checks: which sources need no rebuilding.

A source is fresh if

- the texts that it is built from, its own and those of files it uses, have the hash in the
  manifest,
- its files are on the disk as the manifest lists them,
- this very compiler made them.

The last is recorded in a stamp.  That is a cache, not output: it is in `__pycache__`, which
version control ignores, so that a new compiler that generates the same files changes none
(docs/decisions/0002).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import final

from kerngen.output.confine import confined
from kerngen.output.errors import OutputError
from kerngen.output.manifest import (
    Entry,
    Manifest,
    digest,
    read_manifest,
    read_regular,
)

_PACKAGE = Path(__file__).parent.parent
_NO_COMPILER = ("cli", "runtime")
"""Folders of the package that no generated file depends on."""

_STAMPS = "__pycache__/kerngen.json"


@cache
def compiler_fingerprint() -> str:
    """Return a hash of the compiler's own sources and of the tools that it uses."""
    total = sha256()
    for tool in ("black", "lark"):
        total.update(f"{tool} {metadata.version(tool)}\n".encode())
    for file in _compiler_sources():
        total.update(f"{file.relative_to(_PACKAGE).as_posix()}\n".encode())
        total.update(digest(file.read_bytes()).encode())
    return total.hexdigest()


def _compiler_sources() -> Iterator[Path]:
    for file in sorted(_PACKAGE.rglob("*")):
        part = file.relative_to(_PACKAGE).parts[0]
        if file.suffix in {".py", ".lark"} and part not in _NO_COMPILER:
            yield file


@final
class Freshness:
    """The record of earlier builds: manifest, files on disk, and stamp."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.seen: Manifest = read_manifest(out)
        self._entries = self.seen.sources
        self._stamps = _read_stamps(out)

    def is_fresh(self, source: str, texts_hash: str) -> bool:
        """Whether building `source` again would change nothing."""
        entry = self._entries.get(source)
        return (
            entry is not None
            and self._stamps.get(source) == _stamp(entry)
            and self.is_of(source, texts_hash)
        )

    def is_of(self, source: str, texts_hash: str) -> bool:
        """Whether the source's files were made from these texts, by any compiler."""
        entry = self._entries.get(source)
        return (
            entry is not None
            and entry.sha256 == texts_hash
            and all(self._is_intact(path, sha) for path, sha in entry.files.items())
        )

    def _is_intact(self, path: str, sha: str) -> bool:
        try:
            content = read_regular(self._out, path)
        except OSError:
            return False
        return content is not None and digest(content) == sha


def stamp_all(out: Path, built: Mapping[str, Entry]) -> None:
    """Record that this compiler made the files of the sources `built`.

    The stamp has the hash of the texts, as another compiler may build the same sources
    later.
    """
    old = _read_stamps(out)
    stamps = {
        name: _stamp(built[name]) if name in built else old.get(name, "")
        for name in read_manifest(out).sources
    }
    # Without the cache, the next build only takes longer.
    with suppress(OSError, OutputError):
        file = confined(out, _STAMPS)
        file.parent.mkdir(exist_ok=True)
        file.unlink(missing_ok=True)  # it may be a pipe
        file.write_text(json.dumps(stamps), encoding="utf-8")


def _stamp(entry: Entry) -> str:
    files = json.dumps(dict(entry.files), sort_keys=True)
    return digest(f"{compiler_fingerprint()} {entry.sha256} {files}".encode())


def _read_stamps(out: Path) -> dict[str, str]:
    try:
        value = json.loads(read_regular(out, _STAMPS) or b"")
        return {str(name): str(stamp) for name, stamp in value.items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}
