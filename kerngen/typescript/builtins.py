"""JavaScript forms of scalar built-ins, for host expressions."""

from __future__ import annotations

from typing import Final

_SAME: Final = (
    "abs sign floor ceil trunc sqrt exp log log2 log1p expm1 sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh"
).split()

FLOATS: Final = {
    **{name: f"Math.{name}({{0}})" for name in _SAME},
    "atan2": "Math.atan2({0}, {1})",
    "min": "$host.min({0}, {1})",
    "max": "$host.max({0}, {1})",
    "clamp": "$host.min($host.max({0}, {1}), {2})",
    "saturate": "$host.min($host.max({0}, 0), 1)",
    "select": "{2} ? {1} : {0}",
    "round": "$host.round({0})",
    "fract": "{0} - Math.floor({0})",
    "inverseSqrt": "1 / Math.sqrt({0})",
    "exp2": "2 ** {0}",
    "pow": "$host.pow({0}, {1})",
    "fma": "{0} * {1} + {2}",
    "mix": "{0} * (1 - {2}) + {1} * {2}",
    "step": "{1} >= {0} ? 1 : 0",
    "is_nan": "Number.isNaN({0})",
    "is_finite": "Number.isFinite({0})",
    "smoothstep": (
        "((t) => t * t * (3 - 2 * t))"
        "($host.min($host.max(({2} - {0}) / ({1} - {0}), 0), 1))"
    ),
    "ldexp": "((x, e) => x && x * 2 ** (e >> 1) * 2 ** (e - (e >> 1)))({0}, {1})",
    "degrees": "{0} * (180 / Math.PI)",
    "radians": "{0} * (Math.PI / 180)",
}
"""Each by its name: what computes it of numbers."""

INTEGERS: Final = {
    "abs": "$host.abs({0})",
    "min": "$host.min({0}, {1})",
    "max": "$host.max({0}, {1})",
    "clamp": "$host.min($host.max({0}, {1}), {2})",
    "select": "{2} ? {1} : {0}",
    "floor_div": "$host.floorDiv({0}, {1})",
    "mod": "$host.mod({0}, {1})",
}
"""Those of integers."""

_FIELD: Final = "at = $host.min(o, 32n), n = $host.min(c, 32n - at)"
"""The offset and the width of a bit field, both cut to 32 bits."""

BITS: Final = {
    "bits": "(x) => BigInt(new Uint32Array(Float32Array.of(x).buffer)[0])",
    "countOneBits": (
        "(x) => BigInt(BigInt.asUintN(32, x).toString(2).replaceAll('0', '').length)"
    ),
    "countLeadingZeros": "(x) => BigInt(Math.clz32(Number(BigInt.asUintN(32, x))))",
    "countTrailingZeros": (
        "(x) => x ? BigInt(31 - Math.clz32(Number(BigInt.asIntN(32, x & -x)))) : 32n"
    ),
    "firstLeadingBit": "(x) => BigInt(31 - Math.clz32(Number(x < 0n ? ~x : x)))",
    "firstTrailingBit": "(x) => BigInt(31 - Math.clz32(Number(x & -x)))",
    "reverseBits": (
        "(x) => BigInt('0b' + [...BigInt.asUintN(32, x).toString(2).padStart(32, '0')]"
        ".reverse().join(''))"
    ),
    "extractBits": f"(x, o, c, {_FIELD}) => BigInt.{{as_int}}(Number(n), x >> at)",
    "insertBits": (
        f"(x, y, o, c, {_FIELD}, m = ((1n << n) - 1n) << at) => "
        "(x & ~m) | ((y << at) & m)"
    ),
}
"""Those of bits: functions of 32-bit integers; `as_int` cuts to a width, by the type."""
