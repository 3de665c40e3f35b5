"""The declarations of a WGSL file, and which of them an entry point uses.

A file has several entry points, which share what they can:

    struct Uniform { ... }                          of both
    var<storage, read> x: array<vec4f>;             of `main`
    fn main() { ... x[element] ... }
    var<storage, read> x_edge: array<f32>;          of `edge`, at the same binding
    fn edge() { ... x_edge[element] ... }

`only(text, "edge")` blanks out what `main` alone uses: a driver is to compile what it runs
and no more, as naga takes 0.2 ms for each kilobyte.

No parser of WGSL is needed: the compiler's printer begins each declaration at the left
margin, and what is found is searched for the names of others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, final

MAIN: Final = "main"
"""The name of an entry point that the names of shaders leave out: `relu.map`."""

_DECLARATION: Final = re.compile(
    r"^(?:(?://|@compute)[^\n]*\n)*"
    r"(?:@group[^\n]*\) )?(?:fn|struct|const|override|var<[^>\n]*>) (\w+)[^\n]*\n"
    r"(?:(?:[ })][^\n]*)?\n)*",
    re.MULTILINE,
)
"""A declaration at the left margin, with the comments and attributes right above it.

Lines that follow belong to it if they are blank, indented, or begin with `}` or `)`.
"""

_COMMENT: Final = re.compile(r"//[^\n]*")
_STRUCT: Final = re.compile(r"^struct ", re.MULTILINE)
_MEMBER: Final = re.compile(r"\b\w+:")
"""A member of a struct, where it is declared: `gain:` does not use a declaration `gain`."""


@final
class Declarations:
    """The declarations of a WGSL text by name, in order, with the names that each uses."""

    def __init__(self, text: str) -> None:
        """Find the declarations of a text."""
        self.texts = {found[1]: found[0] for found in _DECLARATION.finditer(text)}
        self._used: dict[str, frozenset[str]] = {}

    def used(self, name: str) -> frozenset[str]:
        """Return the names of the other declarations that a declaration uses directly."""
        if name not in self._used:
            text = _COMMENT.sub("", self.texts[name])
            if _STRUCT.search(text):
                text = _MEMBER.sub("", text)
            # First the names that are in the text at all, also as part of a word: quicker
            # than to look up each of its words, a hundred times as many.
            present = (other for other in self.texts if other in text)
            self._used[name] = frozenset(
                other
                for other in present
                if _reading(other).search(text) and not _declares(text, other)
            )
        return self._used[name] - {name}

    def reached(self, entry: str) -> frozenset[str]:
        """Return the names of an entry point and of all that it uses, directly or not."""
        seen = {entry}
        left = [entry]
        while left:
            more = self.used(left.pop()) - seen
            seen |= more
            left += more
        return frozenset(seen)

    def is_entry_point(self, name: str) -> bool:
        """Whether there is a declaration of this name that is a compute entry point."""
        return "\n@compute" in f"\n{self.texts.get(name)}"


@lru_cache(maxsize=1024)
def _reading(name: str) -> re.Pattern[str]:
    """Return the pattern of a name as a whole word, but not as a member or an attribute.

    The lookbehind comes after the name: `re` finds a text with a literal beginning four
    times as fast.
    """
    return re.compile(rf"{name}\b(?<![.@\w]{name})")


def _declares(text: str, name: str) -> bool:
    """Return whether a declaration has a local, parameter or member of a name."""
    return (
        f" {name}: " in text
        or f"({name}: " in text
        or f"let {name} =" in text
        or f"var {name} =" in text
    )


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a declaration's text with names replaced, but not those of members."""
    changed = tuple(name for name, shown in names.items() if name != shown)
    if not changed:
        return text

    is_struct = _STRUCT.search(text) is not None

    def shown(found: re.Match[str]) -> str:
        is_member = is_struct and text.startswith(":", found.end())
        return found[0] if is_member else names.get(found[1], found[0])

    return _any_of(changed).sub(shown, text)


def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of several names, which skips attributes and members.

    Comments match as a whole, and stay as they are.  A pattern of any name would call a
    function for each word of a text.
    """
    listed = "|".join(names)
    return re.compile(rf"//[^\n]*|@builtin\(\w+\)|(?<![.@\w])({listed})\b")


def only(text: str, entry: str) -> str:
    """Return a file's text without the declarations that an entry point does not use.

    Their lines are blank, not gone, so that line numbers in messages are those of the file.  A
    text without the entry point is returned unchanged: the driver refuses it.
    """
    code = Declarations(text)
    if not code.is_entry_point(entry):
        return text
    kept = code.reached(entry)

    def shown(match: re.Match[str]) -> str:
        return match[0] if match[1] in kept else "\n" * match[0].count("\n")

    return text if len(kept) == len(code.texts) else _DECLARATION.sub(shown, text)


def compact(text: str) -> str:
    """Return a shader's text with runs of empty lines shortened to one."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
