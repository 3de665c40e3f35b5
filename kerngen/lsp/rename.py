"""Renaming: the edits in all files, or an error if a name can't be renamed.

The renamed program is parsed and checked before anything is changed.  Each name in it must
refer to the definition that it referred to before, and there must be no new faults: to
rename `x` to `top` is refused where a `let top` would hide it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias, final

from lsprotocol import types

from kerngen.lsp.checked import Checked
from kerngen.lsp.columns import range_of
from kerngen.lsp.names import Occurrence
from kerngen.lsp.places import occurrences
from kerngen.lsp.reading import ParsedLibrary
from kerngen.report.findings import Sources
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source, Span
from kerngen.syntax.library import Library

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@final
class RenameError(Exception):
    """Raised if a name can't be renamed; its message is the reason, as a sentence."""


def renamable(checked: Checked, offset: int) -> Occurrence | None:
    """Return the name at an offset, if it can be renamed."""
    name = checked.name_at(offset)
    return name if name is not None and name.written else None


def rename(checked: Checked, offset: int, new: str) -> types.WorkspaceEdit:
    """Return the edits that rename the name at an offset.

    Raises `RenameError`.
    """
    changes = {
        checked.uri_of(source): [
            types.TextEdit(range_of(span, checked.encoding), new) for span in spans
        ]
        for source, spans in spans_of(checked, offset, new).items()
    }
    return types.WorkspaceEdit(changes=changes)


def spans_of(checked: Checked, offset: int, new: str) -> dict[Source, list[Span]]:
    """Return the spans to rename, by file."""
    name = renamable(checked, offset)
    if name is None:
        raise RenameError("There is no name here that can be changed.")
    if not _NAME.fullmatch(new):
        raise RenameError(
            f"'{new}' can't be a name: it is made of the letters a to z, digits and '_'."
        )
    found: dict[Source, list[Span]] = {}
    for each in _together(checked, name):
        if each.written:
            found.setdefault(each.span.source, []).append(each.span)
    if new != name.span.text:
        _refuse_other_meaning(checked, found, new)
    return found


def _together(checked: Checked, name: Occurrence) -> list[Occurrence]:
    """Return the occurrences of a name, and of names that must be renamed with it.

    In `schedule a, b when n > 9 { ... }`, `n` is the dim of both kernels, so both change.
    """
    means = set(name.means)
    while True:
        found = [*occurrences(checked, means)]
        more = {meant for each in found if each.written for meant in each.means}
        if more <= means:
            return found
        means |= more


def renamed_text(source: Source, spans: Sequence[Span], new: str) -> str:
    """Return a text with a new name at some spans."""
    parts: list[str] = []
    end = 0
    for span in sorted(spans, key=lambda each: each.start):
        parts += (source.text[end : span.start], new)
        end = span.end
    return "".join((*parts, source.text[end:]))


def _refuse_other_meaning(
    checked: Checked, found: Mapping[Source, Sequence[Span]], new: str
) -> None:
    """Raise `RenameError` if names would mean something else, or have new faults."""
    old = checked.reading
    texts = {s.name: renamed_text(s, spans, new) for s, spans in found.items()}

    def read_file(name: str) -> Source:
        source = old.library.source(name)
        text = texts.get(name)
        return source if text is None else Source(source.path, text, source.name)

    project = checked.project
    sources = Sources(Library(read_file, project.build, project.root), project.files)
    after = ParsedLibrary(sources.library, sources.compiler.checker.programs)
    moved = _Moves(found, new)
    for file in dict.fromkeys((checked.name, *texts, *project.build)):
        was = [moved.meaning(each) for each in old.names(file)]
        now = [_meaning(each) for each in after.names(file)]
        for (at, means), other in zip_longest(was, now, fillvalue=_NOTHING):
            if (at, means) != other:
                source = sources.library.source(file)
                line = source.position(max(at, other[0]))[0]
                raise RenameError(
                    f"With the name '{new}', line {line} of '{source.path}' would have "
                    "another meaning."
                )
    for file in texts:
        _refuse_faults(checked.sources, sources, file)


def _refuse_faults(before: Sources, after: Sources, file: str) -> None:
    """Raise `RenameError` if a file that was right would not be."""
    try:
        after.compiler.check(file)
    except CompileError as error:
        try:
            before.compiler.check(file)
        except CompileError:
            return
        fault = error.diagnostics[0]
        raise RenameError(f"That would be a fault: {fault.message}") from None


_Meaning: TypeAlias = tuple[int, tuple[tuple[str, int], ...]]
"""The offset of a name in its file, and the file and offset of each of its definitions."""


_NOTHING: Final[_Meaning] = (0, ())
"""In place of a name that one of two texts lacks."""


def _meaning(each: Occurrence) -> _Meaning:
    places = ((d.span.source.name, d.span.start) for d in each.means)
    return each.span.start, tuple(sorted(places))


@final
class _Moves:
    """The offsets of characters after a renaming, by those before it."""

    def __init__(self, found: Mapping[Source, Sequence[Span]], new: str) -> None:
        self._starts = {s.name: sorted(e.start for e in f) for s, f in found.items()}
        old = next(len(span.text) for spans in found.values() for span in spans)
        self._longer = len(new) - old

    def _place(self, file: str, offset: int) -> int:
        before = bisect_left(self._starts.get(file, []), offset)
        return offset + self._longer * before

    def meaning(self, each: Occurrence) -> _Meaning:
        """Return the `_meaning` of a name afterwards, if nothing else changes."""
        start, means = _meaning(each)
        places = ((file, self._place(file, at)) for file, at in means)
        return self._place(each.span.source.name, start), tuple(sorted(places))
