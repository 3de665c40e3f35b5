"""The integer functions that sizes may call, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from kerngen.plan import hostmath


def _sum(*terms: int) -> int:
    return sum(terms)


def _product(*factors: int) -> int:
    return math.prod(factors)


def _absolute(value: int) -> int:
    return abs(value)


FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "+": _sum,
    "*": _product,
    "/": hostmath.idiv,
    "%": hostmath.irem,
    "abs": _absolute,
    "bit_and": int.__and__,
    "bit_or": int.__or__,
    "bit_xor": int.__xor__,
    "ceil_div": hostmath.ceil_div,
    "floor_div": hostmath.floor_div,
    "max": max,
    "min": min,
    "mod": hostmath.mod,
    "shift_left": hostmath.shift_left,
    "shift_right": hostmath.shift_right,
    "wrap_i32": hostmath.wrap_i32,
    "wrap_u32": hostmath.wrap_u32,
}
"""The functions by name, on exact integers: `wrap_i32` and `wrap_u32` alone wrap."""

OF_ONE: Final = frozenset(("abs", "wrap_i32", "wrap_u32"))
"""The functions of one operand; sums and products have two or more, all others two."""
