"""The values of constant expressions: integers by WGSL's rules, floats in double."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

from kerngen.ir.nodes import (
    TRUNCATING,
    Binary,
    BuiltinCall,
    Cast,
    Constant,
    ConstRef,
    Expr,
    Select,
    Unary,
)
from kerngen.ir.types import Scalar, scalar_of

Value: TypeAlias = float | int | bool

F32_MAX = 3.4028234663852886e38
LARGEST_F32_IN = {Scalar.I32: 2147483520, Scalar.U32: 4294967040}
"""Where a conversion from f32 saturates."""


class NotFiniteError(Exception):
    """A constant expression has no finite value in its type."""


def bounds(scalar: Scalar) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer type."""
    return (-(2**31), 2**31 - 1) if scalar is Scalar.I32 else (0, 2**32 - 1)


def wrap(value: int, scalar: Scalar) -> int:
    """Return the value that 32 bits keep of an integer."""
    low, _ = bounds(scalar)
    return (value - low) % 2**32 + low


def as_f32(value: float) -> float:
    """Return a double as it is, once it is known to round to a finite f32."""
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise NotFiniteError from None
    if not math.isfinite(rounded):
        raise NotFiniteError
    return max(-F32_MAX, min(F32_MAX, value))


def constant_value(expr: Expr) -> Value | None:
    """Return the value of an expression of constants alone, else None.

    Raises `NotFiniteError` where a float operation has no finite result.
    """
    if isinstance(expr, Constant | ConstRef):
        return expr.value
    if not isinstance(expr, Unary | Binary | Select | Cast | BuiltinCall):
        return None
    if expr.is_constant and expr.known is None:
        object.__setattr__(expr, "known", _computed(expr))
    return expr.known


def _computed(expr: Expr) -> Value | None:
    """Compute an operation on constants; what these are is known, if it ever was."""
    match expr:
        case Unary(op=op, operand=operand, type=Scalar() as scalar):
            inner = constant_value(operand)
            return None if inner is None else _unary(op, inner, scalar)
        case Binary(op=op, left=left, right=right, type=Scalar() as scalar):
            a, b = constant_value(left), constant_value(right)
            if a is None or b is None:
                return None
            return binary(op, a, b, scalar)
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen = constant_value(condition)
            a, b = constant_value(then), constant_value(otherwise)
            if chosen is None or a is None or b is None:
                return None
            return a if chosen else b
        case Cast(is_halved=True):
            return None
        case Cast(operand=operand, type=Scalar() as scalar):
            inner = constant_value(operand)
            return None if inner is None else cast(inner, scalar)
        case BuiltinCall(builtin=name, arguments=arguments, type=Scalar() as scalar):
            values = [constant_value(argument) for argument in arguments]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                return None
            return _call(name, known, scalar_of(arguments[0].type), scalar)
        case _:
            return None


def cast(value: Value, scalar: Scalar) -> Value:
    """Convert by WGSL's rules."""
    if scalar is Scalar.F32:
        return float(value)
    if isinstance(value, float):
        low, _ = bounds(scalar)
        return int(min(max(value, low), LARGEST_F32_IN[scalar]))
    return wrap(int(value), scalar)


def _unary(op: str, value: Value, scalar: Scalar) -> Value:
    if op == "not":
        return not value
    if scalar is Scalar.F32:
        return -value
    return wrap(-int(value) if op == "-" else ~int(value), scalar)


def binary(op: str, left: Value, right: Value, scalar: Scalar) -> Value:
    """Return `left op right`, whose result is of type `scalar`."""
    if op in _COMPARISONS:
        return _COMPARISONS[op](left, right)
    if scalar is Scalar.F32:
        try:
            return as_f32(_FLOAT_OPS[op](float(left), float(right)))
        except (ArithmeticError, ValueError):
            raise NotFiniteError from None
    return wrap(integer_op(op, int(left), int(right)), scalar)


def integer_op(op: str, left: int, right: int) -> int:
    """Return the exact result of an integer operation, before it wraps."""
    if op in {"/", "%"}:
        return _divide(op, left, right)
    return _INTEGER_OPS[op](left, right)


def _floored(name: str, left: int, right: int) -> int:
    if right == 0:
        return left if name == "floor_div" else 0
    return left // right if name == "floor_div" else left % right


def _divide(op: str, left: int, right: int) -> int:
    if right == 0:
        return left if op == "/" else 0
    quotient = abs(left) // abs(right)
    quotient = quotient if (left < 0) == (right < 0) else -quotient
    return quotient if op == "/" else left - quotient * right


_COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b),
}

_FLOAT_OPS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
}

_INTEGER_OPS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << (b & 31),
    ">>": lambda a, b: a >> (b & 31),
}


def _call(name: str, values: list[Value], given: Scalar, scalar: Scalar) -> Value:
    """Return the value of a built-in, whose first argument is of type `given`."""
    try:
        value = _apply(name, values, given)
    except (ArithmeticError, ValueError):
        raise NotFiniteError from None
    if scalar is Scalar.F32:
        return as_f32(value)
    return bool(value) if scalar is Scalar.BOOL else wrap(int(value), scalar)


def _apply(name: str, values: list[Value], given: Scalar) -> float:
    match values:
        case [x] if name in _BITS_OF_ONE:
            return _BITS_OF_ONE[name](given, int(x))
        case [x]:
            return _OF_ONE[name](x)
        case [x, y] if name in TRUNCATING:
            return _floored(name, int(x), int(y))
        case [x, y]:
            return _OF_TWO[name](x, y)
        case [x, y, z] if name == "extractBits":
            return _extract(given, int(x), int(y), int(z))
        case [x, y, z]:
            return _OF_THREE[name](x, y, z)
        case _:
            value, new, offset, count = map(int, values)
            return _insert(value, new, offset, count)


def _quantize(x: float) -> float:
    (result,) = struct.unpack("<e", struct.pack("<e", x))
    return float(result)


def _smoothstep(low: float, high: float, x: float) -> float:
    part = min(max((x - low) / (high - low), 0.0), 1.0)
    return part * part * (3.0 - 2.0 * part)


def _sign(x: float) -> float:
    return (x > 0) - (x < 0)


_OF_ONE: Mapping[str, Callable[[float], float]] = {
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
    "is_nan": lambda _: False,
    "is_finite": math.isfinite,
}

_OF_TWO: Mapping[str, Callable[[float, float], float]] = {
    "min": min,
    "max": max,
    "pow": math.pow,
    "atan2": math.atan2,
    "step": lambda edge, x: 1.0 if edge <= x else 0.0,
    "ldexp": lambda x, exponent: math.ldexp(x, int(exponent)),
}

_OF_THREE: Mapping[str, Callable[[float, float, float], float]] = {
    "clamp": lambda x, low, high: min(max(x, low), high),
    "select": lambda falsy, truthy, condition: truthy if condition else falsy,
    "fma": lambda x, y, z: x * y + z,
    "mix": lambda x, y, a: x * (1.0 - a) + y * a,
    "smoothstep": _smoothstep,
}

# Of bit patterns; the first argument is the type of the values.


def _bits(value: int) -> int:
    return value & 0xFFFFFFFF


def _first_leading(scalar: Scalar, value: int) -> int:
    if scalar is Scalar.I32 and value < 0:
        value = ~value
    return _bits(value).bit_length() - 1


def _trailing_zeros(_scalar: Scalar, value: int) -> int:
    bits = _bits(value)
    return (bits & -bits).bit_length() - 1 if bits else 32


def _first_trailing(scalar: Scalar, value: int) -> int:
    return _trailing_zeros(scalar, value) if value else -1


def field(offset: int, count: int) -> tuple[int, int]:
    """Return the offset and the width of a bit field, both cut to 32 bits."""
    start = min(offset, 32)
    return start, min(count, 32 - start)


def _extract(scalar: Scalar, value: int, offset: int, count: int) -> int:
    start, width = field(offset, count)
    bits = (_bits(value) >> start) & ((1 << width) - 1)
    negative = scalar is Scalar.I32 and width > 0 and bits >> (width - 1)
    return bits - (1 << width) if negative else bits


def _insert(value: int, new: int, offset: int, count: int) -> int:
    start, width = field(offset, count)
    mask = ((1 << width) - 1) << start
    return (_bits(value) & ~mask) | ((_bits(new) << start) & mask)


_BITS_OF_ONE: Mapping[str, Callable[[Scalar, int], int]] = {
    "countOneBits": lambda _, x: _bits(x).bit_count(),
    "countLeadingZeros": lambda _, x: 32 - _bits(x).bit_length(),
    "countTrailingZeros": _trailing_zeros,
    "firstLeadingBit": _first_leading,
    "firstTrailingBit": _first_trailing,
    "reverseBits": lambda _, x: int(f"{_bits(x):032b}"[::-1], 2),
}
