"""How long each shape of file takes, and how much memory: `python -m tests.fuzz.measure`.

Names of shapes may be given, and `--size`.  Each is measured in a process of its own.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TypeAlias, final

import click

from kerngen.cli.console import print_diagnostics
from kerngen.compiler import Compiler
from kerngen.format.form import formatted
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source
from kerngen.syntax.library import Library

from .shapes import PATH, SHAPES

SIZE: Final = 64 * 1024
"""The characters that the limits on time and memory are meant for."""

_SMALL: Final = 500
"""A text of each shape goes first, so that what is made once does not count."""

_TURNS: Final = 400
"""The turns of the loop that measures how fast the processor is."""

_KIB: Final = 1024

Files: TypeAlias = Mapping[str, str]


def check(files: Files) -> int:
    """Check, as `kerngen check` does."""
    Compiler(_library(files)).check(PATH)
    return 0


def build(files: Files) -> int:
    """Compile, but leave out black; return the bytes that are generated."""
    made = Compiler(_library(files), formatted=False).compile(PATH)
    return sum(map(len, made.files.values()))


def fmt(files: Files) -> int:
    """Format the file; return its size."""
    return len(formatted(Source(PATH, files[PATH])))


WORKS: Final[dict[str, Callable[[Files], int]]] = {
    work.__name__: work for work in (check, build, fmt)
}


def _library(files: Files) -> Library:
    def read(name: str) -> Source:
        if name in files:
            return Source(name, files[name])
        raise FileNotFoundError(name)

    return Library(read, files)


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What some work took, of the processor's seconds and of MiB, and what it made.

    `pace` is what a fixed loop takes, the mean of before and after the work: a processor that
    is slower, or shared, takes longer for both.
    """

    seconds: float
    pace: float
    mib: float
    size: int
    errors: int


def _run(shape: str, work: str, size: int) -> tuple[int, int]:
    """Work on a shape; return the size of what is made, and the errors, once shown."""
    try:
        return WORKS[work](SHAPES[shape](size)), 0
    except CompileError as error:
        print_diagnostics(error.diagnostics, StringIO())
        return 0, len(error.diagnostics)


def _measure(job: tuple[str, str, int]) -> Cost:
    shape, work, size = job
    _run(shape, work, _SMALL)
    before = _pace()
    start = time.process_time()
    made, errors = _run(shape, work, size)
    seconds = time.process_time() - start
    return Cost(seconds, (before + _pace()) / 2, _peak(), made, errors)


def _pace() -> float:
    """Return the seconds of the processor that a loop takes: objects, dicts and strings."""
    start = time.process_time()
    for _ in range(_TURNS):
        made = {number: (number, str(number)) for number in range(1000)}
        sorted(made.values(), key=lambda pair: pair[1])
    return time.process_time() - start


def _peak() -> float:
    """Return the most memory that this process has had at once, in MiB.

    On Linux, `ru_maxrss` of a new process begins with its parent's memory, which would count.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].removesuffix("kB")) / _KIB


def measured(
    names: Iterable[str], works: Collection[str] = WORKS, size: int = SIZE
) -> Iterator[tuple[str, dict[str, Cost]]]:
    """Yield what each work on each shape took."""
    for name in names:
        jobs = {work: (name, work, size) for work in works}
        yield name, {work: _apart(job) for work, job in jobs.items()}


def _apart(job: tuple[str, str, int]) -> Cost:
    """Measure in a process of its own; it raises, should memory end it."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measure, job).result()


@click.command()
@click.argument("names", nargs=-1)
@click.option("--work", "works", multiple=True, default=tuple(WORKS))
@click.option("--size", default=SIZE, show_default=True)
def main(names: tuple[str, ...], works: tuple[str, ...], size: int) -> None:
    """Print a table: seconds of each work, MiB at most, KB generated, errors."""
    heads = "".join(f"{work:>8}" for work in works)
    click.echo(f"{'':32}{heads}     MiB      KB  errors")
    for name, costs in measured(names or SHAPES, works, size):
        times = "".join(f"{cost.seconds:8.2f}" for cost in costs.values())
        most = max(cost.mib for cost in costs.values())
        made = costs["build"].size // 1000 if "build" in costs else 0
        errors = max(cost.errors for cost in costs.values())
        click.echo(f"{name:32}{times}{most:8.0f}{made:8}{errors:8}")


if __name__ == "__main__":
    main()
