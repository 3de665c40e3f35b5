"""The names that a plan file declares for a kernel: each before its use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, final

from kerngen.plan.adapter import FACTS
from kerngen.plan.lines import Line
from kerngen.plan.parse import Parser, SizeSyntaxError
from kerngen.plan.size import MOST, Guard, Size
from kerngen.plan.tree import Axes

_Value = TypeVar("_Value")
_NO_FACTS: Final = frozenset[str]()


@final
@dataclass(slots=True)
class Scope:
    """The names declared so far, and parsing of texts that use them."""

    tensors: set[str] = field(default_factory=set[str])
    scalars: set[str] = field(default_factory=set[str])
    lengths: set[str] = field(default_factory=set[str])
    symbols: set[str] = field(default_factory=set[str])
    sizes: dict[str, Size] = field(default_factory=dict[str, Size])
    _awaited: dict[str, Line] = field(default_factory=dict[str, Line])

    def copy(self) -> Scope:
        """Return a copy, in which further sizes may be named."""
        return replace(self, sizes=dict(self.sizes))

    def declare(self, line: Line, known: set[str], names: Iterable[str]) -> None:
        """Add new names to one of the sets of names; refuse repeated ones."""
        for name in names:
            if name in known:
                line.refuse(f"'{name}' is declared twice")
            known.add(name)

    def size(self, line: Line, text: str) -> Size:
        """Parse a size over dims and scalars."""
        return self._parse(line, text, Parser.whole_size, _NO_FACTS)

    def guard(self, line: Line, text: str, facts: frozenset[str] = FACTS) -> Guard:
        """Parse a condition, which may use these facts of the adapter."""
        return self._parse(line, text, Parser.whole_guard, facts)

    def _parse(
        self,
        line: Line,
        text: str,
        read: Callable[[Parser], _Value],
        facts: frozenset[str],
    ) -> _Value:
        try:
            return read(Parser(text, self.sizes, facts | self.symbols))
        except SizeSyntaxError as error:
            line.refuse(f"'{text}': {error}")

    def axes(self, line: Line, text: str) -> Axes:
        """Parse a list of axis lengths, without its brackets."""
        return tuple(self.axis(line, each) for each in text.split(", ") if text)

    def axis(self, line: Line, text: str) -> str | int:
        """Parse the length of an axis: a number, or a dim's name.

        A dim may be declared further below: outputs come before the lengths that are
        computed for them.  `check_lengths` refuses what nothing declares.
        """
        if text.isdecimal():
            return self.count(line, text)
        if not text.isidentifier():
            line.refuse(f"'{text}' is no axis")
        if text not in self.lengths:
            self._awaited.setdefault(text, line)
        return text

    def check_lengths(self) -> None:
        """Refuse axes whose dim no line declares."""
        for name, line in self._awaited.items():
            if name not in self.lengths:
                line.refuse(f"'{name}' is no dim")

    def count(self, line: Line, text: str) -> int:
        """Parse a number that is not negative."""
        if not text.isdecimal() or int(text) > MOST:
            line.refuse(f"expected a whole number of at most 2^53, got '{text}'")
        return int(text)
