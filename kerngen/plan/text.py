"""Sizes and guards as text: `m * min(max(ceil_div(n, 4096), 1), 1024)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from kerngen.plan.size import (
    All,
    Apply,
    Compare,
    Guard,
    Literal,
    Select,
    Size,
    Symbol,
    Truth,
)

_INFIX: Final = {"+": 1, "*": 2, "%": 2}
"""How tightly operators bind; functions and names bind tightest."""
_ATOM: Final = 3


def _as_it_is(name: str) -> str:
    return name


@final
@dataclass(frozen=True, slots=True)
class TextPrinter:
    """Prints in one notation: how names are spelled, and functions with other names."""

    symbol: Callable[[str], str] = _as_it_is
    functions: Mapping[str, str] = field(default_factory=dict[str, str])

    def size(self, size: Size) -> str:
        """Return the text of a size."""
        return self._size(size, 0)

    def guard(self, guard: Guard) -> str:
        """Return the text of a condition; nothing if it always holds."""
        match guard:
            case Truth(value):
                return "" if value else "false"
            case Compare(op, left, right):
                return f"{self.size(left)} {op} {self.size(right)}"
            case All(guards):
                return " and ".join(map(self.guard, guards))

    def _size(self, size: Size, level: int) -> str:
        """Return a text that binds at least as tightly as a level."""
        match size:
            case Literal(value):
                return str(value)
            case Symbol(name):
                return self.symbol(name)
            case Apply(function, operands) if function in _INFIX:
                own = _INFIX[function]
                first, *others = operands
                texts = [self._size(first, own)]
                texts += (self._size(each, own + 1) for each in others)
                text = f" {function} ".join(texts)
                return text if own >= level else f"({text})"
            case Apply(function, operands):
                arguments = ", ".join(map(self.size, operands))
                return f"{self.functions.get(function, function)}({arguments})"
            case Select(condition, then, otherwise):
                text = f"{self._size(then, 1)} if {self.guard(condition)}"
                return f"({text} else {self._size(otherwise, 1)})"


PLAIN: Final = TextPrinter()
"""Prints names as they are."""


def to_text(size: Size) -> str:
    """Return the text of a size, over the names of dims and scalars."""
    return PLAIN.size(size)


def guard_text(guard: Guard) -> str:
    """Return the text of a condition; nothing if it always holds."""
    return PLAIN.guard(guard)
