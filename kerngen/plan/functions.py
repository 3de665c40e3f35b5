"""The functions that sizes may call, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kerngen.plan import hostmath
from kerngen.plan.builtins import OF_BITS, OF_NUMBERS


def _sum(*terms: int) -> int:
    return sum(terms)


def _product(*factors: int) -> int:
    return math.prod(factors)


def _float_sum(a: float, b: float) -> float:
    return a + b


def _float_difference(a: float, b: float) -> float:
    return a - b


def _float_product(a: float, b: float) -> float:
    return a * b


def _total(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function that is NaN where it is not defined, and infinite beyond f64."""

    def total(*arguments: float) -> float:
        try:
            return function(*arguments)
        except OverflowError:
            return math.inf
        except (ArithmeticError, ValueError):
            return math.nan

    return total


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _total(function) for name, function in OF_NUMBERS.items()},
    **{f"{name}_i32": partial(function, True) for name, function in OF_BITS.items()},
    **{f"{name}_u32": partial(function, False) for name, function in OF_BITS.items()},
    # exact integers
    "+": _sum,
    "*": _product,
    "/": hostmath.idiv,
    "%": hostmath.irem,
    "ceil_div": hostmath.ceil_div,
    "min": min,
    "max": max,
    "shift_left": hostmath.shift_left,
    "shift_right": hostmath.shift_right,
    "bit_and": int.__and__,
    "bit_or": int.__or__,
    "bit_xor": int.__xor__,
    "wrap_i32": hostmath.wrap_i32,
    "wrap_u32": hostmath.wrap_u32,
    # doubles
    "f32": float,
    "i32": hostmath.to_i32,
    "u32": hostmath.to_u32,
    "fadd": _float_sum,
    "fsub": _float_difference,
    "fmul": _float_product,
    "fdiv": hostmath.divide,
    "frem": hostmath.remainder,
    "abs": abs,
    "exp": hostmath.exp,
    "log": hostmath.log,
    "pow": hostmath.power,
    "sqrt": hostmath.sqrt,
}
"""Each by its name.  A sum or product takes two operands or more."""
