"""What a program can ask for in a schedule: the strategies by name, and their options.

`kerngen.schedule.strategies` has a row for each; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class OptionRule:
    """What an option takes: how it is written, and the range of its values."""

    usage: str
    count: int
    lowest: int = 1
    highest: int | None = None

    @property
    def accepted(self) -> str:
        """The range in words."""
        if self.highest is not None:
            return f"{self.lowest} to {self.highest}"
        return f"at least {self.lowest}"


OPTIONS: Final[Mapping[str, Mapping[str, OptionRule]]] = {
    "map": {},
    "reduce": {},
    "rows": {},
    "gemv": {"rows": OptionRule("rows(count)", 1, highest=16)},
    "gemm": {
        "tile": OptionRule("tile(m, n, k)", 3),
        "micro": OptionRule("micro(m, n)", 2),
        "pad": OptionRule("pad(vectors)", 1, lowest=0),
        "buffers": OptionRule("buffers(count)", 1, highest=2),
        "lanes": OptionRule("lanes(columns, rows)", 2),
        "split": OptionRule("split(parts)", 1),
    },
    "generic": {},
}
"""The options of each strategy."""
