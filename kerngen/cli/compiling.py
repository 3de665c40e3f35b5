"""Compile the files of a build, on several cores where that is faster.

The generated files and the diagnostics are the same either way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kerngen.cli.arguments.targets import DEFAULT, Targets
from kerngen.cli.compiled import Compiled, compiled_file
from kerngen.cli.console import progress
from kerngen.cli.project import SourceFile
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.syntax.library import Library

_SHARE = 6000
"""Characters of source for each process: about half a second's work."""


def compile_sources(
    sources: Sequence[SourceFile],
    library: Library,
    jobs: int | None,
    targets: Targets = DEFAULT,
) -> dict[SourceFile, Compiled]:
    """Compile sources in at most `jobs` processes, or one per core.

    Raises `CompileError` with the faults of all.
    """
    if not sources:
        return {}
    from kerngen.compiler import Compiler

    done = _side_by_side(sources, library, jobs or _cores(), targets)
    left = [source for source in sources if source.name not in done]
    compiler = Compiler(library, targets=targets)
    faults = Faults()
    for source in progress(left, len(left), "Compiling"):
        with faults.collect():
            done[source.name] = compiled_file(compiler, source.name)
    faults.raise_if_any()
    return {source: done[source.name] for source in sources}


def _side_by_side(
    sources: Sequence[SourceFile], library: Library, jobs: int, targets: Targets
) -> dict[str, Compiled]:
    """Return the files that several processes compiled; none if one process is faster.

    Files with errors are left out: the caller compiles them again, and reports them.
    """
    sizes = {source.name: _size(source.name, library) for source in sources}
    number = min(jobs, len(sizes), sum(sizes.values()) // _SHARE)
    if number < 2:
        return {}
    from kerngen.cli.jobs.workers import workers

    # The largest first, so that none is left to one process at the end.
    names = sorted(sizes, key=lambda name: sizes[name], reverse=True)
    with workers(library, number, targets) as started:
        results = progress(started.compile(names), len(names), "Compiling")
        return {name: one for name, one in results if one is not None}


def _size(name: str, library: Library) -> int:
    try:
        return len(library.source(name).text)
    except CompileError:
        return 0


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
