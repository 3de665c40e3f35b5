"""Pieces of program text that know how tightly they bind, and how they are joined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import final


class Level(IntEnum):
    """How tightly a piece's outermost operator binds, loosest first."""

    OR = 0
    AND = 1
    NOT = 2
    COMPARISON = 3
    PIPE = 4
    CARET = 5
    AMPERSAND = 6
    SHIFT = 7
    SUM = 8
    OPEN = 9
    """A product that ends in a reduction: a `*` behind it would be the reduction's."""
    PRODUCT = 10
    UNARY = 11
    ATOM = 12


@final
@dataclass(frozen=True)
class Piece:
    """An expression's text.

    `reduced` pieces are reductions, perhaps with a sign; `factors` can be the body of
    one without parentheses; `literal` ones take their type from their place.
    """

    text: str
    level: Level = Level.ATOM
    factors: bool = False
    reduced: bool = False
    literal: bool = False

    def at(self, level: Level) -> str:
        """Return the text, in parentheses if it binds less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"


_LEVELS = {
    "or": Level.OR,
    "and": Level.AND,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), Level.COMPARISON),
    "|": Level.PIPE,
    "^": Level.CARET,
    "&": Level.AMPERSAND,
    "<<": Level.SHIFT,
    ">>": Level.SHIFT,
    "+": Level.SUM,
    "-": Level.SUM,
}


def binary(op: str, left: Piece, right: Piece) -> Piece:
    """Return `left op right`; operators of one level group to the left."""
    literal = left.literal and right.literal
    if op in {"*", "/", "%"}:
        return _product(op, left, right, literal)
    level = _LEVELS[op]
    if level is Level.COMPARISON:
        return Piece(f"{left.at(Level.PIPE)} {op} {right.at(Level.PIPE)}", level)
    text = f"{left.at(level)} {op} {right.at(Level(level + 1))}"
    return Piece(text, level, literal=literal)


def _product(op: str, left: Piece, right: Piece, literal: bool) -> Piece:
    loosest = Level.PRODUCT if op == "*" else Level.OPEN
    right_text = right.text if right.reduced else right.at(Level.UNARY)
    plain = left.factors or left.level >= Level.UNARY
    return Piece(
        f"{left.at(loosest)} {op} {right_text}",
        Level.OPEN if right.reduced else Level.PRODUCT,
        factors=op == "*" and plain and not left.reduced,
        literal=literal,
    )


def unary(op: str, operand: Piece) -> Piece:
    """Return `-x`, `~x` or `not x`."""
    if op == "not":
        return Piece(f"not {operand.at(Level.NOT)}", Level.NOT)
    if operand.reduced:
        return Piece(f"{op}{operand.text}", Level.OPEN, factors=True, reduced=True)
    text = operand.at(Level.UNARY)
    return Piece(f"{op}{text}", Level.UNARY, literal=operand.literal)


def call(name: str, arguments: Iterable[Piece]) -> Piece:
    """Return `name(arguments)`."""
    return Piece(f"{name}({', '.join(a.text for a in arguments)})")


def conditional(condition: Piece, then: Piece, otherwise: Piece) -> Piece:
    """Return `if ... { ... } else ...`, with `else if` where that is possible."""
    rest = f"{{ {otherwise.text} }}"
    if otherwise.text.startswith("if ") and otherwise.level is Level.UNARY:
        rest = otherwise.text
    text = f"if {condition.text} {{ {then.text} }} else {rest}"
    literal = then.literal and otherwise.literal
    return Piece(text, Level.UNARY, literal=literal)


def reduction(
    kind: str, binders: Iterable[str], body: Piece, condition: str = ""
) -> Piece:
    """Return `kind[binders] body`, or `kind[binders when condition] body`."""
    bare = body.level >= Level.UNARY or body.factors or body.reduced
    inner = body.text if bare else f"({body.text})"
    when = f" when {condition}" if condition else ""
    text = f"{kind}[{', '.join(binders)}{when}] {inner}"
    return Piece(text, Level.OPEN, factors=True, reduced=True)


def element(tensor: str, subscripts: Iterable[str]) -> Piece:
    """Return `tensor[subscripts]`, or the bare name of a tensor of rank 0."""
    listed = ", ".join(subscripts)
    return Piece(f"{tensor}[{listed}]" if listed else tensor)
