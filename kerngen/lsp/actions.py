"""Code actions: quick fixes for diagnostics, and all of a file's at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lsprotocol import types

from kerngen.lsp.checked import Checked
from kerngen.lsp.columns import range_of
from kerngen.lsp.editing import fixing
from kerngen.report.fixes import Fix
from kerngen.source.diagnostic import Diagnostic

FIX_ALL: Final = f"{types.CodeActionKind.SourceFixAll.value}.kerngen"
"""The kind of the action with all fixes, which editors may ask for before they save."""

KINDS: Final = (types.CodeActionKind.QuickFix, FIX_ALL)


def actions(
    checked: Checked, start: int, end: int, only: Sequence[str] | None = None
) -> list[types.CodeAction]:
    """Return the quick fixes for diagnostics between two offsets.

    `only` are the kinds that the editor asks for. With `source.fixAll` and without quick
    fixes, there is one action with the fixes of all errors.
    """
    if only is None or _asks(only, types.CodeActionKind.QuickFix.value):
        return [*_actions(checked, start, end)]
    return [*_all_at_once(checked)] if _asks(only, FIX_ALL) else []


def _asks(only: Sequence[str], kind: str) -> bool:
    """Whether a kind is among those asked for: `source` includes `source.fixAll`."""
    return any(f"{kind}.".startswith(f"{each}.") for each in only)


def _all_at_once(checked: Checked) -> Iterator[types.CodeAction]:
    edits, number = fixing(checked)
    if number:
        yield types.CodeAction(
            title=f"Fix {number} error{'s' * (number > 1)}",
            kind=FIX_ALL,
            edit=types.WorkspaceEdit(changes={checked.uri_of(checked.source): edits}),
        )


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
