"""The table of hints names only kinds of tokens and properties that there are."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import cast

import pytest

from kerngen.syntax.mistakes import hints
from kerngen.syntax.mistakes.patterns import CONDITIONS, Pattern
from kerngen.syntax.parser import grammar_text

TERMINALS = {
    *re.findall(r"^([A-Z_]+)(?:\.\d+)?:", grammar_text(), re.MULTILINE),
    "$END",
}
TABLES = {
    name: cast("tuple[Pattern, ...]", value)
    for name, value in vars(hints).items()
    if isinstance(value, tuple)
}
KINDS = ("found", "not_found", "takes", "takes_only", "takes_at_most")


def words(pattern: Pattern, name: str) -> set[str]:
    value: str | frozenset[str] = getattr(pattern, name)
    return {*value.split()} if isinstance(value, str) else {*value}


@pytest.mark.parametrize("name", TABLES)
def test_rows_name_what_there_is(name: str) -> None:
    rows = TABLES[name]
    assert rows
    for row in rows:
        assert row.hint
        assert set[str]().union(*(words(row, kind) for kind in KINDS)) <= TERMINALS
        assert words(row, "is_") | words(row, "is_not") <= {*CONDITIONS}
        re.compile(row.then)
        re.compile(row.here)


@pytest.mark.parametrize("name", TABLES)
def test_no_row_is_there_twice(name: str) -> None:
    found = [
        tuple(getattr(row, field.name) for field in fields(row) if field.name != "hint")
        for row in TABLES[name]
    ]
    assert len(set(found)) == len(found)
