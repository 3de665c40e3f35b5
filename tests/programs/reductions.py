"""Reductions of the interpreter: their terms, and what joins them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from . import numbers
from .memory import parts_of

At: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[[At], Any]

_REDUCE_REAL: Mapping[str, Callable[[list[Any]], Any]] = {
    "sum": numbers.total,
    "prod": numbers.product,
    "max": numbers.highest,
    "min": numbers.lowest,
}
_EMPTY: Mapping[tuple[str, str], int] = {
    ("max", "i32"): -(2**31),
    ("max", "u32"): 0,
    ("min", "i32"): 2**31 - 1,
    ("min", "u32"): 2**32 - 1,
}


def chosen(condition: Run, body: Run) -> Run:
    """Compute a term where a condition holds; elsewhere there is none."""

    def run(at: At) -> Any:
        if condition(at):
            return body(at)
        with suppress(numbers.UndecidedError):
            # What it reads must be there; its value does not matter.
            body(at)
        return None

    return run


def collect(
    at: At, names: list[str], lengths: list[int], run: Run, into: list[Any]
) -> None:
    """Compute the body at every combination of the indices, and add each term to `into`."""
    if not names:
        into.append(run(at))
        return
    for value in range(lengths[0]):
        at[names[0]] = value
        collect(at, names[1:], lengths[1:], run, into)


def joining(kind: str, type_: str) -> Callable[[list[Any]], Any]:
    """Return what joins the terms of a reduction, number by number."""
    inner = parts_of(type_)
    if inner:
        each = joining(kind, str(inner[0]))
        return lambda terms: tuple(
            each([term[n] for term in terms]) for n in range(len(inner))
        )
    if type_ == "f32":
        return _REDUCE_REAL[kind]
    return lambda terms: _reduce_integers(kind, terms, type_)


def _reduce_integers(kind: str, terms: list[int], type_: str) -> int:
    match kind:
        case "sum":
            return numbers.wrap(sum(terms), type_)
        case "prod":
            result = 1
            for term in terms:
                result = numbers.wrap(result * term, type_)
            return result
        case "max":
            return max(terms, default=_EMPTY[kind, type_])
        case _:
            return min(terms, default=_EMPTY[kind, type_])


def place_of(kind: str, terms: list[Any]) -> int:
    """Return the first place of the best term; of none, -1.

    Where rounding decides which one that is, the example says nothing.
    """
    sign = 1 if kind == "argmax" else -1
    known = [
        (place, sign * bounds[0], bounds[1])
        for place, term in enumerate(terms)
        if term is not None
        for bounds in (numbers.bounds(term),)
    ]
    best = max(known, key=lambda each: each[1], default=(-1, 0.0, 0.0))
    for place, value, error in known:
        high, low = value + error, best[1] - best[2]
        if place != best[0] and (high > low or (high == low and place < best[0])):
            raise numbers.UndecidedError("a place")
    return best[0]
