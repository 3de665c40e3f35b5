"""The built-in functions of the oracle, in float64, with bounds from their accuracies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from kerngen.ir.builtins import BUILTINS
from kerngen.ir.types import Scalar
from kerngen.runtime import reference as ref
from kerngen.verify import number
from kerngen.verify.number import Array, Number

Function: TypeAlias = Callable[..., Any]

_ANY: Final = (-1e6, 1e6)
_ALL: Final = (-number.HIGHEST, number.HIGHEST)
_DOMAINS: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "sqrt": ((0.0, number.HIGHEST),),
    "inverseSqrt": ((number.TINY, number.HIGHEST),),
    "exp": ((-2 * number.HIGHEST, 88.0),),
    "exp2": ((-2 * number.HIGHEST, 127.0),),
    "log": ((number.TINY, number.HIGHEST),),
    "log2": ((number.TINY, number.HIGHEST),),
    "log1p": ((-0.99, 50.0),),
    "expm1": ((-20.0, 20.0),),
    "pow": ((0.01, 10.0), (-6.0, 6.0)),
    "sin": ((-math.pi, math.pi),),
    "cos": ((-math.pi, math.pi),),
    "tan": ((-math.pi / 4, math.pi / 4),),
    "asin": ((-1.0, 1.0),),
    "acos": ((-1.0, 1.0),),
    "atan2": ((-10.0, 10.0), (0.1, 10.0)),
    "sinh": ((-10.0, 10.0),),
    "cosh": ((-10.0, 10.0),),
    "asinh": ((-10.0, 10.0),),
    "acosh": ((1.0, 10.0),),
    "atanh": ((-0.9, 0.9),),
    "mix": (_ANY, _ANY, _ANY),
    "smoothstep": (_ANY, _ANY, _ANY),
    "quantizeToF16": ((-1000.0, 1000.0),),
}
"""Where the accuracies of the table hold, by argument; elsewhere nothing is known."""

_JUMPS: Final = frozenset(
    {"floor", "ceil", "round", "trunc", "step", "sign", "fract", "quantizeToF16"}
)
_SLOPE_OF_ONE: Final = frozenset({"sin", "cos"})
_EXACT: Final = frozenset(
    {"abs", "sign", "min", "max", "clamp", "saturate", "floor", "ceil", "round"}
    | {"trunc", "step", "ldexp"}
)


def _clamp(x: Array, low: Array, high: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(x, low), high))


def _saturate(x: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(x, 0.0), 1.0))


def _fract(x: Array) -> Array:
    return np.asarray(x - np.floor(x))


def _inverse_sqrt(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x))


def _mix(x: Array, y: Array, a: Array) -> Array:
    return np.asarray(x * (1.0 - a) + y * a)


def _step(edge: Array, x: Array) -> Array:
    return np.where(x >= edge, 1.0, 0.0)


def _ldexp(x: Array, exponent: Array) -> Array:
    return np.asarray(x * np.exp2(np.clip(exponent, -1000, 1000)))


_FLOATS: Final[Mapping[str, Function]] = {
    "abs": np.abs,
    "sign": np.sign,
    "min": np.minimum,
    "max": np.maximum,
    "clamp": _clamp,
    "saturate": _saturate,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "fract": _fract,
    "sqrt": np.sqrt,
    "inverseSqrt": _inverse_sqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "degrees": np.degrees,
    "radians": np.radians,
    "mix": _mix,
    "step": _step,
    "smoothstep": ref.smoothstep,
    "ldexp": _ldexp,
    "quantizeToF16": ref.quantize_to_f16,
    "erf": ref.erf,
    "log1p": np.log1p,
    "expm1": np.expm1,
}


def plain_value(name: str, values: Sequence[Array]) -> Array | None:
    """Return a function's value in double; None for those that are made of others."""
    function = _FLOATS.get(name)
    return None if function is None else np.asarray(function(*values), np.float64)


def of_floats(name: str, arguments: Sequence[Number]) -> Number:
    """Apply a function to f32 numbers (and, for `ldexp`, an integer)."""
    if name in {"is_nan", "is_finite"}:
        return _bit_test(name, arguments[0])
    if name == "select":
        no, yes, chosen = arguments
        return number.choose(chosen, yes, no)
    if name == "fma":
        return number.add(number.multiply(*arguments[:2]), arguments[2])
    function = _FLOATS[name]
    values = [np.where(np.isfinite(x.value), x.value, 0.0) for x in arguments]
    value = np.asarray(function(*values), np.float64)
    error = _spread(name, arguments, values, value)
    error = np.where(_inside(name, arguments, values), error, np.inf)
    if name in _EXACT:
        return number.settle(value, error, np.where(error > 0, 0.0, 1.0))
    row = BUILTINS[name].accuracy
    ulps = row.ulps + row.ulps_per_argument * np.abs(values[0]) + 1.0
    size = np.abs(value)
    if name == "mix":
        x, y, a = map(np.abs, values)
        size = x * (1 + a) + y * a
    own = row.absolute + ulps * number.ULP * (size + error)
    return number.inexact(value, error + own, 0.0)


def _bit_test(name: str, operand: Number) -> Number:
    """Test bits: those of an argument as it came are known, whatever they are."""
    raw = operand.value
    answer = np.isnan(raw) if name == "is_nan" else np.isfinite(raw)
    return number.unsure_where(answer, np.isfinite(raw) & ~np.isfinite(operand.error))


