"""Mappings by parameter names; errors for unknown names suggest similar ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, final

from kerngen.runtime.calls.unknown import unknown_name

T = TypeVar("T")


@final
class Named(Mapping[str, T]):
    """A read-only mapping; an unknown name raises UnknownNameError."""

    def __init__(self, items: Mapping[str, T]) -> None:
        """Hold these items, in their order."""
        self._items = dict(items)

    def __getitem__(self, name: str) -> T:
        """Return the value for a name."""
        try:
            return self._items[name]
        except KeyError:
            raise unknown_name("Trainer", "parameter", name, self._items) from None

    def __contains__(self, name: object) -> bool:
        """Return whether the name exists."""
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._items)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._items)

    def __repr__(self) -> str:
        """Return the items as text."""
        return f"Named({self._items!r})"
