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
"""Each by its name.  Nothing wraps at 32 bits but what is asked to."""

OF_ONE: Final = frozenset(("abs", "wrap_i32", "wrap_u32"))
"""Those of one operand; sums and products have two or more, all others two."""
