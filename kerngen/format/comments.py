"""The positions of comments among the tokens.

A gap is the space between two tokens, with the comments in it.  Its number is that of the
token before it, and -1 before the first token:

    gap -1 | y | gap 0 | = | gap 1 | 0.0 | gap 2 | ; | gap 3
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import final

from lark import Token

from kerngen.format.document import Document, Group, Line, Text, walk
from kerngen.syntax.concrete import is_last_comma

_FORWARD = frozenset({",", ";", "{", "(", "["})
"""A comment on the line above one of these goes after it."""


@final
@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: `trailing` if code is before it on its line, `blank` below an empty line."""

    text: str
    trailing: bool
    blank: bool


@final
@dataclass(frozen=True, slots=True)
class TokenGap:
    """The space between two tokens; `blank` if an empty line is before the second."""

    comments: tuple[Comment, ...] = ()
    blank: bool = False


def tidy(text: str) -> str:
    """Return a comment with a blank after its mark, and none at its end.

    A row of slashes is left as it is.
    """
    match = re.match(r"//+!?", text)
    mark = match[0] if match else ""
    rest = text.rstrip()[len(mark) :]
    spaced = rest == "" or rest[0] in " \t" or len(mark) > 3
    return mark + ("" if spaced else " ") + rest


def split_comments(
    text: str, lexemes: tuple[Token, ...]
) -> tuple[tuple[Token, ...], dict[int, TokenGap]]:
    """Return a file's tokens without trailing commas, and the gaps between them.

    A trailing comma is not among the tokens: the formatter adds or removes it.
    """
    tokens: list[Token] = []
    gaps: dict[int, TokenGap] = {}
    comments: list[Comment] = []
    for number, lexeme in enumerate(lexemes):
        before = lexemes[number - 1].end_pos or 0 if number else 0
        breaks = text[before : lexeme.start_pos].count("\n")
        if lexeme.type == "COMMENT":
            trailing = number > 0 and not breaks
            comments.append(Comment(tidy(lexeme), trailing, breaks > 1))
        elif not is_last_comma(lexeme, _next_token(lexemes, number)):
            gaps[len(tokens) - 1] = TokenGap(tuple(comments), breaks > 1)
            tokens.append(lexeme)
            comments = []
    gaps[len(tokens) - 1] = TokenGap(tuple(comments), False)
    return tuple(tokens), gaps


def _next_token(lexemes: tuple[Token, ...], number: int) -> Token:
    rest = map(lexemes.__getitem__, range(number + 1, len(lexemes)))
    return next(
        (lexeme for lexeme in rest if lexeme.type != "COMMENT"), lexemes[number]
    )


@final
class Gaps:
    """The gaps of a document: the line break in each, and the groups around it."""

    def __init__(self, document: Document) -> None:
        self.tokens: list[str] = []
        self.line: dict[int, Line] = {}
        self.number: dict[Line, int] = {}
        self.around: dict[int, tuple[Group, ...]] = {}
        self._first: dict[Group, int] = {}
        self._breaking: set[Group] = set()
        for node, around in walk(document):
            match node:
                case Line():
                    self._add(node, around)
                case Text(token=True):
                    for group in around:
                        self._first.setdefault(group, len(self.tokens))
                    self.tokens.append(node.text)
                case _:
                    pass

    def _add(self, line: Line, around: tuple[Group, ...]) -> None:
        gap = len(self.tokens) - 1
        assert gap not in self.line, "there is one line at most between two tokens"
        self.line[gap] = line
        self.number[line] = gap
        self.around[gap] = around
        self._breaking.update(around if line.hard else ())

    def place(self, source: Mapping[int, TokenGap]) -> dict[int, TokenGap]:
        """Return the gaps with each comment moved to a gap where the line may break.

        A line must end after a comment, so a gap without a possible line break can't have
        one.  Comments keep their order.
        """
        placed = {gap: TokenGap((), found.blank) for gap, found in source.items()}
        comments = [(gap, c) for gap in sorted(source) for c in source[gap].comments]
        gaps = accumulate((self._place(*each, source) for each in comments), max)
        for gap, (_, comment) in zip(gaps, comments, strict=True):
            here = placed[gap]
            placed[gap] = TokenGap((*here.comments, comment), here.blank)
        return placed

    def _place(self, gap: int, comment: Comment, source: Mapping[int, TokenGap]) -> int:
        if gap in self.line or gap < 0:
            return gap
        if comment.trailing:
            return gap - 1 if self._ends_before(gap) else self._after(gap, source)
        if self.tokens[gap + 1] in _FORWARD and gap + 1 in self.line:
            return gap + 1
        return next((g for g in range(gap, -1, -1) if g in self.line), -1)

    def _ends_before(self, gap: int) -> bool:
        """Whether a comment after an operator or a branch may be before its sign."""
        # `a +  // why` becomes a comment behind `a`, and the line breaks before the `+`.
        before = self.line.get(gap - 1)
        in_branch = self.tokens[gap] == "}"
        return before is not None and (before.operator or in_branch)

    def _after(self, gap: int, source: Mapping[int, TokenGap]) -> int:
        """Return the next gap with a line, outside of groups that may stay on one line."""
        inside = range(gap + 1, len(self.tokens))
        return next(g for g in inside if g in self.line and self._open(g, gap, source))

    def _open(self, gap: int, before: int, source: Mapping[int, TokenGap]) -> bool:
        """Whether a comment from `before` may be in a gap with a line."""
        if source[gap].comments or not self.around[gap]:
            return True
        owner = self.around[gap][-1]
        return owner in self._breaking or self._first[owner] <= before
