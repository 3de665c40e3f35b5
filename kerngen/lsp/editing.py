"""Edits of whole files: formatting, and all fixes at once."""

from __future__ import annotations

from difflib import SequenceMatcher

from lsprotocol import types

from kerngen.format.form import formatted
from kerngen.lsp.checked import Checked
from kerngen.report.fixes import fixed
from kerngen.source.diagnostic import CompileError


def formatting(checked: Checked) -> list[types.TextEdit]:
    """Return the edits that `kerngen fmt` makes; none if the text can't be parsed."""
    try:
        return _changes(checked, formatted(checked.source))
    except CompileError:
        return []


def fixing(checked: Checked) -> tuple[list[types.TextEdit], int]:
    """Return the edits that `kerngen check --fix` makes, and how many errors they fix."""
    after, number = fixed(checked.sources, checked.name)
    return _changes(checked, after), number


def _changes(checked: Checked, after: str) -> list[types.TextEdit]:
    """Return edits of the lines that change; in others the editor keeps cursors and marks."""
    before = checked.source.text
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        types.TextEdit(
            checked.columns.range(starts[i1], starts[i2]), "".join(new[j1:j2])
        )
        for tag, i1, i2, j1, j2 in changes
        if tag != "equal"
    ]
