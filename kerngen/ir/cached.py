"""A cache decorator that stores results in the object they belong to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

_KEPT = "_found_once"

_Of = TypeVar("_Of")
_More = ParamSpec("_More")
_Result = TypeVar("_Result")


def cached_on_instance(
    find: Callable[Concatenate[_Of, _More], _Result],
) -> Callable[Concatenate[_Of, _More], _Result]:
    """Cache a function's results in its first argument, the object itself.

    It is a `cached_property` for functions outside of the class.  `functools.cache` would keep every
    object for ever, and give one the result of its equal, whose docs may be others: docs
    and places are not compared.
    """

    @wraps(find)
    def ask(of: _Of, /, *more: _More.args, **named: _More.kwargs) -> _Result:
        kept = vars(of).setdefault(_KEPT, {})
        key = (find, *more, *named.items())
        if key not in kept:
            kept[key] = find(of, *more, **named)
        return cast("_Result", kept[key])

    return ask


# Expressions that compute their hash only once.
#
# An expression's hash is of its fields, and so of all the expressions below it.  Derivation
# looks expressions up again and again: without this, a fifth of its time is hashing.


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
