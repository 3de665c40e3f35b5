"""WGSL helper functions besides those of built-ins, as text templates.

A shader declares those that it calls.  As in `kerngen.ir.builtins.helpers`, {T}, {I} and
{U} are f32, i32 and u32, or vectors of four, and {S} is "" or "4" accordingly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kerngen.ir.builtins.table import BUILTINS

_INFINITY: Final = """\
// Infinity, by its bits in a variable: WGSL has no literal of it, and refuses constant
// expressions that are infinite.
fn infinity{S}() -> {T} {{
    var bits = {U}(0x7f800000u);
    return bitcast<{T}>(bits);
}}
"""

_REMAINDER: Final = """\
// x % y with the sign of x, and 0 for y = 0; drivers get `%` of negative numbers wrong,
// as Vulkan's OpSRem lets them.
fn remainder{S}(x: {I}, y: {I}) -> {I} {{
    return select(x - x / y * y, {I}(0), y == {I}(0));
}}
"""

_TO_I32: Final = """\
// i32(x), but 0 of what is not a number, by the bits: WGSL leaves that open.
fn to_i32{S}(x: {T}) -> {I} {{
    let nan = (bitcast<{U}>(x) & {U}(0x7fffffffu)) > {U}(0x7f800000u);
    return select({I}(x), {I}(0), nan);
}}
"""

_TO_U32: Final = """\
// u32(x), but 0 of what is not a number, by the bits: WGSL leaves that open.
fn to_u32{S}(x: {T}) -> {U} {{
    let nan = (bitcast<{U}>(x) & {U}(0x7fffffffu)) > {U}(0x7f800000u);
    return select({U}(x), {U}(0), nan);
}}
"""

_NEAREST_F16: Final = """\
// The nearest value that an f16 holds, by the bits: a conversion to f16 and back is what
// drivers leave out.  Below 2^-14 the values are multiples of 2^-24.
fn nearest_f16{S}(x: {T}) -> {T} {{
    let bits = bitcast<{U}>(x);
    let size = bits & {U}(0x7fffffffu);
    let even = (bits >> {U}(13u)) & {U}(1u);
    let near = (bits + {U}(0xfffu) + even) & {U}(0xffffe000u);
    let infinite = bits - size + {U}(0x7f800000u);
    let held = select(near, infinite, size >= {U}(0x477ff000u));
    let usual = bitcast<{T}>(select(held, bits, size > {U}(0x7f800000u)));
    let small = round(x * 16777216.0) * 5.9604644775390625e-8;
    return select(usual, small, size < {U}(0x38800000u));
}}
"""

_FLOAT_RANK: Final = """\
// An integer that orders floats: both zeros alike, and what is not a number above all.
fn float_rank{S}(x: {T}) -> {I} {{
    let size = bitcast<{I}>(x) & {I}(0x7fffffff);
    let rank = select(size, -size, bitcast<{I}>(x) < {I}(0));
    return select(rank, {I}(0x7fffffff), size > {I}(0x7f800000));
}}
"""

_UNSIGNED_RANK: Final = """\
// An integer that orders those without a sign.
fn unsigned_rank{S}(x: {U}) -> {I} {{
    return bitcast<{I}>(x ^ {U}(0x80000000u));
}}
"""

_BETTER: Final = """\
// Of two ranks with their places the greater one; of equal ones that of the first place.
// No place, -1, comes after all.
fn better(a: vec2i, b: vec2i) -> vec2i {{
    let first = bitcast<u32>(b.y) < bitcast<u32>(a.y);
    return select(a, b, b.x > a.x || (b.x == a.x && first));
}}
"""

_BEST_OF_FOUR: Final = """\
// The greatest rank of four with its place, the first of equal ones.
fn best_of_four(ranks: vec4i, places: vec4i) -> vec2i {{
    let a = better(vec2i(ranks.x, places.x), vec2i(ranks.y, places.y));
    let b = better(vec2i(ranks.z, places.z), vec2i(ranks.w, places.w));
    return better(a, b);
}}
"""

_BEST_IN_SUBGROUP: Final = """\
// The greatest rank in a subgroup with its place, the first of equal ones.
fn best_in_subgroup(own: vec2i) -> vec2i {{
    let rank = subgroupMax(own.x);
    let place = select(0xffffffffu, bitcast<u32>(own.y), own.x == rank);
    return vec2i(rank, bitcast<i32>(subgroupMin(place)));
}}
"""

_RANK: Final = """\
// An integer in the order of floats, and beyond all others what is not a number.
fn {kind}_rank{{S}}(x: {{T}}) -> {{I}} {{{{
    let bits = bitcast<{{I}}>(x);
    let rank = bits ^ ((bits >> {{U}}(31u)) & {{I}}(0x7fffffff));
    let nan = (bits & {{I}}(0x7fffffff)) > {{I}}(0x7f800000);
    return select(rank, {{I}}({nan}), nan);
}}}}
"""

_VALUE: Final = """\
// The float of a rank; infinity where there was none to compare.
fn {kind}_value{{S}}(rank: {{I}}) -> {{T}} {{{{
    let known = {kind}(rank, {{I}}({nothing}));
    return bitcast<{{T}}>(known ^ ((known >> {{U}}(31u)) & {{I}}(0x7fffffff)));
}}}}
"""

_AFFINE_THEN: Final = """\
// Two steps as one: x h + y of what was before, or y alone where z is set.  Nothing times
// a product of factors that overflowed is nothing.
fn affine_then{S}(first: vec3f, second: vec3f) -> vec3f {{
    let overflowed = vec2<bool>(abs(second.x) > 3.4028234e38);
    let nothing = (first.xy == vec2f(0.0)) & overflowed;
    let moved = select(second.x * first.xy, vec2f(0.0), nothing);
    let joined = vec3f(moved.x, moved.y + second.y, first.z);
    return select(joined, second, second.z != 0.0);
}}
"""

_OWN: Final = {
    "infinity": _INFINITY,
    "remainder": _REMAINDER,
    "nearest_f16": _NEAREST_F16,
    "to_i32": _TO_I32,
    "to_u32": _TO_U32,
    "float_rank": _FLOAT_RANK,
    "unsigned_rank": _UNSIGNED_RANK,
    "better": _BETTER,
    "best_of_four": _BEST_OF_FOUR,
    "best_in_subgroup": _BEST_IN_SUBGROUP,
    "affine_then": _AFFINE_THEN,
    "max_rank": _RANK.format(kind="max", nan="0x7fffffff"),
    "min_rank": _RANK.format(kind="min", nan="i32(-2147483648)"),
    "max_value": _VALUE.format(kind="max", nothing="-2139095041"),
    "min_value": _VALUE.format(kind="min", nothing="0x7f800000"),
}
"""The text of each helper function by its name, which is used for:

- `infinity`: the literal `inf`, and reductions of nothing
- `remainder`: the operator `%` of integers
- `nearest_f16`: a value that is stored as f16 and read again in the same stage
- `to_i32`, `to_u32`: conversions of floats, which may be NaN
- `float_rank`, `unsigned_rank`, `better` and the like: `argmax` and `argmin`
- `max_rank`, `min_rank`: the integers that `max` and `min` of floats compare; `max_value`
  and `min_value` are their inverses
- `affine_then`: steps of a recurrence that strategy `scan` joins
"""


def helpers() -> Mapping[str, str]:
    """Return the text template of every helper, by name."""
    rows = (row.helper for row in BUILTINS.values())
    return {**_OWN, **{helper.name: helper.text for helper in rows if helper}}
