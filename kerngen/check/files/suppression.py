"""Suppression of follow-up faults: what a part with a syntax error may declare is not missed.

Of `let total = sum[i x[i];  y[] = total;` only the bracket is a fault, not `total`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from kerngen.check.faults.gradients import UnknownDerivative
from kerngen.check.faults.indices import RangeNotFound
from kerngen.check.faults.names import (
    TensorAsFunction,
    UnknownFunction,
    UnknownName,
    UnknownType,
)
from kerngen.check.faults.schedules import GuardOfSome, NothingMatches, UnknownKernel
from kerngen.check.faults.statements import (
    NeverWritten,
    NothingWritten,
    ReadBeforeWrite,
)
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.patterns import matching
from kerngen.syntax.recovery import item_names, words

_ASSIGNS = re.compile(r"\s*[A-Za-z_][^=]*=")

_NO_TARGET = "="
"""A word for any name: the gap has no assignment."""


_LACKS_NAME = re.compile(
    r"\b(?:let|host|const|struct|fn|kernel)\b(?:\s*[^\s\w]|\s+(?:let|host|fn|kernel)\b)"
)
_NAMELESS = "let"
"""A word for any name: the gap lacks one."""


@final
@dataclass(frozen=True)
class Unread:
    """The words of what was passed over: of whole items, and within each item left."""

    items: frozenset[str]
    within: Mapping[Span, frozenset[str]]

    @property
    def may_hold_anything(self) -> bool:
        """Whether names of other files are missing, so that nothing is known."""
        return "use" in self.items

    def explains(self, fault: Diagnostic) -> bool:
        """Whether a fault may only be due to what was passed over."""
        near = self._near(fault.span)
        match fault:
            case (
                UnknownName(name=name)
                | UnknownFunction(name=name)
                | UnknownType(name=name)
                | UnknownKernel(name=name)
                | UnknownDerivative(name=name)
                | TensorAsFunction(name=name)
                | GuardOfSome(name=name)
            ):
                return bool({name, _NAMELESS} & (self.items | near))
            case NothingMatches(pattern=pattern):
                return any(matching(pattern, self.items)) or _NAMELESS in self.items
            case ReadBeforeWrite(name=name):
                return name in near or "return" in near
            case NeverWritten(name=name):
                return bool(near & {name, "return", _NO_TARGET})
            case NothingWritten() | RangeNotFound():
                return bool(near)
            case _:
                return False

    def _near(self, span: Span) -> frozenset[str]:
        item = _around(span, tuple(self.within))
        return self.within[item] if item else frozenset()


def find_unread(program: ast.Program) -> Unread:
    """Return the names that skipped text may declare."""
    items: set[str] = set()
    within: dict[Span, set[str]] = {}
    spans = tuple(item.span for item in program.items)
    for gap in program.gaps:
        found = words(gap.text)
        # What assigns to nothing that can be read may be meant to write anything.
        found |= set[str]() if _ASSIGNS.match(gap.text) else {_NO_TARGET}
        nameless = {_NAMELESS} if _LACKS_NAME.search(gap.text) else set[str]()
        found = found - {_NAMELESS} | nameless
        if item := _around(gap, spans):
            within.setdefault(item, set()).update(found)
        else:
            items |= item_names(gap.text) - {_NAMELESS} | nameless
    near = {item: frozenset(found) for item, found in within.items()}
    return Unread(frozenset(items), near)


def _around(span: Span, items: Sequence[Span]) -> Span | None:
    """Return the item that a span lies in, of several in the order of the text."""
    at = bisect_right(items, span.start, key=lambda item: item.start) - 1
    return items[at] if at >= 0 and items[at].covers(span) else None
