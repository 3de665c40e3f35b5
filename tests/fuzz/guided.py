"""Fuzzing with atheris: inputs that run new code are kept, and made others of."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

from .campaign import Tally, keep, record
from .corpus import PROGRAMS
from .mutate import LONGEST, make, mutated
from .oracle import Oracle

_NOTED = 1000
"""Inputs between two notes of how far a campaign is."""


def fuzz(folder: Path, seed: int, count: int, oracle: Oracle) -> None:
    """Examine so many inputs, those of former runs included; never return.

    libFuzzer ends the process.  Faults are kept, and do not stop it.
    """
    corpus = folder / "corpus"
    _start(corpus)
    tally = Tally.read(folder, seed)
    made: dict[bytes, str] = {}

    def examine(data: bytes) -> None:
        name = made.pop(data, "atheris")
        if fault := record(tally, oracle, name, data):
            keep(folder, fault, data)
        if tally.inputs % _NOTED == 0 or tally.inputs >= count:
            tally.write(folder)
            sys.stderr.write(f"{tally}\n")

    def mutate(data: bytes, most: int, number: int) -> bytes:
        """Change an input, or make one anew: what bytes alone would not come to."""
        random = Random(number)
        made.clear()
        name, new = ("mutated", mutated(data, random))
        if random.random() < 0.6:
            name, new = make(random)
        made[new[:most]] = name
        return new[:most]

    left = max(count - tally.inputs, 0)
    atheris: Any = import_module("atheris")  # it has no types
    options = [
        f"-runs={left}",
        f"-seed={seed + 1 + tally.inputs}",
        "-print_final_stats=1",
        f"-artifact_prefix={corpus.parent}/",
    ]
    limits = [
        f"-max_len={LONGEST}",
        "-rss_limit_mb=4096",
        "-timeout=60",
        "-len_control=0",
    ]
    command = [sys.argv[0], *options, *limits, str(corpus)]
    atheris.Setup(command, examine, custom_mutator=mutate)
    atheris.Fuzz()


def _start(corpus: Path) -> None:
    """Make a corpus of the programs there are, if there is none."""
    if corpus.exists():
        return
    corpus.mkdir(parents=True)
    for number, text in enumerate(PROGRAMS):
        (corpus / f"{number}.kern").write_text(text, encoding="utf-8")
