"""Built-ins of scalars in JavaScript, which the host computes before a kernel runs."""

from __future__ import annotations

from typing import Final

_SAME: Final = (
    "abs sign floor ceil trunc sqrt exp log log2 log1p expm1 sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh"
).split()

FLOATS: Final = {
    **{name: f"Math.{name}({{0}})" for name in _SAME},
    "atan2": "Math.atan2({0}, {1})",
    "min": "$.host.min({0}, {1})",
    "max": "$.host.max({0}, {1})",
    "clamp": "$.host.min($.host.max({0}, {1}), {2})",
    "saturate": "$.host.min($.host.max({0}, 0), 1)",
    "select": "{2} ? {1} : {0}",
    "round": "$.host.round({0})",
    "fract": "{0} - Math.floor({0})",
    "inverseSqrt": "1 / Math.sqrt({0})",
    "exp2": "2 ** {0}",
    "pow": "$.host.pow({0}, {1})",
    "fma": "{0} * {1} + {2}",
    "mix": "{0} * (1 - {2}) + {1} * {2}",
    "step": "{1} >= {0} ? 1 : 0",
    "is_nan": "Number.isNaN({0})",
    "is_finite": "Number.isFinite({0})",
    "degrees": "{0} * (180 / Math.PI)",
    "radians": "{0} * (Math.PI / 180)",
}
"""Each by its name: what computes it of numbers."""

INTEGERS: Final = {
    "abs": "$.host.abs({0})",
    "min": "$.host.min({0}, {1})",
    "max": "$.host.max({0}, {1})",
    "clamp": "$.host.min($.host.max({0}, {1}), {2})",
    "select": "{2} ? {1} : {0}",
    "floor_div": "$.host.floorDiv({0}, {1})",
    "mod": "$.host.mod({0}, {1})",
}
"""Those of integers."""
