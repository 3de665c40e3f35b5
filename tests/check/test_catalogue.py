"""What each class of diagnostics says of itself."""

from __future__ import annotations

import pytest

from kerngen.catalogue import DIAGNOSTICS
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.worded import Worded

WITHOUT_HINT = {
    "MissingSemicolon": "its label says where to write it",
    "UnreadableFile": "the system's own words say what to do",
}
"""Classes that tell nobody what to do, and why not."""


def has_hint(kind: type[Diagnostic]) -> bool:
    if issubclass(kind, Worded):
        return bool(kind.advice)
    return kind.hint is not Diagnostic.hint


@pytest.mark.parametrize("kind", DIAGNOSTICS, ids=lambda kind: kind.__name__)
def test_each_class_has_a_rule_and_a_hint(kind: type[Diagnostic]) -> None:
    assert kind.rule.endswith(".")
    assert "\n" not in kind.rule
    assert has_hint(kind) is (kind.__name__ not in WITHOUT_HINT)
