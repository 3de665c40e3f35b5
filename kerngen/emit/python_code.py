"""Python expressions as text with their operator precedence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import final

from kerngen.ir.nodes import BinaryOp


@final
class Precedence(IntEnum):
    """Precedence levels of Python's operators, lowest first."""

    CONDITIONAL = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    BIT_OR = 5
    BIT_XOR = 6
    BIT_AND = 7
    SHIFT = 8
    SUM = 9
    PRODUCT = 10
    UNARY = 11
    ATOM = 12


LEVELS: dict[BinaryOp, Precedence] = {
    "or": Precedence.OR,
    "and": Precedence.AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), Precedence.COMPARISON),
    "|": Precedence.BIT_OR,
    "^": Precedence.BIT_XOR,
    "&": Precedence.BIT_AND,
    "<<": Precedence.SHIFT,
    ">>": Precedence.SHIFT,
    "+": Precedence.SUM,
    "-": Precedence.SUM,
    "*": Precedence.PRODUCT,
    "/": Precedence.PRODUCT,
    "%": Precedence.PRODUCT,
}
"""The level of each operator that Python spells as the kernel language does."""


@final
@dataclass(frozen=True, slots=True)
class Code:
    """A Python expression: its text and its precedence.

    If `weak`, its value is a Python number, which takes the type of the array that it meets.
    If `fresh`, it is a new array, which no other name can reach.
    """

    text: str
    level: Precedence = Precedence.ATOM
    weak: bool = False
    fresh: bool = False

    def at(self, level: Precedence) -> str:
        """Return the text, in parentheses if it binds less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def atom(self) -> str:
        """The text, in parentheses unless it may be followed by a suffix such as `[0]`."""
        return self.at(Precedence.ATOM)


def binary(op: BinaryOp, left: Code, right: Code, *, weak: bool = False) -> Code:
    """Return `left op right`, with parentheses where they are needed.

    The tree's shape is kept: `a - (b - c)` has its parentheses.  Comparisons don't chain:
    `(a < b) == c` has parentheses, too, as `a < b == c` means something else in Python.  An
    `and` beside an `or` is in parentheses, for the reader.
    """
    # Operators group to the left: the right side must bind tighter.
    level = LEVELS[op]
    left_level = Precedence(level + 1) if level is Precedence.COMPARISON else level
    right_level = Precedence(level + 1)
    if op == "or":
        right_level = Precedence.NOT
        left_level = Precedence.NOT if left.level is Precedence.AND else level
    text = f"{left.at(left_level)} {op} {right.at(right_level)}"
    return Code(text, level, weak=weak, fresh=not weak)


def call(function: str, arguments: Iterable[str], *, fresh: bool = True) -> Code:
    """Return a call of a function by name; `fresh` is whether its result is a new array."""
    return Code(f"{function}({', '.join(arguments)})", fresh=fresh)


def number(value: float | bool) -> Code:
    """Return a number's literal; a negative one has a unary minus's precedence."""
    # `1e+20` is `1e20` in black's format, and `inf` is no name.
    text = repr(value).replace("e+", "e").replace("inf", 'float("inf")')
    return Code(
        text, Precedence.UNARY if text.startswith("-") else Precedence.ATOM, weak=True
    )


def quoted(text: str) -> str:
    """Return `text` as a Python string literal, in double quotes as black prefers.

    A text that contains double quotes keeps the form of `repr`.
    """
    shown = repr(text)
    return shown if '"' in shown else f'"{shown[1:-1]}"'


def tuple_text(items: Iterable[str]) -> str:
    """Return a tuple display: `()`, `(a,)`, `(a, b)`."""
    listed = list(items)
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"
