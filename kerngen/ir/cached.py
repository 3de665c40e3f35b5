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
