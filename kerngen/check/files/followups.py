"""Faults that follow from others: names declared in skipped text, or in a file not used.

Of `let total = sum[i x[i];  y[] = total;` only the bracket is reported, and not `total` as an
unknown name.  An unknown name that a used file sees is reported with the missing `use`.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.check import faults as diag
from kerngen.check.files.checked_file import CheckedFile, ItemKind, needed_by
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.outline import matching
from kerngen.syntax.recovery import item_names, words


@final
@dataclass(frozen=True)
class _SkippedNames:
    """The names that skipped text may declare or write.

    - `any_name`: a declaration in it has no readable name, so it may be any
    - `any_target`: it may be a statement of another language that writes any tensor
    """

    names: frozenset[str] = frozenset()
    any_name: bool = False
    any_target: bool = False
    a_require: bool = False
    """Whether it has a `require`, which may have proved that reads stay inside."""

    def __or__(self, other: _SkippedNames) -> _SkippedNames:
        return _SkippedNames(
            self.names | other.names,
            self.any_name or other.any_name,
            self.any_target or other.any_target,
            self.a_require or other.a_require,
        )


_NOTHING: Final = _SkippedNames()


@final
@dataclass(frozen=True)
class Skipped:
    """The names that skipped text may declare: `items` in the file, `within` each item."""

    items: _SkippedNames
    within: Mapping[Span, _SkippedNames]
    may_hold_anything: bool
    """Whether a `use` was skipped, so that any name may be declared in another file."""

    def explains(self, fault: Diagnostic) -> bool:
        """Whether a fault may only be reported because a declaration was skipped."""
        item = _around(fault.span, tuple(self.within))
        near = self.within[item] if item else _NOTHING
        match fault:
            case (
                diag.UnknownName(text=name)
                | diag.UnknownFunction(text=name)
                | diag.UnknownType(text=name)
                | diag.UnknownKernel(text=name)
                | diag.UnknownDerivative(text=name)
                | diag.TensorAsFunction(text=name)
                | diag.GuardOfSome(text=name)
            ):
                lost = self.items | near
                return lost.any_name or name in lost.names
            case diag.NothingMatches(pattern=pattern):
                return self.items.any_name or any(matching(pattern, self.items.names))
            case diag.LeftSubscript(text=text):
                lost = self.items | near
                return lost.any_name or not lost.names.isdisjoint(words(text))
            case diag.ReadBeforeWrite(name=name) | diag.NeverWritten(text=name):
                return near.any_target or name in near.names
            case diag.NothingWritten() | diag.RangeNotFound():
                return item is not None
            case diag.DimMismatch() | diag.RangeTooLong():
                return near.a_require
            case _:
                return False


def find_skipped(program: ast.Program) -> Skipped:
    """Return the names that skipped text may declare."""
    spans = tuple(item.span for item in program.items)
    items, uses = _NOTHING, False
    within: dict[Span, _SkippedNames] = {}
    for gap in program.gaps:
        if item := _around(gap.span, spans):
            within[item] = within.get(item, _NOTHING) | _lost_statement(gap)
        else:
            items |= _lost_items(gap)
            uses = uses or gap.keyword == "use"
    return Skipped(items, within, uses)


def _lost_statement(gap: ast.Gap) -> _SkippedNames:
    """Return the names that a gap in an item may declare or write."""
    is_foreign = not (gap.keyword or gap.name or "=" in gap.rest)
    names = _names(gap) | words(gap.rest)
    return _SkippedNames(names, gap.lacks_name, is_foreign, gap.keyword == "require")


def _lost_items(gap: ast.Gap) -> _SkippedNames:
    """Return the names of the items in a gap; if none is known, all of its words."""
    names = _names(gap) | item_names(gap.rest)
    return _SkippedNames(names or words(gap.span.text), gap.lacks_name)


def _names(gap: ast.Gap) -> frozenset[str]:
    return frozenset((gap.name,)) if gap.name else frozenset()


def _around(span: Span, items: Sequence[Span]) -> Span | None:
    """Return the item that a span lies in, of several in the order of the text."""
    at = bisect_right(items, span.start, key=lambda item: item.start) - 1
    return items[at] if at >= 0 and items[at].covers(span) else None


# Names of files that are not used

_IS_KERNEL: Final = (
    "'{name}' is a kernel, and only Python calls those; what kernels share is a 'fn'."
)


def suggest_use(
    file: CheckedFile, kernels: Collection[str]
) -> Callable[[Diagnostic], Diagnostic]:
    """Return a function that adds the missing `use` to the diagnostic of an unknown name.

    `file` is the file with the diagnostic, and `kernels` are the kernels that it sees.
    """
    # Items of all files that are linked in; of several with a name, the nearest file's counts.
    unseen: dict[tuple[ItemKind, str], CheckedFile] = {}
    for other in reversed(needed_by(file)):
        for kind, item, _ in other.items():
            unseen.setdefault((kind, item), other)

    def better(fault: Diagnostic) -> Diagnostic:
        match fault:
            case diag.UnknownFunction(text=item) if item in kernels:
                return replace(fault, remedy=_IS_KERNEL.format(name=item))
            case diag.UnknownFunction(text=item):
                home = unseen.get(("function", item))
            case diag.UnknownName(text=item):
                home = unseen.get(("constant", item))
            case diag.UnknownKernel(text=item) | diag.NothingMatches(pattern=item):
                named = (name for kind, name in unseen if kind == "kernel")
                home = unseen.get(("kernel", next(matching(item, named), "")))
            case diag.UnknownType(text=item):
                home = unseen.get(("struct", item))
            case _:
                return fault
        if home is None:
            return fault
        path = posixpath.relpath(home.name, posixpath.dirname(file.name) or ".")
        where = f"It is in '{path}': add 'use \"{path}\";'."
        return replace(fault, remedy=where)

    return better
