"""The document of a pretty-printer: text, and places where lines may break.

After Wadler's "A prettier printer": text, lines, and groups whose lines break together.
Nodes compare by identity, so that what is found out about one can be kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, final


@final
class Spacing(Enum):
    """Whether an empty line is wanted at a line break that is always made.

    Everywhere else the source's own empty lines are kept, as one.
    """

    BETWEEN = auto()
    """Nowhere else."""
    BEFORE = auto()
    """There is always one before what comes next, be it a comment."""
    NONE_FIRST = auto()
    """None before what comes first, be it a comment."""
    NONE_LAST = auto()
    """None after the last comment."""
    NONE = auto()
    """None at all."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Text without a line break; `token` if it is a token of the source."""

    text: str
    token: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A possible line break: `flat` is the text if the line is not broken.

    Comments before a `closing` line are indented as what it closes.  An `operator`
    follows: comments right after that may be here.
    """

    flat: str = ""
    hard: bool = False
    closing: bool = False
    operator: bool = False
    blank: Spacing = Spacing.NONE


@final
@dataclass(frozen=True, slots=True, eq=False)
class LastComma:
    """A comma after the last element of a list whose lines break."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Indent:
    """Content whose lines are indented by one more step."""

    content: Document


@final
@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Content whose own lines are all broken, or none of them.

    `tail` is a group at its end that may break alone, as in `x = a * if c {`; but its
    own lines break first where that makes `alone`, after the last one, fit on a line.
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
