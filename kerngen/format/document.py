"""The document of a pretty-printer: text, and places where lines may break.

After Wadler's "A prettier printer": text, lines, and groups whose lines break together.
Nodes compare by identity, so that facts about one can be kept in dicts and sets beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, final


@final
class Spacing(Enum):
    """Where empty lines go at a line break that is always made.

    At such a break there may be comments, and then the next token.  Except as below, empty
    lines of the source are kept before each of these, several as one.
    """

    BETWEEN = auto()
    """They are kept everywhere."""
    BEFORE = auto()
    """There is always one before the first comment, or before the token if there is none."""
    NONE_FIRST = auto()
    """There is none before the first comment, or before the token if there is none."""
    NONE_LAST = auto()
    """There is none before the token, as at the end of a block."""
    NONE = auto()
    """There is none at all."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Text without a line break; `token` if it is a token of the source."""

    text: str
    token: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A possible line break.

    - `flat`: the text if the line is not broken
    - `hard`: it is always broken
    - `closing`: a closing bracket follows; comments before it are indented as the content is
    - `operator`: an operator follows; a comment right after that may be moved here
    """

    flat: str = ""
    hard: bool = False
    closing: bool = False
    operator: bool = False
    blank: Spacing = Spacing.NONE


@final
@dataclass(frozen=True, slots=True, eq=False)
class LastComma:
    """The comma after the last element of a list, printed if the list's lines break."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Indent:
    """Content whose lines are indented by one more step."""

    content: Document


@final
@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Content whose own lines are all broken, or none of them.

    `tail` is a group at its end that may break alone, while the lines before it stay flat:

        x = a * if c {
            ...

    But if `alone`, the part after the last own line, fits on a line of its own, the group's
    own lines are broken in place of the tail's.
    """

    content: Document
    tail: Group | None = None
    alone: Document | None = None


Document: TypeAlias = Text | Line | LastComma | Indent | Group | tuple["Document", ...]


def children(document: Document) -> tuple[Document, ...]:
    """Return the direct parts of a document."""
    match document:
        case tuple():
            return document
        case Indent(content=content) | Group(content=content):
            return (content,)
        case _:
            return ()


def walk(document: Document) -> Iterator[tuple[Document, tuple[Group, ...]]]:
    """Yield each text and line in order, with the groups that it is in."""
    todo: list[tuple[Document, tuple[Group, ...]]] = [(document, ())]
    while todo:
        node, around = todo.pop()
        inside = (*around, node) if isinstance(node, Group) else around
        todo.extend((child, inside) for child in reversed(children(node)))
        if isinstance(node, Text | Line):
            yield node, around


def groups(document: Document) -> Iterator[Group]:
    """Yield every group in a document."""
    todo = [document]
    while todo:
        node = todo.pop()
        todo.extend(children(node))
        if isinstance(node, Group):
            yield node
