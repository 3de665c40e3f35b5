"""Merging new winners into an existing file of schedules."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from kerngen.source.text import Source
from kerngen.syntax.outline import outline_of

_HEADING = re.compile(r"^//!(?: (.*))?$", re.MULTILINE)
_ABOUT = re.compile(r"(Adapter|Date): (.*)")
_SUBJECT = re.compile(r"// ([^:\n]*): ")


@final
@dataclass(frozen=True, slots=True)
class Earlier:
    """The parts of an earlier file that stay: its `use`s, its blocks and their dates.

    A block is a comment, with what was tuned at which sizes, and a schedule.
    """

    uses: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def subject_of(block: str) -> str:
    """Return a block's subject: the kernel and sizes in its comment."""
    match = _SUBJECT.match(block)
    return match[1] if match else ""


def earlier(text: str, found: set[str]) -> Earlier:
    """Return the parts of an earlier file about other subjects than those in `found`."""
    parts = _parts(text)
    kept = tuple(b for b in _blocks(text) if subject_of(b) not in found)
    if not kept:
        return Earlier()
    uses = (line for part in parts if part.startswith("use ") for line in _lines(part))
    return Earlier(tuple(uses), kept, tuple(_origins(text)))


def pruned(
    text: str,
    kernel: str,
    used: str,
    kernels_at: Callable[[str], frozenset[str] | None],
) -> tuple[str, tuple[str, ...]]:
    """Return a text without blocks for kernels that no longer exist, and their names.

    `kernels_at` returns the kernels of a used file, or None if the file is gone: its `use`
    becomes that of the file `used`, which has the tuned kernel.  Removed lines become empty
    ones, so that the others keep their numbers.
    """
    said = outline_of(Source("", text))
    files = {use.path: kernels_at(use.path) for use in said.uses}
    known = frozenset({kernel, *said.kernels}).union(
        *(has or () for has in files.values())
    )
    instead = "" if used in files else f'use "{used}";'
    for path in (path for path, has in files.items() if has is None):
        text = text.replace(f'use "{path}";', instead)
        instead = ""
    lost = {
        block: said.scheduled
        for block in _blocks(text)
        if (said := outline_of(Source("", block))).scheduled
        and not said.schedules_any(known)
    }
    names = frozenset[str]().union(*lost.values())
    return _blanked(text, lost), tuple(sorted(names))


def adapter_of_file(text: str) -> str:
    """Return the adapter named in the heading of a file, or ""."""
    for heading in _HEADING.finditer(text):
        match = _ABOUT.fullmatch(heading[1] or "")
        if match and match[1] == "Adapter":
            return match[2]
    return ""


def others(text: str, found: Container[str]) -> str:
    """Return a text without the blocks whose subjects are in `found`."""
    return _blanked(text, (b for b in _blocks(text) if subject_of(b) in found))


def _blanked(text: str, blocks: Iterable[str]) -> str:
    for block in blocks:
        text = text.replace(block, "\n" * block.count("\n"))
    return text


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part]


def _blocks(text: str) -> list[str]:
    return [p for p in _parts(text) if not p.startswith(("//!", "use "))]


def _lines(part: str) -> Iterator[str]:
    return (line for line in part.splitlines() if line)


def _origins(text: str) -> Iterator[str]:
    """Yield the date and adapter of an earlier run, and those of runs that it kept."""
    lines = [match[1] or "" for match in _HEADING.finditer(text)]
    said = (match for line in lines if (match := _ABOUT.fullmatch(line)))
    about: Mapping[str, str] = {match[1]: match[2] for match in said}
    yield f"Kept from {about.get('Date', 'before')}: {about.get('Adapter', 'unknown')}"
    yield from (line for line in lines if line.startswith("Kept from "))
