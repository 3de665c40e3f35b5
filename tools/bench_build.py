"""Measure what `kerngen build` costs: from nothing, with nothing changed, with one file.

    python tools/bench_build.py [KERNELS ...] [--jobs N]

A tree holds the standard kernels under new names, over and over, and one random program
of the tests for every seven of them.  Every build is a process of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from kerngen.compiler import compile_text  # noqa: E402 (found by the line above)
from kerngen.source.diagnostic import CompileError  # noqa: E402
from tests.programs.programs import CHOICES, program_of  # noqa: E402

SIZES = (10, 100, 1000)
STANDARD_PER_RANDOM = 7
NAMED = re.compile(r"^(kernel|schedule) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One build: how long it took, of all cores too, and the memory of its largest process."""

    seconds: float
    of_cores: float
    mebibytes: float


def sources() -> Iterator[tuple[str, int]]:
    """Yield texts of files without end, each with how many kernels it has."""
    rng = random.Random(0)  # noqa: S311 (the same programs every time)
    texts = [file.read_text("utf-8") for file in sorted((ROOT / "dsl").glob("*.kern"))]
    for copy in count():
        rng.shuffle(texts)
        for text in texts:
            kernels = len(re.findall(r"^kernel ", text, re.MULTILINE))
            yield NAMED.sub(rf"\1 \2_{copy}", text), kernels
            for _ in range(round(kernels / STANDARD_PER_RANDOM)):
                yield random_source(rng), 1


def random_source(rng: random.Random) -> str:
    """Return a random program that compiles: its schedules may fit no stage."""
    text, *plain = program_of(rng.randbytes(CHOICES)).sources
    try:
        compile_text(text, "random.kern", formatted=False)
    except CompileError:
        return plain[0]
    return text


def make_tree(folder: Path, kernels: int) -> list[Path]:
    """Write files with so many kernels together, or a few more."""
    files: list[Path] = []
    missing = kernels
    for number, (text, held) in enumerate(sources()):
        file = folder / f"part_{number % 10}" / f"file_{number}.kern"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        files.append(file)
        missing -= held
        if missing <= 0:
            break
    return files


def build(folder: Path, *arguments: str) -> Run:
    """Build a tree in a process of its own."""
    command = [sys.executable, "-m", "kerngen.cli", "build", str(folder / "dsl")]
    command += ["--out", str(folder / "out"), *arguments]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    child = os.posix_spawn(
        command[0],
        command,
        {**os.environ, "PYTHONPATH": path},
        file_actions=silent,
    )
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"The build failed: {' '.join(command)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure(kernels: int, arguments: list[str]) -> str:
    """Return the line of the table for a tree."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = make_tree(folder / "dsl", kernels)
        first = build(folder, *arguments)
        unchanged = build(folder, *arguments)
        changed = files[len(files) // 2]
        changed.write_text(changed.read_text("utf-8") + "\n// Changed.\n", "utf-8")
        one = build(folder, *arguments)
    each = first.seconds / kernels * 1000
    return (
        f"{kernels:7}  {len(files):5}  {first.seconds:7.2f}  {first.of_cores:8.2f}  "
        f"{each:9.1f}  {first.mebibytes:3.0f}  {unchanged.seconds:9.2f}  {one.seconds:8.2f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", type=int, nargs="*", default=SIZES)
    parser.add_argument("--jobs")
    given = parser.parse_args()
    arguments = ["--jobs", given.jobs] if given.jobs else []
    print("                seconds  of all                    seconds,   seconds,")
    print("kernels  files  from 0   cores     ms/kernel  MiB  unchanged  one file")
    for kernels in given.kernels:
        print(measure(kernels, arguments), flush=True)


if __name__ == "__main__":
    main()
