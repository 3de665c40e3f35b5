"""Candidates of a search: strategies with values of their options."""

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
"""Options that are varied together: the best value of one depends on the others."""


@final
@dataclass(frozen=True, slots=True)
class TuneCandidate:
    """A strategy with options; options that are missing have the strategy's defaults."""

    strategy: str
    options: tuple[tuple[str, Values], ...] = ()

    @property
    def text(self) -> str:
        """The candidate's text in a schedule: `gemm tile(128, 64, 16) pad(1)`."""
        given = (f"{name}({', '.join(map(str, v))})" for name, v in self.options)
        return " ".join((self.strategy, *given))

    def having(self, changes: Mapping[str, Values]) -> TuneCandidate:
        """Return the candidate with some options changed."""
        known = {**dict(self.options), **changes}
        order = [name for name in OPTIONS[self.strategy] if name in known]
        return TuneCandidate(
            self.strategy, tuple((name, known[name]) for name in order)
        )

    def schedule(self, stage: str, span: Span) -> Schedule:
        """Return the candidate as a schedule for a stage."""
        return Schedule(stage, None, self.strategy, self.options, span)


def named(label: str) -> TuneCandidate:
    """Return the candidate with a label such as `gemm_tile64x64x16_micro4x4`."""
    strategy, *parts = label.split("_")
    options: dict[str, Values] = {}
    for part in parts:
        name = part.rstrip("0123456789x")
        if name in OPTIONS[strategy]:
            options[name] = tuple(map(int, part.removeprefix(name).split("x")))
    return TuneCandidate(strategy).having(options)


def groups(strategy: str) -> Iterator[tuple[str, ...]]:
    """Yield the groups of a strategy's options that are varied together."""
    together = TOGETHER.get(strategy, ())
    yield from together
    alone = {name for group in together for name in group}
    for name, rule in OPTIONS[strategy].items():
        if name not in alone and rule.tried:
            yield (name,)


def variations(
    candidate: TuneCandidate, group: tuple[str, ...]
) -> Iterator[TuneCandidate]:
    """Yield the candidate with every other combination of a group's values."""
    rules = OPTIONS[candidate.strategy]
    for values in product(*(rules[name].tried for name in group)):
        varied = candidate.having(dict(zip(group, values, strict=True)))
        if varied != candidate:
            yield varied
