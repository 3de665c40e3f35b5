"""A cache decorator that stores results in the object they belong to."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

_KEPT = "_found_once"
"""The attribute of an object in which results are, by function and other arguments."""

_Of = TypeVar("_Of")
_More = ParamSpec("_More")
_Result = TypeVar("_Result")


def cached_on_instance(
    find: Callable[Concatenate[_Of, _More], _Result],
) -> Callable[Concatenate[_Of, _More], _Result]:
    """Cache a function's results in its first argument, the object itself: a decorator.

    It is what `cached_property` is for methods.  `functools.cache` would keep every object
    for ever; and it would return the result of an equal object, though documentation and
    spans, which are not compared, may differ.
    """

    @wraps(find)
    def ask(of: _Of, /, *more: _More.args, **named: _More.kwargs) -> _Result:
        kept = vars(of).setdefault(_KEPT, {})
        key = (find, *more, *named.items())
        if key not in kept:
            kept[key] = find(of, *more, **named)
        return cast("_Result", kept[key])

    return ask


# Nodes that compute their hash once.
#
# The hash of an expression depends on all expressions below it.  Derivation looks
# expressions up again and again: without this, it would spend a fifth of its time on hashes.


class HashedOnce:
    """The base of frozen dataclasses that keep their hash, in a slot.

    The slot is no field, so that it is not pickled: in another process strings have other
    hashes.
    """

    __slots__ = ("kept_hash",)
    kept_hash: int


_Node = TypeVar("_Node", bound=type[HashedOnce])


def hashed_once(node: _Node) -> _Node:
    """Make the instances of a class compute their hash once: a class decorator."""
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
