"""Spelling suggestions: the known name that is closest to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

LONGEST: Final = 200
"""Longer names are not compared: that takes time, and they are no slips of the pen."""

MOST: Final = 50
"""Of more names, only so many are compared: those that begin alike, and are as long."""


_MOST_LISTED: Final = 12
"""Of more names, so many are listed."""


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like one that is not, or nothing."""
    if len(name) > LONGEST:
        return ""
    names = [other for other in known if len(other) <= LONGEST]
    if len(names) > MOST:
        names = [other for other in names if other[:1].lower() == name[:1].lower()]
        names = sorted(names, key=lambda other: abs(len(other) - len(name)))[:MOST]
    alike = [other for other in names if other.lower() == name.lower()]
    # One letter is no misspelling of a longer name: 'j' is not 'j1'.
    like = get_close_matches(name, names, n=1, cutoff=0.6) if len(name) > 1 else []
    matches = alike or like
    return matches[0] if matches else ""


def did_you_mean(suggestion: str) -> str:
    """Return the sentence that offers a name, if there is one."""
    return suggestion and f"Did you mean '{suggestion}'?"


def suggesting(sentence: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence about a name that is not known, with the one that is like it.

    Where none is, it is followed by those there are.
    """
    names = list(dict.fromkeys(known))
    others = "" if any(f"'{each}'" in sentence for each in names) else listed(names)
    return f"{sentence} {did_you_mean(closest(name, names)) or others}".rstrip()


def listed(names: Sequence[str]) -> str:
    """
    Return a sentence that lists names, of many only the first.

    >>> listed(["a", "b"])
    "There are 'a' and 'b'."
    """
    verb = "There are" if len(names) > 1 else "There is"
    return f"{verb} {enumerated(names)}." if names else ""


def enumerated(names: Sequence[str]) -> str:
    """
    Return names as a part of a sentence, of many only the first.

    >>> enumerated(["a", "b", "c"])
    "'a', 'b' and 'c'"
    """
    shown = [f"'{name}'" for name in names[:_MOST_LISTED]]
    if rest := len(names) - len(shown):
        shown.append(f"{rest} more")
    *first, last = shown
    return " and ".join(filter(None, (", ".join(first), last)))
