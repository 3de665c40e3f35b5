"""Shaders as entry points of one WGSL file: what is equal in them is declared once.

Names are changed where entry points have something else by the same name: bindings of
vectors and of single elements are `x` and `x_edge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import final

from kerngen.plan.wgsl import MAIN, Code, renamed


@final
class FileWriter:
    """Writes a WGSL file: entry point after entry point, shared declarations once."""

    def __init__(self, codes: Sequence[str]) -> None:
        """Start a file for shaders of these codes."""
        self._codes = codes
        self._parts = {code: Code(code) for code in codes}
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
        declared = chain.from_iterable(code.texts for code in self._parts.values())
        taken = ({*declared} - {MAIN}) | self._claimed
        name = next(name for name in names if name not in taken)
        self._claimed.add(name)
        return name

    def add(self, code: str, entry: str, comment: str) -> dict[str, str]:
        """Add an entry point under a comment, with the declarations that it uses.

        Returns the names that these declarations have in the file, by their
        names in `code`.
        """
        found = self._parts[code]
        kept = found.reached(MAIN) - {MAIN}
        shown: dict[str, str] = {}
        for name in (name for name in found.texts if name in kept):
            self._place(found, name, entry, shown)
        names = {name: shown[name] for name in found.used(MAIN)}
        text = renamed(found.texts[MAIN], names).strip()
        # Nothing else has its name, and a replacement is quicker than a pattern.
        self._texts.append(comment + text.replace(f"fn {MAIN}(", f"fn {entry}(", 1))
        return shown

    def _place(self, found: Code, name: str, entry: str, shown: dict[str, str]) -> None:
        """Add a declaration after those that it uses, unless an equal one is there."""
        if name in shown:
            return
        others = sorted(found.used(name))
        for other in others:
            self._place(found, other, entry, shown)
        names = {other: shown[other] for other in others}
        text = renamed(found.texts[name].strip(), names)
        if (name, text) not in self._known:
            self._known[name, text] = self._claim(name, entry)
            self._texts.append(renamed(text, {name: self._known[name, text]}))
        shown[name] = self._known[name, text]

    def _claim(self, name: str, entry: str) -> str:
        """Return the name, or one that no entry point has for something else."""
        shown = name
        numbers = count()
        while shown in self._claimed or (shown != name and self._has(shown)):
            shown = f"{name}_{entry}{'_' * next(numbers)}"
        self._claimed.add(shown)
        return shown

    def _has(self, name: str) -> bool:
        """Whether the name may occur in the code of any entry point."""
        return any(f" {name}" in code or f"({name}" in code for code in self._codes)
