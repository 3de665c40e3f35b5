"""Edits of whole files: formatting."""

from __future__ import annotations

from difflib import SequenceMatcher

from lsprotocol import types

from kerngen.format.form import formatted
from kerngen.lsp.checked import Checked
from kerngen.source.diagnostic import CompileError


def formatting(checked: Checked) -> list[types.TextEdit]:
    """Return the edits that `kerngen fmt` makes; none if the text can't be parsed.

    Unchanged lines are left out, so that the editor keeps its marks there.
    """
    before = checked.source.text
    try:
        after = formatted(checked.source)
    except CompileError:
        return []
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
