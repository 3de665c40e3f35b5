"""What each built-in means, by Python's own arithmetic, and where to try it.

Each oracle takes plain Python numbers: doubles for f32, ints for i32 and u32.  They are
written apart from the compiler's rows on purpose: `tests/programs` computes with them, too.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Oracle: TypeAlias = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)

DOMAINS: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "sqrt": ((0.0, 1e6),),
    "inverseSqrt": ((1e-6, 1e6),),
    "exp": ((-20.0, 20.0),),
    "exp2": ((-30.0, 30.0),),
    "log": ((1e-6, 1e6),),
    "log2": ((1e-6, 1e6),),
    "log1p": ((-0.99, 50.0),),
    "expm1": ((-20.0, 20.0),),
    "erf": ((-6.0, 6.0),),
    "pow": ((0.01, 10.0), (-6.0, 6.0)),
    "sin": ((-math.pi, math.pi),),
    "cos": ((-math.pi, math.pi),),
    "tan": ((-math.pi / 4, math.pi / 4),),
    "asin": ((-1.0, 1.0),),
    "acos": ((-1.0, 1.0),),
    "atan2": ((-10.0, 10.0), (0.1, 10.0)),
    "sinh": ((-10.0, 10.0),),
    "cosh": ((-10.0, 10.0),),
    "tanh": ((-200.0, 200.0),),
    "asinh": ((-10.0, 10.0),),
    "acosh": ((1.0, 10.0),),
    "atanh": ((-0.9, 0.9),),
    "clamp": ((-9.0, 9.0), (-5.0, 0.0), (0.0, 5.0)),
    "fma": ((0.0, 9.0), (0.0, 9.0), (0.0, 9.0)),
    "mix": ((0.0, 9.0), (0.0, 9.0), (0.0, 1.0)),
    "smoothstep": ((-3.0, -1.0), (1.0, 3.0), (-4.0, 4.0)),
    "quantizeToF16": ((-1000.0, 1000.0),),
}
"""The range to draw each f32 argument from; -9 to 9 where nothing stands here."""

INTEGERS: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "clamp": ((-99, 99), (-50, 0), (0, 50)),
    "ldexp": ((0, 0), (-20, 20)),
    "floor_div": ((-(2**31), 2**31 - 1), (-9, 9)),
    "mod": ((-(2**31), 2**31 - 1), (-9, 9)),
    "extractBits": ((-(2**31), 2**31 - 1), (0, 40), (0, 40)),
    "insertBits": ((-(2**31), 2**31 - 1), (-(2**31), 2**31 - 1), (0, 40), (0, 40)),
}
"""The same for integers; the type's whole range where nothing stands here."""


def _f16(x: float) -> float:
    value: float = struct.unpack("<e", struct.pack("<e", x))[0]
    return value


def _round_to_even(x: float) -> float:
    return float(round(x))


def _smoothstep(low: float, high: float, x: float) -> float:
    t = min(max((x - low) / (high - low), 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


def _bits(x: int) -> str:
    """The 32 bits of an integer, the highest first."""
    return format(x & 0xFFFFFFFF, "032b")


def _first_leading_bit(x: int) -> int:
    bits = _bits(x)
    wanted = "0" if x < 0 else "1"
    return 31 - bits.index(wanted) if wanted in bits else -1


def _field(offset: int, count: int) -> tuple[int, int]:
    start = min(offset, 32)
    return start, min(count, 32 - start)


def _extract_bits(x: int, offset: int, count: int) -> int:
    start, length = _field(offset, count)
    return ((x & 0xFFFFFFFF) >> start) & ((1 << length) - 1)


def _extract_signed_bits(x: int, offset: int, count: int) -> int:
    """The field as a number in two's complement."""
    value = _extract_bits(x, offset, count)
    _, length = _field(offset, count)
    negative = length > 0 and value >> (length - 1)
    return value - (1 << length) if negative else value


def _insert_bits(x: int, new: int, offset: int, count: int) -> int:
    start, length = _field(offset, count)
    mask = ((1 << length) - 1) << start
    return (x & 0xFFFFFFFF & ~mask) | ((new << start) & mask)


ORACLES: Final[dict[str, Oracle]] = {
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "min": min,
    "max": max,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "select": lambda no, yes, chosen: yes if chosen else no,
    "saturate": lambda x: min(max(x, 0.0), 1.0),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": _round_to_even,
    "trunc": math.trunc,
    "fract": lambda x: x - math.floor(x),
    "sqrt": math.sqrt,
    "inverseSqrt": lambda x: 1.0 / math.sqrt(x),
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "pow": math.pow,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "degrees": math.degrees,
    "radians": math.radians,
    "fma": lambda x, y, z: x * y + z,
    "mix": lambda x, y, a: x * (1.0 - a) + y * a,
    "step": lambda edge, x: 1.0 if x >= edge else 0.0,
    "smoothstep": _smoothstep,
    "ldexp": math.ldexp,
    "quantizeToF16": _f16,
    "erf": math.erf,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "is_nan": math.isnan,
    "is_finite": math.isfinite,
    "bits": lambda x: int.from_bytes(struct.pack("<f", x), "little"),
    "floor_div": lambda x, y: x // y if y else x,
    "mod": lambda x, y: x % y if y else 0,
    "countOneBits": lambda x: _bits(x).count("1"),
    "countLeadingZeros": lambda x: len(_bits(x)) - len(_bits(x).lstrip("0")),
    "countTrailingZeros": lambda x: len(_bits(x)) - len(_bits(x).rstrip("0")),
    "firstTrailingBit": lambda x: len(_bits(x)) - 1 - _bits(x).rindex("1") if x else -1,
    "firstLeadingBit": _first_leading_bit,
    "reverseBits": lambda x: int(_bits(x)[::-1], 2),
    "extractBits": _extract_bits,
    "insertBits": _insert_bits,
}

SIGNED_ORACLES: Final[dict[str, Oracle]] = {"extractBits": _extract_signed_bits}
"""The oracles of i32 overloads that mean something else than those of u32."""