def _inside(name: str, arguments: Sequence[Number], values: Sequence[Array]) -> Array:
    """Whether arguments lie where the accuracy of a function holds."""
    default = (_ALL if name in _EXACT else _ANY,) * len(arguments)
    good = np.asarray(True)
    for (low, high), x, value in zip(
        _DOMAINS.get(name, default), arguments, values, strict=True
    ):
        good = good & (value - x.error >= low) & (value + x.error <= high)
    if name in {"clamp", "smoothstep"}:
        first, last = arguments[:2] if name == "smoothstep" else arguments[1:]
        apart = last.value - last.error - first.value - first.error
        good = good & (apart > 0 if name == "smoothstep" else apart >= 0)
    return np.asarray(good)


def _spread(
    name: str, arguments: Sequence[Number], values: Sequence[Array], value: Array
) -> Array:
    """How far results may be off because the arguments are."""
    if name in _SLOPE_OF_ONE:
        return arguments[0].error
    if not any(x.error.any() for x in arguments):
        return np.zeros(value.shape)
    spread = np.zeros(value.shape)
    for signs in product((-1, 1), repeat=len(values)):
        end = _FLOATS[name](
            *(
                v + sign * x.error
                for v, sign, x in zip(values, signs, arguments, strict=True)
            )
        )
        spread = np.maximum(spread, np.abs(end - value))
    spread = np.where(np.isnan(spread), np.inf, spread * 1.0001)
    if name in _JUMPS:
        off = np.asarray(sum(x.error for x in arguments) > 0)
        jumps = name in {"fract", "quantizeToF16"}
        spread = np.where(off & (jumps | (spread > 0)), np.inf, spread)
    return spread


# Integers


def _floor_div(a: Array, b: Array) -> Array:
    quotient = _divide(a, b)
    above = (b != 0) & (quotient * b != a) & ((a < 0) != (b < 0))
    return np.asarray(quotient - above)


def _mod(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, a - _floor_div(a, b) * b)


_WIDE: Final[Mapping[str, Function]] = {
    "abs": np.abs,
    "sign": np.sign,
    "min": np.minimum,
    "max": np.maximum,
    "clamp": _clamp,
    "floor_div": _floor_div,
    "mod": _mod,
}
_BITS: Final[Mapping[str, Function]] = {
    "countOneBits": ref.count_one_bits,
    "countLeadingZeros": ref.count_leading_zeros,
    "countTrailingZeros": ref.count_trailing_zeros,
    "firstLeadingBit": ref.first_leading_bit,
    "firstTrailingBit": ref.first_trailing_bit,
    "reverseBits": ref.reverse_bits,
    "extractBits": ref.extract_bits,
    "insertBits": ref.insert_bits,
}
_NARROW: Final = {Scalar.I32: np.int32, Scalar.U32: np.uint32}


def wrap(value: Array, scalar: Scalar) -> Array:
    """Cut to 32 bits."""
    low = np.bitwise_and(value, 0xFFFFFFFF)
    if scalar is Scalar.U32:
        return np.asarray(low)
    return np.where(low >= 2**31, low - 2**32, low)


def of_integers(name: str, arguments: Sequence[Number], scalar: Scalar) -> Number:
    """Apply a function to integers."""
    if name == "select":
        no, yes, chosen = arguments
        return number.choose(chosen, yes, no)
    unsure = np.asarray(sum(x.error for x in arguments) > 0)
    if name in _WIDE:
        value = wrap(_WIDE[name](*(x.value for x in arguments)), scalar)
        if name == "clamp":
            unsure = unsure | (arguments[1].value > arguments[2].value)
        return number.unsure_where(value, unsure)
    # Bits to insert are of the result's type; places and counts are u32.
    kept = 2 if name == "insertBits" else 1
    narrow = [x.value.astype(_NARROW[scalar]) for x in arguments[:kept]]
    places = [x.value.astype(np.uint32) for x in arguments[kept:]]
    value = np.asarray(_BITS[name](*narrow, *places)).astype(np.int64)
    return number.unsure_where(value, unsure)


def _divide(a: Array, b: Array) -> Array:
    by = np.where(b == 0, 1, b)
    quotient = np.abs(a) // np.abs(by)
    return np.where((a < 0) == (by < 0), quotient, -quotient)


INTEGER_OPERATORS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "%": lambda a, b: np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))),
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": lambda a, b: np.left_shift(a, b & 31),
    ">>": lambda a, b: np.right_shift(a, b & 31),
}
"""By 64 bits; the lowest 32 of them are the result.  x / 0 is x, x % 0 is 0."""


def convert(operand: Number, source: Scalar, to: Scalar) -> Number:
    """Convert by WGSL's rules; what WGSL leaves open, the integer of a NaN, is 0."""
    if source is to:
        return operand
    if to is Scalar.F32:
        return number.settle(operand.value.astype(np.float64), operand.error)
    if source is not Scalar.F32:
        return number.unsure_where(
            wrap(operand.value.astype(np.int64), to), operand.unsure
        )
    low, high = (0, 4294967040) if to is Scalar.U32 else (-(2**31), 2147483520)
    # An argument that is not finite is known as it came; a bound of others may be infinite.
    clean = np.nan_to_num(operand.value, nan=0.0, posinf=high, neginf=low)
    bound = np.where(np.isfinite(operand.value), operand.error, 0.0)
    least, value, most = (
        np.clip(np.trunc(clean + off), low, high)
        for off in (-bound, np.zeros(clean.shape), bound)
    )
    unsure = (least != most) | ~np.isfinite(bound)
    return number.unsure_where(value.astype(np.int64), unsure)
