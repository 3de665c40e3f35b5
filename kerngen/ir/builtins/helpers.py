"""WGSL functions for built-ins that WGSL or its drivers lack, as text for any width.

Each is a format template: {T} is f32 or vec4f, {I} i32 or vec4i, {U} u32 or vec4u, {B}
bool or vec4<bool>, and {S} a suffix of the name, empty or 4.  They choose by `select` and
not by `if`, so that the four elements of a vector may take different branches.  They avoid
formulas that a compiler's reassociation would spoil, such as `(1 + x) - 1`.  The polynomials
are minimax fits made for kerngen; the rows of `kerngen.ir.builtins.table` state the measured
error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True)
class Helper:
    """A WGSL function that shaders declare: its name, and its text as a template."""

    name: str
    text: str


ERF: Final = Helper(
    "erf",
    """\
// The error function: by x * p(x * x) up to 1, and from there by 1 - exp(-a * q(a)).
fn erf{S}(x: {T}) -> {T} {{
    let s = x * x;
    var p = s * -0.00056601531 + 0.0049247891;
    p = p * s - 0.026717708;
    p = p * s + 0.11280411;
    p = p * s - 0.37612355;
    p = p * s + 1.1283791;
    let a = min(abs(x), {T}(4.0));
    var q = a * -0.00021018313 + 0.0031831255;
    q = q * a - 0.022786111;
    q = q * a + 0.10509671;
    q = q * a + 0.63584638;
    q = q * a + 1.1284755;
    return select(sign(x) * (1.0 - exp(-a * q)), x * p, abs(x) < {T}(1.0));
}}
""",
)

LOG1P: Final = Helper(
    "log1p",
    """\
// log(1 + x); near 0 it is 2 atanh(s) for s = x / (2 + x).
fn log1p{S}(x: {T}) -> {T} {{
    let s = x / (2.0 + x);
    let t = s * s;
    var p = t * 0.090909091 + 0.11111111;
    p = p * t + 0.14285714;
    p = p * t + 0.2;
    p = p * t + 0.33333333;
    let near = 2.0 * s + 2.0 * s * t * p;
    return select(log(1.0 + x), near, abs(x) < {T}(0.5));
}}
""",
)

EXPM1: Final = Helper(
    "expm1",
    """\
// exp(x) - 1; near 0 by the series of exp without its first term.
fn expm1{S}(x: {T}) -> {T} {{
    var p = x * 2.4801587e-5 + 0.00019841270;
    p = p * x + 0.0013888889;
    p = p * x + 0.0083333333;
    p = p * x + 0.041666667;
    p = p * x + 0.16666667;
    p = p * x + 0.5;
    let near = x + x * x * p;
    return select(exp(x) - 1.0, near, abs(x) < {T}(0.5));
}}
""",
)

ASINH: Final = Helper(
    "asinh",
    """\
// The inverse of sinh, by |x|: some drivers lose digits below 0.  Near 0 by its series;
// from where the square would overflow, log(2 |x|).
fn asinh{S}(x: {T}) -> {T} {{
    let a = abs(x);
    let s = min(a * a, {T}(0.0625));
    var p = s * 0.030381944 - 0.044642857;
    p = p * s + 0.075;
    p = p * s - 0.16666667;
    let far = select(log(a + sqrt(a * a + 1.0)), log(a) + 0.69314718, a > {T}(1e9));
    return select(sign(x) * far, x + x * s * p, a < {T}(0.25));
}}
""",
)

IS_NAN: Final = Helper(
    "is_nan",
    """\
// By the bits: an implementation may assume that no value is NaN.
fn is_nan{S}(x: {T}) -> {B} {{
    return (bitcast<{U}>(x) & {U}(0x7fffffffu)) > {U}(0x7f800000u);
}}
""",
)

IS_FINITE: Final = Helper(
    "is_finite",
    """\
// By the bits: an implementation may assume that every value is finite.
fn is_finite{S}(x: {T}) -> {B} {{
    return (bitcast<{U}>(x) & {U}(0x7fffffffu)) < {U}(0x7f800000u);
}}
""",
)

BITS: Final = Helper(
    "bits",
    """\
// The bits of a float.
fn bits{S}(x: {T}) -> {U} {{
    return bitcast<{U}>(x);
}}
""",
)

POWER: Final = Helper(
    "power",
    """\
// x to the power y: of a negative x for whole y alone, else it is not a number.
fn power{S}(x: {T}, y: {T}) -> {T} {{
    let size = pow(abs(x), y);
    let odd = floor(y * 0.5) * 2.0 != y;
    let nan = bitcast<{T}>(bitcast<{U}>(size) | {U}(0x7fc00000u));
    let below = select(nan, select(size, -size, odd), floor(y) == y);
    return select(select(size, below, x < {T}(0.0)), {T}(1.0), y == {T}(0.0));
}}
""",
)

FLOOR_DIV: Final = Helper(
    "floor_div",
    """\
// The quotient rounded down; x for y = 0.
fn floor_div{S}(x: {I}, y: {I}) -> {I} {{
    let quotient = x / y;
    let rest = x - quotient * y;
    let above = (rest != {I}(0)) & ((rest ^ y) < {I}(0)) & (y != {I}(0));
    return quotient - select({I}(0), {I}(1), above);
}}
""",
)

FLOOR_MOD: Final = Helper(
    "floor_mod",
    """\
// The remainder with the sign of y; 0 for y = 0.
fn floor_mod{S}(x: {I}, y: {I}) -> {I} {{
    let rest = x - x / y * y;
    let differs = (rest != {I}(0)) & ((rest ^ y) < {I}(0));
    return select(select(rest, rest + y, differs), {I}(0), y == {I}(0));
}}
""",
)
