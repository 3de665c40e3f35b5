"""The letters for indices in einsum's subscripts."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_letters


def letters_for(names: Iterable[str]) -> dict[str, str]:
    """Return a letter for each index: its own name, its initial, or an unused one."""
    listed = list(dict.fromkeys(names))
    letters = {name: name for name in listed if len(name) == 1 and name.isalpha()}
    for name in listed:
        if name not in letters:
            wanted = (name.strip("_").lower()[:1], *ascii_letters)
            taken = set(letters.values())
            letters[name] = next(x for x in wanted if x.isalpha() and x not in taken)
    return letters
