"""The built-in functions, as the interpreter computes them, with bounds.

They are written apart from the rows of the compiler on purpose, but for the accuracies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Protocol

from tests.language.builtin_oracles import DOMAINS, ORACLES, SIGNED_ORACLES

from . import numbers
from .numbers import Real, UndecidedError, Value


class Accuracy(Protocol):
    """What WGSL lets a function be off by: `absolute` + so many ulps of the result."""

    @property
    def ulps(self) -> float: ...
    @property
    def absolute(self) -> float: ...
    @property
    def ulps_per_argument(self) -> float: ...
    @property
    def source(self) -> str: ...


GENERIC = frozenset(
    {"abs", "sign", "min", "max", "clamp", "select", "floor_div", "mod"}
)
"""Functions whose result has the type of their arguments."""

BITS = frozenset(
    {
        *("countOneBits", "countLeadingZeros", "countTrailingZeros"),
        *("firstLeadingBit", "firstTrailingBit", "reverseBits"),
        *("extractBits", "insertBits"),
    }
)
"""Functions on integers; the type of the first argument is that of the result."""

TRUTHS = frozenset({"is_nan", "is_finite"})
"""Functions of an f32 that are true or false."""

_JUMPS = frozenset({"floor", "ceil", "round", "trunc", "step", "sign"})
_SMOOTH = frozenset({"sin", "cos"})
"""Functions that are not monotone; their slope is at most 1."""

_UNBOUNDED = (-1e6, 1e6)
_WIDER = {"mix": (_UNBOUNDED,) * 3}
"""Domains where the bound here is good for more than the table of oracles says."""

_EXACT_AT_ALL = frozenset(
    {"abs", "sign", "min", "max", "clamp", "saturate", "floor", "ceil", "round"}
    | {"trunc", "step"}
)


def integer_function(name: str, arguments: Sequence[int], type_: str) -> int:
    """Apply a function to integers."""
    if name == "clamp" and arguments[1] > arguments[2]:
        raise UndecidedError("clamp without a range")
    oracles = {**ORACLES, **SIGNED_ORACLES} if type_ == "i32" else ORACLES
    oracle: Any = oracles[name]
    return numbers.wrap(int(oracle(*arguments)), type_)


def real_function(
    name: str, arguments: Sequence[Value], accuracies: Mapping[str, Accuracy]
) -> Real:
    """Apply a function to f32 numbers (and, for `ldexp`, an integer)."""
    reals = [a if isinstance(a, tuple) else (float(a), 0.0, 0.0) for a in arguments]
    if name == "clamp" and reals[1][0] + reals[1][1] > reals[2][0] - reals[2][1]:
        raise UndecidedError("clamp without a range")
    if name == "fma":
        return numbers.add(numbers.multiply(reals[0], reals[1]), reals[2])
    if name == "fract" and not any(e for _, e, _ in reals):
        return numbers.leaf(reals[0][0] - math.floor(reals[0][0]))
    _check_domain(name, reals)
    oracle: Any = ORACLES[name]
    places = [
        v if name != "ldexp" or not n else int(v) for n, (v, _, _) in enumerate(reals)
    ]
    value = float(oracle(*places))
    exact = not any(e for _, e, _ in reals)
    spread = 0.0 if exact else _spread(name, reals, value)
    if name in _EXACT_AT_ALL or (name == "ldexp" and not spread):
        return numbers.settle(value, spread, ulps=0.0 if spread else 1.0)
    accuracy = accuracies[name]
    ulps = accuracy.ulps + accuracy.ulps_per_argument * abs(reals[0][0]) + 1.0
    size = _size(name, reals, value)
    own = accuracy.absolute + ulps * numbers.ULP * (size + spread)
    return numbers.inexact(value, spread + own, 0.0)


def _size(name: str, reals: Sequence[Real], value: float) -> float:
    """What ulps are counted of: for sums, their terms."""
    if name == "mix":
        (x, _, _), (y, _, _), (a, _, _) = reals
        return abs(x) * (1 + abs(a)) + abs(y) * abs(a)
    return abs(value)


def _check_domain(name: str, reals: Sequence[Real]) -> None:
    if name in _EXACT_AT_ALL:
        return
    ranges = (DOMAINS | _WIDER).get(name, (_UNBOUNDED,) * len(reals))
    for (value, error, _), (low, high) in zip(reals, ranges, strict=False):
        if not low <= value - error <= value + error <= high:
            raise UndecidedError("outside a function's domain")


def _spread(name: str, reals: Sequence[Real], value: float) -> float:
    """How far the result may be off because the arguments are."""
    if name in _SMOOTH:
        return reals[0][1]
    oracle: Any = ORACLES[name]
    ends = product(*({v - e, v + e} for v, e, _ in reals))
    spread = max(abs(float(oracle(*end)) - value) for end in ends)
    if name in _JUMPS and spread:
        raise UndecidedError("close jump")
    if name in {"fract", "quantizeToF16", "ldexp"}:
        raise UndecidedError("close jump")
    return spread * 1.0001
