"""The rows of built-ins that take integers, or integers as well as f32."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from kerngen.ir.builtins.helpers import FLOOR_DIV, FLOOR_MOD
from kerngen.ir.builtins.row import Builtin, Overload, Refusal, Variation, same
from kerngen.ir.types import Scalar
from kerngen.plan import hostmath

F32, I32, U32, BOOL = Scalar.F32, Scalar.I32, Scalar.U32, Scalar.BOOL


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


def _clamp(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def _in_order(_: Any, low: Any, high: Any) -> Any:
    return low <= high


def _as_large(size: float) -> float:
    return size


def _select(falsy: Any, truthy: Any, condition: bool) -> Any:
    return truthy if condition else falsy


def _never(_may_be_negative: Sequence[bool]) -> bool:
    return False


def _second(may_be_negative: Sequence[bool]) -> bool:
    return may_be_negative[1]


_DIVIDES_BY_ZERO = Refusal((1,), operator.not_, "it divides by 0")

_BETWEEN = "if y < x and x < z { 1.0 } else if y < z { 0.5 } else { 0.0 }"
"""The derivative of `clamp(x, y, z)` by x where x is not outside of the bounds.

At a bound it is the mean of both sides, 0.5; between equal bounds the result is constant.
"""

NUMBER_ROWS = (
    Builtin(
        name="abs",
        overloads=same(1, F32, I32, U32),
        doc="The absolute value; of the lowest i32, that i32.",
        numpy="np.abs({0})",
        javascript="Math.abs({0})",
        javascript_of_integers="$host.abs({0})",
        scalar=hostmath.absolute,
        host="hostmath.absolute",
        partials=("sign(x)",),
        may_be_negative=_never,
        largest=_as_large,
    ),
    Builtin(
        name="sign",
        overloads=same(1, F32, I32),
        doc="-1, 0 or 1.",
        numpy="np.sign({0})",
        # `+ 0` makes 0 of the -0 that `Math.sign(-0)` is.
        javascript="Math.sign({0}) + 0",
        javascript_of_integers="BigInt(({0} > 0n) - ({0} < 0n))",
        scalar=_sign,
        partials=("0.0",),
        variation=Variation.STEPS,
    ),
    Builtin(
        name="min",
        overloads=same(2, F32, I32, U32),
        doc="The smaller of two numbers.",
        numpy="np.minimum({0}, {1})",
        javascript="$host.min({0}, {1})",
        javascript_of_integers="$host.min({0}, {1})",
        scalar=hostmath.minimum,
        host="hostmath.minimum",
        partials=(
            "if x < y { 1.0 } else if x == y { 0.5 } else { 0.0 }",
            "if y < x { 1.0 } else if x == y { 0.5 } else { 0.0 }",
        ),
        may_be_negative=any,
    ),
    Builtin(
        name="max",
        overloads=same(2, F32, I32, U32),
        doc="The larger of two numbers.",
        numpy="np.maximum({0}, {1})",
        javascript="$host.max({0}, {1})",
        javascript_of_integers="$host.max({0}, {1})",
        scalar=hostmath.maximum,
        host="hostmath.maximum",
        partials=(
            "if x > y { 1.0 } else if x == y { 0.5 } else { 0.0 }",
            "if y > x { 1.0 } else if x == y { 0.5 } else { 0.0 }",
        ),
        may_be_negative=all,
    ),
    Builtin(
        name="clamp",
        overloads=same(3, F32, I32, U32),
        doc="The first argument, kept between the second and the third.",
        numpy="np.clip({0}, {1}, {2})",
        javascript="$host.clamp({0}, {1}, {2})",
        javascript_of_integers="$host.min($host.max({0}, {1}), {2})",
        scalar=_clamp,
        partials=(
            f"if x < y or x > z {{ 0.0 }} else {{ {_BETWEEN} }}",
            "if x < y { 1.0 } else if x == y { 0.5 } else { 0.0 }",
            "if x > z { 1.0 } else if x == z { 0.5 } else { 0.0 }",
        ),
        condition=_in_order,
        refusals=(
            Refusal(
                (1, 2),
                operator.gt,
                "the lower bound {0} is above the upper bound {1}",
            ),
        ),
        may_be_negative=_second,
    ),
    Builtin(
        name="select",
        overloads=tuple(Overload((t, t, BOOL), t) for t in (F32, I32, U32, BOOL)),
        doc="The second argument where the third is true, else the first.",
        numpy="np.where({2}, {1}, {0})",
        javascript="{2} ? {1} : {0}",
        javascript_of_integers="{2} ? {1} : {0}",
        scalar=_select,
        partials=("if z { 0.0 } else { 1.0 }", "if z { 1.0 } else { 0.0 }", "0.0"),
    ),
    Builtin(
        name="floor_div",
        overloads=same(2, I32, U32),
        doc="The quotient rounded down, as Python's `//`; of a division by 0, the dividend.",
        helper=FLOOR_DIV,
        numpy="ref.floor_div({0}, {1})",
        javascript_of_integers="$host.floorDiv({0}, {1})",
        scalar=hostmath.floor_div,
        host="hostmath.floor_div",
        refusals=(_DIVIDES_BY_ZERO,),
        may_be_negative=any,
        truncating="/",
    ),
    Builtin(
        name="mod",
        overloads=same(2, I32, U32),
        doc="The remainder with the divisor's sign, as Python's `%`; of a division by 0, 0.",
        helper=FLOOR_MOD,
        numpy="ref.mod({0}, {1})",
        javascript_of_integers="$host.mod({0}, {1})",
        scalar=hostmath.mod,
        host="hostmath.mod",
        refusals=(_DIVIDES_BY_ZERO,),
        may_be_negative=_second,
        truncating="%",
    ),
)
