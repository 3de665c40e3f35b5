"""Caches: named, counted and bounded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar, final

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Counted(Protocol):
    """A cache or pool that counts how often it found an entry, and how often not."""

    @property
    def name(self) -> str:
        """The name by which users see the cache."""
        ...

    @property
    def hits(self) -> int:
        """How many lookups found an entry."""
        ...

    @property
    def misses(self) -> int:
        """How many lookups found no entry."""
        ...


@final
class Cache(Generic[K, V]):
    """A dictionary that counts lookups, and drops its oldest entry to make room when full.

    The oldest is the one that was added first, as dictionaries keep that order: a lookup
    does not make an entry younger.  Several caches may share their entries; each counts its
    own hits and misses.
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
        """Return the value of a key, or None; counts a hit or a miss."""
        value = self._entries.get(key)
        if value is None:
            self.misses += 1
        else:
            self.hits += 1
        return value

    def put(self, key: K, value: V) -> K | None:
        """Add a value; return the key that was dropped to make room, or None."""
        evicted: K | None = None
        if key not in self._entries and len(self._entries) >= self._capacity:
            evicted = next(iter(self._entries))
            del self._entries[evicted]
        self._entries[key] = value
        return evicted

    def discard(self, key: K) -> None:
        """Remove a key."""
        self._entries.pop(key, None)

    def entries(self) -> list[tuple[K, V]]:
        """Return every key with its value, uncounted."""
        return list(self._entries.items())

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._entries)

    def __repr__(self) -> str:
        """Return the name with the counts of hits and misses."""
        return (
            f"Cache({self.name}: {len(self)} entries, {self.hits} hits, "
            f"{self.misses} misses)"
        )
