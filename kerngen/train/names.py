"""Mappings by the names of parameters, whose errors name the nearest ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, final

from kerngen.runtime.calls.unknown import unknown_name

T = TypeVar("T")


@final
class Named(Mapping[str, T]):
    """A mapping that can't be changed; an unknown name raises UnknownNameError."""

    def __init__(self, items: Mapping[str, T]) -> None:
        """Hold these items, in their order."""
        self._items = dict(items)

    def __getitem__(self, name: str) -> T:
        """Return the item of a name."""
        try:
            return self._items[name]
        except KeyError:
            raise unknown_name("Trainer", "parameter", name, self._items) from None

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a name."""
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._items)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._items)

    def __repr__(self) -> str:
        """Show the items."""
        return f"Named({self._items!r})"
