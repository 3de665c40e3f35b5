"""Expressions that compute their hash only once.

An expression's hash is of its fields, and so of all the expressions below it.  Derivation
looks expressions up again and again: without this, a fifth of its time is hashing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar


class HashedOnce:
    """A frozen dataclass with a slot for its hash.

    The slot is no field, so a copy in another process, where strings have other hashes,
    computes its own.
    """

    __slots__ = ("kept_hash",)
    kept_hash: int


_Node = TypeVar("_Node", bound=type[HashedOnce])


def hashed_once(node: _Node) -> _Node:
    """Make instances of a class compute their hash once; a decorator."""
    of_fields: Callable[[HashedOnce], int] = vars(node)["__hash__"]

    def kept(self: HashedOnce) -> int:
        try:
            return self.kept_hash
        except AttributeError:
            value = of_fields(self)
            object.__setattr__(self, "kept_hash", value)
            return value

    type.__setattr__(node, "__hash__", kept)
    return node
