"""What a search may try for a stage: strategies, with values of their options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias, final

from kerngen.ir.nodes import Schedule
from kerngen.ir.strategies import OPTIONS
from kerngen.source.text import Span

Values: TypeAlias = tuple[int, ...]

TOGETHER: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "gemm": (("tile", "micro"),),
    "flash": (("tile", "micro", "depth"),),
}
"""Options that are varied together: what is best for one depends on the other."""


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy with options; those that are not given are the strategy's own."""

    strategy: str
    options: tuple[tuple[str, Values], ...] = ()

    @property
    def text(self) -> str:
        """The candidate as a schedule's body: `gemm tile(128, 64, 16) pad(1)`."""
        given = (f"{name}({', '.join(map(str, v))})" for name, v in self.options)
        return " ".join((self.strategy, *given))

    def having(self, changes: Mapping[str, Values]) -> Candidate:
        """Return the candidate with other values of some options, in the table's order."""
        known = {**dict(self.options), **changes}
        order = [name for name in OPTIONS[self.strategy] if name in known]
        return Candidate(self.strategy, tuple((name, known[name]) for name in order))

    def schedule(self, stage: str, span: Span) -> Schedule:
        """Return the schedule item of a stage, as if it stood at `span`."""
        return Schedule(stage, None, self.strategy, self.options, span)


def named(label: str) -> Candidate:
    """Return the schedule that a build names so: `gemm_tile64x64x16_micro4x4`."""
    strategy, *parts = label.split("_")
    options: dict[str, Values] = {}
    for part in parts:
        name = part.rstrip("0123456789x")
        if name in OPTIONS[strategy]:
            options[name] = tuple(map(int, part.removeprefix(name).split("x")))
    return Candidate(strategy).having(options)


def groups(strategy: str) -> Iterator[tuple[str, ...]]:
    """Yield the options of a strategy that there are values to try of, as varied."""
    together = TOGETHER.get(strategy, ())
    yield from together
    alone = {name for group in together for name in group}
    for name, rule in OPTIONS[strategy].items():
        if name not in alone and rule.tried:
            yield (name,)


def variations(candidate: Candidate, group: tuple[str, ...]) -> Iterator[Candidate]:
    """Yield a candidate with every combination of a group's values, itself left out."""
    rules = OPTIONS[candidate.strategy]
    for values in product(*(rules[name].tried for name in group)):
        varied = candidate.having(dict(zip(group, values, strict=True)))
        if varied != candidate:
            yield varied
