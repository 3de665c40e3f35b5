"""Adjust lengths of calls until they meet what a kernel requires.

One condition after the other is met in the simplest way: a length goes down to a
multiple, or to the nearest end of what it is compared with.  That need not meet all of
them together: then these are no lengths of a call, and others are tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kerngen.plan import size as host
from kerngen.runtime.calls.kernel import Kernel

_ROUNDS: Final = 2
"""A condition may undo what met one before it."""

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_ABOVE: Final = {"<": -1, "<=": 0, "==": 0, ">": 1, ">=": 0}
"""How far from a number what compares with it so is, at least."""


def meeting(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return sizes close to these that meet the requirements, as far as possible."""
    values = dict(sizes)
    for _ in range(_ROUNDS if kernel.requires else 0):
        for each in kernel.requires:
            if not kernel.computed and not host.holds(each.condition, values):
                _meet(each.condition, values)
    return {n: max(v, 0) if n in kernel.dims else v for n, v in values.items()}


def _meet(guard: host.Guard, values: dict[str, int]) -> None:
    match guard:
        case host.Compare(
            "==",
            host.Apply("%", (host.Symbol(name), host.Literal(by))),
            host.Literal(rest),
        ):
            values[name] = values[name] // by * by + rest
        case host.Compare(op, host.Symbol(name), right) if op in _ABOVE:
            values[name] = host.evaluate(right, values) + _ABOVE[op]
        case host.Compare(op, left, host.Symbol(name)) if op in _FLIPPED:
            values[name] = host.evaluate(left, values) + _ABOVE[_FLIPPED[op]]
        case host.All(guards):
            for each in guards:
                _meet(each, values)
        case host.AnyOf((first, *_)):
            _meet(first, values)
        case _:
            return
