"""The rules of a diagnostic's wording, for the tests of every stage."""

from __future__ import annotations

import re

from kerngen.source.diagnostic import Diagnostic

_WRONG_ARTICLE = re.compile(r"\b([Aa] '([aeo]|[fi]\d|i[^\d])|[Aa]n '(u32|[^aeiouf']))")


def check_wording(fault: Diagnostic) -> None:
    """Check that a message is a sentence, a hint one or a question, a label neither."""
    first = fault.message[0]
    assert first.isupper() or first in "'-0123456789" or "naga" in fault.message
    assert fault.message.endswith(".")
    assert not fault.help or fault.help.endswith((".", "?"))
    assert not fault.label.endswith(".")
    assert not _WRONG_ARTICLE.search(fault.message + fault.help + fault.label)
    assert "`" not in fault.message + fault.help + fault.label
    assert "{" not in fault.message or "'" in fault.message
