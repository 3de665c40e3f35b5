"""Shaders as entry points of one WGSL file: what is equal in them is declared once.

Names are changed where entry points have something else by the same name: bindings of
vectors and of single elements are `x` and `x_edge`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Final, final

from kerngen.plan.wgsl import MAIN, declarations, reached, renamed, used

_WORD: Final = re.compile(r"\w+")


@final
class FileWriter:
    """Writes a file, an entry point after another."""

    def __init__(self, codes: Sequence[str]) -> None:
        """Start a file for shaders of these codes."""
        self._taken = frozenset(chain.from_iterable(map(declarations, codes)))
        self._words = frozenset(_WORD.findall("\n".join(codes)))
        self._known: dict[tuple[str, str], str] = {}
        self._claimed = set[str]()
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        """The declarations so far; bindings and constants are lines of one paragraph."""
        return "".join(self._spaced())

    def _spaced(self) -> Iterator[str]:
        before = ""
        for text in self._texts:
            is_line = "\n" not in before + text
            yield ("\n" if is_line else "\n\n") * bool(before) + text
            before = text
        yield "\n"

    def entry_point(self, wanted: str) -> str:
        """Return a name for an entry point that no declaration has."""
        shown = wanted.replace(".", "_")
        names = (f"{shown}{'_' * number}" for number in count())
        taken = (self._taken - {MAIN}) | self._claimed
        name = next(name for name in names if name not in taken)
        self._claimed.add(name)
        return name

    def add(self, code: str, entry: str, comment: str) -> dict[str, str]:
        """Add what a shader uses, and its entry point under a comment.

        Returns the names that all that has in the file.
        """
        found = declarations(code)
        shown: dict[str, str] = {}
        kept = reached(found, MAIN) - {MAIN}
        for name in (name for name in found if name in kept):
            self._place(found, name, entry, shown)
        names = {name: shown[name] for name in used(found[MAIN]) & shown.keys()}
        self._texts.append(
            comment + renamed(found[MAIN], {**names, MAIN: entry}).strip()
        )
        return shown

    def _place(
        self, found: dict[str, str], name: str, entry: str, shown: dict[str, str]
    ) -> None:
        """Add a declaration after those that it uses, unless an equal one is there."""
        if name in shown:
            return
        others = (used(found[name]) & found.keys()) - {name}
        for other in sorted(others):
            self._place(found, other, entry, shown)
        text = renamed(found[name].strip(), {other: shown[other] for other in others})
        if (name, text) not in self._known:
            self._known[name, text] = self._claim(name, entry)
            self._texts.append(renamed(text, {name: self._known[name, text]}))
        shown[name] = self._known[name, text]

    def _claim(self, name: str, entry: str) -> str:
        """Return the name, or one that no entry point has for something else."""
        shown = name
        numbers = count()
        while shown in self._claimed or (shown != name and shown in self._words):
            shown = f"{name}_{entry}{'_' * next(numbers)}"
        self._claimed.add(shown)
        return shown
