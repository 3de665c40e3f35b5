"""Building blocks of documents: lists, braces, assignments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from kerngen.format.document import (
    Document,
    Group,
    Indent,
    LastComma,
    Line,
    Spacing,
    Text,
)

SPACE = Text(" ")


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """An expression's document, and the group at its end that may break alone.

    `opens` is set if that group is a conditional's: it may break alone after an operator,
    too, `x = a * if c {`.  Other groups, such as a call's, break alone only after a `=`.
    """

    document: Document
    tail: Group | None = None
    opens: bool = False

    @property
    def open_tail(self) -> Group | None:
        """The conditional at the expression's end, if there is one."""
        return self.tail if self.opens else None


def token(text: str) -> Text:
    """Return the document of a token."""
    return Text(text, token=True)


def bracketed(
    opening: Document, elements: Sequence[Document], closing: Document
) -> Group:
    """Return a list's document: on one line, or one element per line."""
    if not elements:
        return Group((opening, Line(closing=True), closing))
    inside = (Line(), *separated(elements, Line(" ")), LastComma())
    return Group((opening, Indent(inside), Line(closing=True), closing))


def separated(elements: Sequence[Document], line: Line) -> Iterator[Document]:
    """Yield elements with a comma and a line break between them."""
    for number, element in enumerate(elements):
        if number:
            yield token(",")
            yield Line(line.flat, line.hard, blank=line.blank)
        yield element


def parenthesized(opening: Document, content: Document, closing: Document) -> Group:
    """Return the document of a single expression in parentheses."""
    return Group((opening, Indent((Line(), content)), Line(closing=True), closing))


def block(opening: Document, lines: Sequence[Document], closing: Document) -> Group:
    """Return the document of lines in braces."""
    if not lines:
        return Group((opening, Line(closing=True), closing))
    between = [Line(hard=True, blank=Spacing.NONE_FIRST)]
    between += [Line(hard=True, blank=Spacing.BETWEEN) for _ in lines[1:]]
    inside = tuple(zip(between, lines, strict=True))
    end = Line(hard=True, closing=True, blank=Spacing.NONE_LAST)
    return Group((opening, Indent(inside), end, closing))


def braced(opening: str, content: Document, closing: str) -> Document:
    """Return `{ content }` without a group: its lines break if those around it do."""
    inside = Indent((Line(" "), content))
    return (token(opening), inside, Line(" ", closing=True), token(closing))


def condition(expr: Document) -> Group:
    """Return the document of the condition between `if` or `when` and a brace."""
    return Group((Indent((Line(" "), expr)), Line(" ", closing=True)))


def assigned(left: Document, sign: Document, value: Piece) -> Document:
    """Return the document of `left = value`."""
    content = (SPACE, sign, Indent((Line(" "), value.document)))
    return (left, Group(content, tail=value.tail, alone=value.document))
