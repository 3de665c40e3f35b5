"""What each class of diagnostics says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from string import Formatter
from typing import get_args, get_type_hints

import pytest

from kerngen.catalogue import DIAGNOSTICS
from kerngen.source.diagnostic import Diagnostic

WITHOUT_HINT = {
    "MissingSemicolon": "its label says where to write it",
    "UnreadableFile": "the system's own words say what to do",
}
"""Classes that tell nobody what to do, and why not."""


@pytest.mark.parametrize("kind", DIAGNOSTICS, ids=lambda kind: kind.__name__)
def test_a_class_offers_help_and_names_its_own_fields_alone(
    kind: type[Diagnostic],
) -> None:
    assert kind.CODE
    kind.complete()
    places = {f.name: f.metadata["label"] for f in fields(kind) if f.metadata}
    offers = {*vars(kind), *kind.__annotations__} & {"HELP", "help", "remedy"}
    assert bool(offers) is (kind.__name__ not in WITHOUT_HINT)
    helps = kind.HELP
    if isinstance(helps, Mapping):
        assert {*helps} == {*get_args(get_type_hints(kind)["case"])}
        helps = tuple(helps.values())
    if isinstance(helps, str):
        helps = (helps,)
    templates = [kind.MESSAGE, kind.LABEL, *helps, *places.values()]
    named = {name for text in templates for _, name, _, _ in Formatter().parse(text)}
    known = {field.name for field in fields(kind)} | {*vars(kind)}
    assert "text" not in known
    assert {name for name in named if name} <= known | {"here", "text"}
