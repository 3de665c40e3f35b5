"""Caches: named, counted and bounded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar, final

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Counted(Protocol):
    """Something that finds what it made before, or makes it anew, and counts both."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def hits(self) -> int:
        """How often it found."""
        ...

    @property
    def misses(self) -> int:
        """How often it did not."""
        ...


@final
class Cache(Generic[K, V]):
    """A dictionary that counts and that forgets its oldest entries when full.

    Caches may have their entries in common; each counts for itself.
    """

    __slots__ = ("_capacity", "_entries", "hits", "misses", "name")

    def __init__(
        self, name: str, capacity: int, entries: dict[K, V] | None = None
    ) -> None:
        """Start empty, or with entries that it then shares."""
        self.name = name
        self.hits = 0
        self.misses = 0
        self._capacity = capacity
        self._entries: dict[K, V] = {} if entries is None else entries

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is known."""
        value = self._entries.get(key)
        if value is None:
            self.misses += 1
        else:
            self.hits += 1
        return value

    def put(self, key: K, value: V) -> K | None:
        """Remember a value; return the key that had to go for it, if one had to."""
        evicted: K | None = None
        if key not in self._entries and len(self._entries) >= self._capacity:
            evicted = next(iter(self._entries))
            del self._entries[evicted]
        self._entries[key] = value
        return evicted

    def discard(self, key: K) -> None:
        """Forget a key."""
        self._entries.pop(key, None)

    def entries(self) -> list[tuple[K, V]]:
        """Return every key with its value, uncounted."""
        return list(self._entries.items())

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._entries)

    def __repr__(self) -> str:
        """Say how well the cache does."""
        return (
            f"Cache({self.name}: {len(self)} entries, {self.hits} hits, "
            f"{self.misses} misses)"
        )
