"""The error for an unknown name, with the known ones."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from kerngen.runtime.errors import UnknownNameError

_MOST_NAMES = 20
"""The most known names that the error lists."""


def unknown_name(
    owner: str, kind: str, name: object, known: Collection[str]
) -> UnknownNameError:
    """Return the error for a name that `owner` does not have; it lists `known`."""
    close = get_close_matches(str(name), known, n=1)
    meant = f" Did you mean '{close[0]}'?" if close else ""
    shown = ", ".join(f"'{each}'" for each in list(known)[:_MOST_NAMES]) or "none yet"
    more = len(known) - _MOST_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return UnknownNameError(
        f"{owner}: no {kind} is called {name!r}.{meant} There are: {shown}{rest}."
    )
