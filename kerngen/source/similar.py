"""Spelling suggestions: the known name that is closest to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

LONGEST: Final = 200
"""Longer names are not compared: that takes time, and they are no typing errors."""

MOST: Final = 50
"""The most names that are compared: the first letter must match, the nearest lengths win."""


MOST_CHAINED: Final = 8
"""The most names of a chain that are shown; in a longer one, the middle is left out."""

_MOST_LISTED: Final = 12
"""The most names that are listed."""


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name most similar to an unknown one, or ""."""
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
    """Return the sentence `Did you mean ...?`, or "" without a suggestion."""
    return suggestion and f"Did you mean '{suggestion}'?"


def suggesting(sentence: str, name: str, known: Iterable[str]) -> str:
    """Return a sentence about an unknown name, with a similar known one added.

    If no known name is similar, they are listed.
    """
    names = list(dict.fromkeys(known))
    others = "" if any(f"'{each}'" in sentence for each in names) else listed(names)
    return f"{sentence} {did_you_mean(closest(name, names)) or others}".rstrip()


def listed(names: Sequence[str]) -> str:
    """Return a sentence that lists names; a long list is cut.

    >>> listed(["a", "b"])
    "There are 'a' and 'b'."
    """
    verb = "There are" if len(names) > 1 else "There is"
    return f"{verb} {enumerated(names)}." if names else ""


def chained(names: Sequence[str], verb: str) -> str:
    """Return names that follow one another, the middle of many left out.

    >>> chained(["a", "b", "a"], "uses")
    "'a' uses 'b' uses 'a'"
    """
    shown = [f"'{name}'" for name in names]
    if len(shown) > MOST_CHAINED:
        shown[MOST_CHAINED // 2 : -1] = ["..."]
    return f" {verb} ".join(shown)


def enumerated(names: Sequence[str]) -> str:
    """Return names as a list in words; a long list is cut.

    >>> enumerated(["a", "b", "c"])
    "'a', 'b' and 'c'"
    """
    shown = [f"'{name}'" for name in names[:_MOST_LISTED]]
    if rest := len(names) - len(shown):
        shown.append(f"{rest} more")
    *first, last = shown
    return " and ".join(filter(None, (", ".join(first), last)))
