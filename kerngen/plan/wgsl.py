"""Declarations of a WGSL file, and those that one of its entry points uses.

A file has several entry points, which share what they can:

    struct Uniform { ... }                          of both
    var<storage, read> x: array<vec4f>;             of `main`
    fn main() { ... x[element] ... }
    var<storage, read> x_edge: array<f32>;          of `edge`, at the same binding
    fn edge() { ... x_edge[element] ... }

A driver is to compile what it runs, and no more: naga takes 0.2 ms for each kilobyte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

MAIN: Final = "main"
"""The entry point of a file that has no other name for it."""

_DECLARATION: Final = re.compile(
    r"^(?:(?://|@compute)[^\n]*\n)*"
    r"(?:@group[^\n]*\) )?(?:fn|struct|const|override|var<[^>\n]*>) (\w+)[^\n]*\n"
    r"(?:(?:[ })][^\n]*)?\n)*",
    re.MULTILINE,
)
"""A declaration at the left margin, with the comments right above it."""

_WORD: Final = re.compile(
    r"//[^\n]*|@builtin\(\w+\)|@\w+|\.[A-Za-z_]\w*|\b([A-Za-z_]\w*)"
)
"""A name that may be a declaration's: not that of a comment, attribute or member."""

_LOCAL: Final = re.compile(r"//[^\n]*|\b(?:let|var)\s+(\w+)|(\w+)\s*:")
"""What a function declares for itself, and a struct's members."""


def declarations(code: str) -> dict[str, str]:
    """Return the declarations of a shader by name, in their order."""
    return {found[1]: found[0] for found in _DECLARATION.finditer(code)}


def used(text: str) -> frozenset[str]:
    """Return the names that a declaration may take from others: none of its own."""
    own = {name for pair in _LOCAL.findall(text) for name in pair}
    return frozenset(_WORD.findall(text)) - own - {""}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a declaration's text with other names for what it uses or declares."""
    if all(name == shown for name, shown in names.items()):
        return text

    def shown(found: re.Match[str]) -> str:
        return names.get(found[1], found[0]) if found[1] else found[0]

    return _WORD.sub(shown, text)


def only(text: str, entry: str) -> str | None:
    """Return a file's text with empty lines for what an entry point does not use.

    So messages about it have the lines of the file.  None if it has no such entry point.
    """
    found = declarations(text)
    if "\n@compute" not in f"\n{found.get(entry)}":
        return None
    kept = reached(found, entry)

    def shown(match: re.Match[str]) -> str:
        return match[0] if match[1] in kept else "\n" * match[0].count("\n")

    return text if len(kept) == len(found) else _DECLARATION.sub(shown, text)


def compact(text: str) -> str:
    """Return a shader's text with one empty line where there are several, for people."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def reached(found: Mapping[str, str], entry: str) -> frozenset[str]:
    """Return the names of what an entry point uses, of what that uses, and its own."""
    seen = {entry}
    left = [entry]
    while left:
        more = (used(found[left.pop()]) & found.keys()) - seen
        seen |= more
        left += more
    return frozenset(seen)
