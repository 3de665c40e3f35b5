"""Write generated files, or check that they are up to date."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Literal, final

from kerngen.output.confine import blocked
from kerngen.output.errors import OutputError
from kerngen.output.files import FileSet, Generated, declare
from kerngen.output.lock import Waiting
from kerngen.output.manifest import Manifest, digest, read_manifest, read_regular
from kerngen.output.transaction import Changes, commit, locked


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a build: files written, removed and unchanged, by path."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    left: tuple[str, ...]
    """Files no longer generated, but changed by hand: they stay, out of the manifest."""


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """A file on disk that differs from what a build would generate."""

    path: str
    kind: Literal["stale", "missing", "left over"]
    diff: str


@final
class OvertakenError(Exception):
    """Raised if another build finished first, so that these files may be outdated."""


def write(
    generated: Iterable[Generated],
    out: Path,
    *,
    keep: Callable[[str], bool],
    seen: Manifest | None = None,
    waiting: Waiting | None = None,
) -> Summary:
    """Write the generated files to `out`, and remove stale ones.

    Files that didn't change aren't written.  Files that the old manifest lists and the new
    one doesn't are removed.  Any other file in the folder is a user's and stays; if it is
    in the way, `OutputError` is raised.  On any error the folder is as it was.

    `keep` is true of sources whose files stay, though they are not built now.  `seen` is
    the manifest at the time when the texts were read: `OvertakenError` is raised if
    another build has written files of these sources since.
    """
    out = _resolve(out)
    generated = list(generated)
    with locked(out, waiting):
        old = read_manifest(out)
        _check_overtaken(generated, old, seen or old)
        entries = {name: entry for name, entry in old.sources.items() if keep(name)}
        files = declare(generated, entries)
        changes, left = _changes(files, old, out)
        commit(changes, out)
        _forget_bytecode(changes, out)
    total = len(dict(files.manifest.files())) + 1
    written, removed = sorted(changes.write), sorted(changes.remove)
    return Summary(tuple(written), tuple(removed), total - len(written), tuple(left))


def _forget_bytecode(changes: Changes, out: Path) -> None:
    """Remove the bytecode of modules that were written or removed.

    Python takes it for the new module's if that has the same size and was written in the
    same second: a module that is imported between two quick builds would stay the old one.
    """
    for path in map(out.joinpath, changes.paths):
        if path.suffix == ".py":
            for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                stale.unlink(missing_ok=True)


def _check_overtaken(
    generated: Iterable[Generated], now: Manifest, seen: Manifest
) -> None:
    for one in generated:
        known = (seen.sources.get(one.source), one.entry)
        if now.sources.get(one.source) not in known:
            raise OvertakenError(one.source)


def check(
    generated: Iterable[Generated], out: Path, *, keep: Callable[[str], bool]
) -> list[Difference]:
    """Return the files that `write` would change, and change nothing."""
    old = read_manifest(out)
    entries = {name: entry for name, entry in old.sources.items() if keep(name)}
    files = declare(generated, entries)
    differences = [
        _difference(path, content, read_regular(out, path))
        for path, content in sorted(files.content.items())
        if read_regular(out, path) != content
    ]
    return differences + [
        Difference(path, "left over", "")
        for path in sorted(_owned(old) - _owned(files.manifest))
        if os.path.lexists(out / path)
    ]


def _resolve(out: Path) -> Path:
    """Return the output folder with links resolved, so that a link to it stays a link."""
    out = out.resolve()
    if out.exists() and not out.is_dir():
        raise OutputError(f"'{out}' is a file, not a folder.")
    if not out.name:
        raise OutputError(f"'{out}' can't be a folder of generated files.")
    return out


def _changes(files: FileSet, old: Manifest, out: Path) -> tuple[Changes, list[str]]:
    """Return the differences, and stale files that were changed by hand."""
    write = {p: c for p, c in files.content.items() if read_regular(out, p) != c}
    for path in write:
        _refuse_foreign(path, old, out)
    hashes = dict(old.files())
    orphans = {
        path: content
        for path in sorted(hashes.keys() - dict(files.manifest.files()).keys())
        if (content := read_regular(out, path)) is not None
    }
    left = [
        path for path, content in orphans.items() if digest(content) != hashes[path]
    ]
    return Changes(write, frozenset(orphans.keys() - set(left))), left


def _refuse_foreign(path: str, old: Manifest, out: Path) -> None:
    """Refuse to overwrite a file that kerngen did not make, or to write through a link."""
    for obstacle in _obstacles(path, _owned(old), out):
        raise OutputError(
            f"'{obstacle}' is in the way of a generated file, and kerngen's manifest "
            f"doesn't list it: move it, rename it, or delete it if it is an old output."
        )


def _obstacles(path: str, owned: set[str], out: Path) -> Iterator[Path]:
    yield from blocked(out, path)
    target = out / path
    if os.path.lexists(target) and (
        path not in owned or target.is_symlink() or not target.is_file()
    ):
        yield target


def _owned(manifest: Manifest) -> set[str]:
    return {Manifest.NAME, *dict(manifest.files())}


def _difference(path: str, content: bytes, present: bytes | None) -> Difference:
    lines = unified_diff(
        (present or b"").decode("utf-8", "replace").splitlines(keepends=True),
        content.decode("utf-8", "replace").splitlines(keepends=True),
        f"{path} (on disk)",
        f"{path} (fresh)",
    )
    kind: Literal["stale", "missing"] = "missing" if present is None else "stale"
    return Difference(path, kind, "".join(lines))
