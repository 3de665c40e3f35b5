"""The meaning of built-in functions for one number: floats in double, integers exactly."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from kerngen.plan import hostmath


def _quantize(x: float) -> float:
    (result,) = struct.unpack("<e", struct.pack("<e", x))
    return float(result)


def _smoothstep(low: float, high: float, x: float) -> float:
    part = min(max((x - low) / (high - low), 0.0), 1.0)
    return part * part * (3.0 - 2.0 * part)


def _sign(x: float) -> float:
    return (x > 0) - (x < 0)


_OF_ONE: Final[Mapping[str, Callable[[float], float]]] = {
    "abs": abs,
    "sign": _sign,
    "saturate": lambda x: min(max(x, 0.0), 1.0),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "fract": lambda x: x - math.floor(x),
    "sqrt": math.sqrt,
    "inverseSqrt": lambda x: 1.0 / math.sqrt(x),
    "exp": math.exp,
    "exp2": lambda x: math.pow(2.0, x),
    "log": math.log,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "degrees": math.degrees,
    "radians": math.radians,
    "quantizeToF16": _quantize,
    "erf": math.erf,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "is_nan": math.isnan,
    "is_finite": math.isfinite,
}

_OF_TWO: Final[Mapping[str, Callable[[float, float], float]]] = {
    "min": min,
    "max": max,
    "pow": math.pow,
    "atan2": math.atan2,
    "step": lambda edge, x: 1.0 if edge <= x else 0.0,
    "ldexp": lambda x, exponent: math.ldexp(x, int(exponent)),
}

_OF_THREE: Final[Mapping[str, Callable[[float, float, float], float]]] = {
    "clamp": lambda x, low, high: min(max(x, low), high),
    "select": lambda falsy, truthy, condition: truthy if condition else falsy,
    "fma": lambda x, y, z: x * y + z,
    "mix": lambda x, y, a: x * (1.0 - a) + y * a,
    "smoothstep": _smoothstep,
}

OF_NUMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    **_OF_ONE,
    **_OF_TWO,
    **_OF_THREE,
    "floor_div": hostmath.floor_div,
    "mod": hostmath.mod,
}
"""Built-ins of numbers; they raise where Python's `math` does."""


def _bits(value: int) -> int:
    return value & 0xFFFFFFFF


def _first_leading(signed: bool, value: int) -> int:
    if signed and value < 0:
        value = ~value
    return _bits(value).bit_length() - 1


def _trailing_zeros(_signed: bool, value: int) -> int:
    bits = _bits(value)
    return (bits & -bits).bit_length() - 1 if bits else 32


def _first_trailing(signed: bool, value: int) -> int:
    return _trailing_zeros(signed, value) if value else -1


def field(offset: int, count: int) -> tuple[int, int]:
    """Return the offset and the width of a bit field, both cut to 32 bits."""
    start = min(offset, 32)
    return start, min(count, 32 - start)


def _extract(signed: bool, value: int, offset: int, count: int) -> int:
    start, width = field(offset, count)
    bits = (_bits(value) >> start) & ((1 << width) - 1)
    negative = signed and width > 0 and bits >> (width - 1)
    return bits - (1 << width) if negative else bits


def _insert(_signed: bool, value: int, new: int, offset: int, count: int) -> int:
    start, width = field(offset, count)
    mask = ((1 << width) - 1) << start
    return (_bits(value) & ~mask) | ((_bits(new) << start) & mask)


_BITS_OF_ONE: Final[Mapping[str, Callable[[bool, int], int]]] = {
    "countOneBits": lambda _, x: _bits(x).bit_count(),
    "countLeadingZeros": lambda _, x: 32 - _bits(x).bit_length(),
    "countTrailingZeros": _trailing_zeros,
    "firstLeadingBit": _first_leading,
    "firstTrailingBit": _first_trailing,
    "reverseBits": lambda _, x: int(f"{_bits(x):032b}"[::-1], 2),
}

OF_BITS: Final[Mapping[str, Callable[..., int]]] = {
    **_BITS_OF_ONE,
    "extractBits": _extract,
    "insertBits": _insert,
}
"""Built-ins of the bits of 32-bit integers; the first argument is whether they are signed."""
