"""The names of strategies that schedules may ask for, and their options.

`kerngen.schedule.strategies` has a row for each strategy; a test compares the two tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class OptionRule:
    """The values that an option takes: how they are written, and their range.

    - `usage`: how it is written: `tile(m, n, k)`
    - `count`: how many numbers it has; each is from `lowest` to `highest`
    - `tried`: the values that a search tries, the likelier ones first
    """

    usage: str
    count: int
    lowest: int = 1
    highest: int | None = None
    tried: tuple[tuple[int, ...], ...] = ()

    @property
    def accepted(self) -> str:
        """The range of the option's numbers in words: `1 to 8` or `at least 1`."""
        if self.highest is not None:
            return f"{self.lowest} to {self.highest}"
        return f"at least {self.lowest}"


TILES: Final = (
    (128, 128, 16),
    (128, 128, 8),
    (64, 64, 16),
    (32, 64, 16),
    (32, 128, 16),
    (16, 128, 16),
    (64, 128, 16),
    (128, 64, 16),
    (256, 128, 8),
    (128, 256, 8),
    (32, 32, 32),
    (16, 64, 32),
    (64, 64, 32),
)
"""Sizes of `gemm`'s tiles that a search tries: large ones for large products first."""

FLASH_TILES: Final = (
    (64, 128, 64),
    (128, 128, 128),
    (64, 64, 64),
    (64, 64, 128),
    (32, 128, 64),
    (32, 128, 128),
    (32, 32, 32),
)
"""Sizes of `flash`'s tiles that a search tries."""

GEMV_LANES: Final = (
    (128, 1),
    (64, 4),
    (32, 4),
    (16, 16),
    (256, 1),
    (32, 8),
    (64, 8),
    (64, 2),
    (32, 16),
    (8, 16),
)
"""Lanes of `gemv` that a search tries, for matrices that lie either way."""

SUBGROUPS: Final = OptionRule(
    "subgroups(0 or 1)", 1, lowest=0, highest=1, tried=((0,), (1,))
)

OPTIONS: Final[Mapping[str, Mapping[str, OptionRule]]] = {
    "map": {},
    "reduce": {"subgroups": SUBGROUPS},
    "rows": {
        "lanes": OptionRule(
            "lanes(count)",
            1,
            lowest=2,
            highest=1024,
            tried=((64,), (128,), (256,), (512,), (1024,)),
        ),
        "subgroups": SUBGROUPS,
    },
    "ragged": {
        "lanes": OptionRule(
            "lanes(count)",
            1,
            lowest=8,
            highest=256,
            tried=((8,), (16,), (32,), (64,), (128,), (256,)),
        ),
    },
    "gemv": {
        "rows": OptionRule(
            "rows(count)",
            1,
            highest=16,
            tried=((1,), (2,), (4,), (6,), (8,), (12,), (16,)),
        ),
        "columns": OptionRule(
            "columns(count)", 1, highest=8, tried=((1,), (2,), (4,), (8,))
        ),
        "lanes": OptionRule("lanes(along, across)", 2, tried=GEMV_LANES),
        "unroll": OptionRule("unroll(terms)", 1, highest=8, tried=((1,), (2,), (4,))),
        "split": OptionRule("split(parts)", 1, tried=((1,), (2,), (4,), (8,), (16,))),
    },
    "gemm": {
        "tile": OptionRule("tile(m, n, k)", 3, tried=TILES),
        "micro": OptionRule(
            "micro(m, n)",
            2,
            tried=((8, 16), (8, 8), (16, 8), (8, 4), (4, 8), (4, 4)),
        ),
        "pad": OptionRule("pad(vectors)", 1, lowest=0, tried=((0,), (1,), (2,))),
        "buffers": OptionRule("buffers(count)", 1, highest=2, tried=((1,), (2,))),
        "lanes": OptionRule(
            "lanes(columns, rows)",
            2,
            tried=((8, 4), (4, 8), (16, 2), (2, 16), (32, 1), (1, 32)),
        ),
        "stream": OptionRule(
            "stream(groups)",
            1,
            lowest=0,
            highest=65535,
            tried=((0,), (132,), (264,), (396,), (528,)),
        ),
        "slices": OptionRule("slices(count)", 1, highest=8, tried=((1,), (2,), (4,))),
    },
    "scan": {
        "lanes": OptionRule(
            "lanes(count)",
            1,
            lowest=2,
            highest=1024,
            tried=((256,), (128,), (512,), (64,), (1024,)),
        ),
        "subgroups": SUBGROUPS,
        "redo": OptionRule("redo(0 or 1)", 1, lowest=0, highest=1, tried=((0,), (1,))),
    },
    "scatter": {
        "lists": OptionRule(
            "lists(0 or 1)", 1, lowest=0, highest=1, tried=((0,), (1,))
        ),
        "private": OptionRule(
            "private(0 or 1)", 1, lowest=0, highest=1, tried=((1,), (0,))
        ),
    },
    "sort": {},
    "flash": {
        "tile": OptionRule("tile(queries, keys, columns)", 3, tried=FLASH_TILES),
        "micro": OptionRule("micro(queries, keys)", 2, tried=((8, 8), (8, 4), (4, 4))),
        "depth": OptionRule("depth(terms, weights)", 2, tried=((16, 16), (8, 16))),
        "rows": OptionRule("rows(4)", 1, lowest=4, highest=4, tried=((4,),)),
        "chunk": OptionRule("chunk(queries)", 1, tried=((256,), (512,))),
    },
    "generic": {
        "neighbours": OptionRule(
            "neighbours(4)", 1, lowest=4, highest=4, tried=((4,),)
        ),
    },
    "fold": {},
    "loop": {},
    "recur": {},
    "steps": {},
}
"""The options of each strategy."""

REPLACED: Final[Mapping[tuple[str, str], str]] = {
    ("gemm", "split"): (
        "Write 'stream(264)' instead: at most so many workgroups, and not so many for "
        "each tile, share the terms of all tiles, where that is faster. Twice the "
        "device's multiprocessors is a good number."
    ),
}
"""For options that strategies had once, the hint what to write instead."""
