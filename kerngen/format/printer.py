"""Print documents: decide which groups break, and where comments go."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from itertools import pairwise
from typing import TypeAlias, assert_never, final

from kerngen.format.comments import Comment, Gaps, TokenGap
from kerngen.format.document import (
    Document,
    Group,
    Indent,
    LastComma,
    Line,
    Spacing,
    Text,
    children,
    groups,
)

WIDTH = 88
STEP = 4


@final
class _Mode(Enum):
    """How the lines of a group are printed."""

    FLAT = auto()
    """All on one line."""
    BREAK = auto()
    """Each of the group's own lines is broken."""
    TAIL = auto()
    """Flat, except the tail, which breaks."""
    OPEN = auto()
    """As BREAK, for measuring alone: any line inside may break."""


_Todo: TypeAlias = tuple[int, _Mode, Document]
"""A part that is left to print: its indentation in columns, its mode, and the part."""


def print_document(
    document: Document, gaps: Gaps, placed: Mapping[int, TokenGap]
) -> str:
    """Return the text of a document, with the comments of its gaps."""
    return _Printer(document, gaps, placed).text()


@final
class _Printer:
    """Prints one document."""

    def __init__(
        self, document: Document, gaps: Gaps, placed: Mapping[int, TokenGap]
    ) -> None:
        self._numbers = gaps.number
        self._placed = placed
        self._broken, self._stiff = _breaking(gaps, placed)
        self._tails = frozenset(group.tail for group in groups(document))
        self._lines: list[str] = []
        self._line = ""
        self._todo: list[_Todo] = [(0, _Mode.BREAK, document)]

    def text(self) -> str:
        """Return the text of the document, which it prints part by part."""
        self._comments(self._placed[-1].comments, Spacing.NONE_FIRST, 0)
        if self._lines and self._placed[-1].blank:
            self._lines.append("")
        while self._todo:
            indent, mode, node = self._todo.pop()
            match node:
                case Text(text=text):
                    self._line += text
                case LastComma():
                    self._line += "," if mode is _Mode.BREAK else ""
                case Line():
                    if mode is _Mode.BREAK:
                        self._break(node, indent)
                    else:
                        self._line += node.flat
                case Indent(content=content):
                    # A tail belongs to a line that isn't indented.
                    step = STEP if mode is _Mode.BREAK else 0
                    self._todo.append((indent + step, mode, content))
                case Group(content=content):
                    self._todo.append((indent, self._mode(node, mode, indent), content))
                case tuple():
                    self._todo.extend((indent, mode, part) for part in reversed(node))
                case _:
                    assert_never(node)
        return "".join(f"{line}\n" for line in self._lines)

    def _mode(self, group: Group, around: _Mode, indent: int) -> _Mode:
        """Choose how a group is printed inside of one that is printed in the mode `around`.

        In this order: flat; own lines broken, if the part after them then fits on a line;
        the tail broken alone; own lines broken.
        """
        flat_around = around is _Mode.TAIL and group not in self._tails
        if around is _Mode.FLAT or flat_around:
            return _Mode.FLAT
        room = WIDTH - len(self._line)
        if group not in self._broken and self._fits(room, _Mode.FLAT, group.content):
            return _Mode.FLAT
        if group.tail is None or group in self._stiff:
            return _Mode.BREAK
        if group.alone and group.tail not in self._broken:
            below = WIDTH - indent - STEP
            if self._fits(below, _Mode.FLAT, group.alone):
                return _Mode.BREAK
        tail_fits = self._fits(room, _Mode.TAIL, group.content)
        return _Mode.TAIL if tail_fits else _Mode.BREAK

    def _fits(self, room: int, mode: _Mode, document: Document) -> bool:
        """Whether a document, and all after it up to a line break, has room."""
        # First the document, then the parts that are left to print after it, in their modes.
        rest = len(self._todo)
        todo: list[tuple[_Mode, Document]] = [(mode, document)]
        while room >= 0:
            if not todo:
                if not rest:
                    return True
                rest -= 1
                todo.append(self._todo[rest][1:])
            inside, node = todo.pop()
            match node:
                case Text(text=text):
                    room -= len(text)
                case Line(flat=flat):
                    if inside in {_Mode.BREAK, _Mode.OPEN}:
                        return True
                    room -= len(flat)
                case Group(content=content):
                    todo.append((self._measured(node, inside), content))
                case _:
                    todo.extend((inside, part) for part in reversed(children(node)))
        return False

    def _measured(self, group: Group, around: _Mode) -> _Mode:
        """Return the mode in which `_fits` measures a group: flat if it need not break."""
        match around:
            case _Mode.FLAT | _Mode.OPEN:
                return around
            case _Mode.BREAK:
                # A value may go to a line of its own, so the group before it need not break.
                breaks = group in self._broken or group.alone is not None
                return _Mode.BREAK if breaks else _Mode.FLAT
            case _Mode.TAIL:
                if group not in self._tails:
                    return _Mode.FLAT
                own = group.tail is None or group in self._stiff
                return _Mode.OPEN if own else _Mode.TAIL

    def _break(self, line: Line, indent: int) -> None:
        """End the line: a trailing comment stays on it, others get lines of their own."""
        gap = self._placed[self._numbers[line]]
        comments = gap.comments
        if comments and comments[0].trailing:
            self._line += f" {comments[0].text}"
            comments = comments[1:]
        self._lines.append(self._line)
        self._comments(comments, line.blank, indent + STEP * line.closing)
        if _has_blank(line.blank, gap.blank, first=not comments, last=True):
            self._lines.append("")
        self._line = " " * indent

    def _comments(
        self, comments: tuple[Comment, ...], blank: Spacing, indent: int
    ) -> None:
        for number, comment in enumerate(comments):
            if _has_blank(blank, comment.blank, first=number == 0, last=False):
                self._lines.append("")
            self._lines.append(" " * indent + comment.text)


def _has_blank(kind: Spacing, in_source: bool, *, first: bool, last: bool) -> bool:
    """Whether an empty line comes before a comment, or before the token after them.

    `first`: no comment is before it; `last`: it is the token.
    """
    match kind:
        case Spacing.BETWEEN:
            return in_source
        case Spacing.BEFORE:
            return in_source or first
        case Spacing.NONE_FIRST:
            return in_source and not first
        case Spacing.NONE_LAST:
            return in_source and not last
        case Spacing.NONE:
            return False


def _breaking(
    gaps: Gaps, placed: Mapping[int, TokenGap]
) -> tuple[frozenset[Group], frozenset[Group]]:
    """Return the groups that must break, and those of them that must outside of their tail.

    A hard line or a comment forces the groups around it to break.
    """
    broken: set[Group] = set()
    stiff: set[Group] = set()
    for number, line in gaps.line.items():
        if line.hard or placed[number].comments:
            around = gaps.around[number]
            broken.update(around)
            stiff.update(around[-1:])
            for outer, inner in pairwise(around):
                stiff.update(() if inner is outer.tail else (outer,))
    return frozenset(broken), frozenset(stiff)
