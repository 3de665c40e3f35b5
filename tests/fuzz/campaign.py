"""Many inputs, one after the other: counted, timed, and every fault kept once."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Final, final

from tests.programs.judges import both

from .mutate import make
from .oracle import FoundError, Judge, Oracle

NOBODY: Final[Mapping[str, Judge]] = {}
"""No judges: shaders are only written."""

_EVERY: Final = 2000
"""Inputs between two notes of how far a campaign is."""

_LONGEST: Final = 30.0
"""Seconds of the processor after which an input, which may never end, is given up."""


@final
@dataclass
class Tally:
    """How far a campaign is; kept in a file, so that a later run goes on from there."""

    seed: int = 0
    inputs: int = 0
    seconds: float = 0.0
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    """How inputs ended, by the way they were made and the outcome."""
    found: dict[str, int] = field(default_factory=dict[str, int])
    """The faults, and how often each was met."""

    @classmethod
    def read(cls, folder: Path, seed: int) -> Tally:
        """Return what a folder's campaign came to, or the start of a new one."""
        file = _file(folder, seed)
        return cls(**json.loads(file.read_text())) if file.exists() else cls(seed)

    def write(self, folder: Path) -> None:
        """Note it in a folder."""
        file = _file(folder, self.seed)
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self), indent=2, sort_keys=True))
        draft.replace(file)

    def __str__(self) -> str:
        """Figures for people."""
        rate = self.inputs / self.seconds if self.seconds else 0.0
        ends = Counter[str]()
        for name, number in self.outcomes.items():
            ends[name.rpartition(": ")[2]] += number
        listed = ", ".join(f"{number:,} {end}" for end, number in ends.most_common())
        return f"{self.inputs:,} inputs, {rate:.0f} a second: {listed}"


def _file(folder: Path, seed: int) -> Path:
    return folder / f"tally-{seed}.json"


def input_number(seed: int, number: int) -> tuple[str, bytes]:
    """Return one input of a campaign, after the name of how it was made."""
    return make(Random(f"{seed} {number}"))


def record(tally: Tally, oracle: Oracle, name: str, data: bytes) -> FoundError | None:
    """Examine one input and count how it ends; return the fault, if it is a new one."""
    start = time.perf_counter()
    fault: FoundError | None = None
    try:
        end = oracle.examine(data)
    except FoundError as error:
        end = "fault"
        fault = None if error.key in tally.found else error
        tally.found[error.key] = tally.found.get(error.key, 0) + 1
    tally.inputs += 1
    tally.seconds += time.perf_counter() - start
    key = f"{name}: {end}"
    tally.outcomes[key] = tally.outcomes.get(key, 0) + 1
    return fault


@contextmanager
def ended_after(seconds: float) -> Generator[None]:
    """Raise `TimeoutError` in what takes so much of the processor's time."""
    if sys.platform == "win32":
        yield  # nothing there can interrupt it
        return

    def end(*_: object) -> None:
        raise TimeoutError(f"It takes more than {seconds} s.")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run(folder: Path, seed: int, count: int, oracle: Oracle) -> Tally:
    """Take a campaign to so many inputs; keep each new fault in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tally = Tally.read(folder, seed)
    while tally.inputs < count:
        name, data = input_number(seed, tally.inputs)
        with ended_after(_LONGEST):
            fault = record(tally, oracle, name, data)
        if fault:
            keep(folder, fault, data)
        if tally.inputs % _EVERY == 0:
            tally.write(folder)
    tally.write(folder)
    return tally


@contextmanager
def judging(judged: bool) -> Generator[Oracle]:
    """Yield an oracle that asks naga and Tint of shaders, if it is to ask anyone."""
    with both() if judged else nullcontext(NOBODY) as judges:
        yield Oracle(judges)


def run_all(folder: Path, judged: bool, seeds: range, count: int) -> Iterator[Tally]:
    """Run a campaign of each seed in a process of its own; together so many inputs."""
    shares = [len(range(part, count, len(seeds))) for part in range(len(seeds))]
    with ProcessPoolExecutor(len(seeds), get_context("spawn")) as pool:
        yield from pool.map(partial(_judged_run, folder, judged), seeds, shares)


def _judged_run(folder: Path, judged: bool, seed: int, count: int) -> Tally:
    with judging(judged) as oracle:
        return run(folder, seed, count, oracle)


def keep(folder: Path, fault: FoundError, data: bytes) -> None:
    """Write an input that does harm, and what it does, into a folder."""
    stem = "".join(c if c.isalnum() else "_" for c in fault.key)[:80]
    (folder / f"{stem}.kern").write_bytes(data)
    (folder / f"{stem}.txt").write_text(f"{fault.key}\n{fault}\n", encoding="utf-8")
