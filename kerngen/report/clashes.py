"""Diagnostics of files whose generated output would be in each other's way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kerngen.output.clashes import find_clashes
from kerngen.source.faults_build import ClashingFiles
from kerngen.source.text import Span

if TYPE_CHECKING:
    from kerngen.syntax.library import Library


def clashing_files(
    library: Library, paths: Mapping[str, Iterable[str]]
) -> Iterator[ClashingFiles]:
    """Yield a fault for each source whose generated files are in another's way."""

    def start(name: str) -> Span:
        return Span(library.source(name), 0, 0)

    for clash in find_clashes(paths):
        yield ClashingFiles(
            span=start(clash.source),
            why=clash.why,
            remedy=f"{clash.remedy}.",
            other=start(clash.other) if clash.other else None,
        )
