"""Code actions: quick fixes for diagnostics."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from kerngen.lsp.checked import Checked
from kerngen.lsp.columns import range_of
from kerngen.report.fixes import Fix
from kerngen.source.diagnostic import Diagnostic


def actions(checked: Checked, start: int, end: int) -> list[types.CodeAction]:
    """Return the quick fixes for diagnostics between two offsets."""
    return [*_actions(checked, start, end)]


def _actions(checked: Checked, start: int, end: int) -> Iterator[types.CodeAction]:
    for found, _, shown in checked.shown:
        if not isinstance(found, Diagnostic) or found.span.source != checked.source:
            continue
        if found.span.start > end or found.span.end < start:
            continue
        fix = checked.fix_of(found)
        if fix is not None:
            yield types.CodeAction(
                title=fix.title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[shown],
                is_preferred=True,
                edit=types.WorkspaceEdit(changes=_changes(checked, fix)),
            )


def _changes(checked: Checked, fix: Fix) -> dict[str, list[types.TextEdit]]:
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in fix.edits:
        place = range_of(edit.span, checked.encoding)
        uri = checked.uri_of(edit.span.source)
        changes.setdefault(uri, []).append(types.TextEdit(place, edit.text))
    return changes
