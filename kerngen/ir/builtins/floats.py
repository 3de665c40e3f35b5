"""The rows of built-ins that compute in f32, without those of angles.

Sections named in `source` are those of the WGSL specification.  Where it states that an
error is inherited from a formula, the bound is that of the formula for arguments in
`domain`.  Functions that WGSL lacks have a measured bound.
"""

from __future__ import annotations

import math
import operator
import struct
from typing import Any

from kerngen.ir.builtins.helpers import ERF, EXPM1, IS_FINITE, IS_NAN, LOG1P, POWER
from kerngen.ir.builtins.row import (
    MODERATE,
    Accuracy,
    Builtin,
    Overload,
    Refusal,
    Variation,
    same,
)
from kerngen.ir.types import F32_MAX, Scalar
from kerngen.plan import hostmath

F32, I32, BOOL = Scalar.F32, Scalar.I32, Scalar.BOOL

BY_RULE = "WGSL 15.7.4.1"
"""The source of errors that WGSL states."""

INHERITED = "WGSL 15.7.4.2, inherited from "
"""The source of errors that WGSL derives from a formula, which follows."""

# Intervals of arguments: not negative; and positive without subnormal numbers, which WGSL
# lets an implementation flush to 0.
_NATURAL = (0.0, F32_MAX)
_NORMAL = (2.0**-126, F32_MAX)


def _step_above(size: float) -> float:
    return size + 1.0


def _saturate(x: float) -> float:
    return min(max(x, 0.0), 1.0)


def _fract(x: float) -> float:
    return x - math.floor(x)


def _inverse_sqrt(x: float) -> float:
    return 1.0 / math.sqrt(x)


def _exp2(x: float) -> float:
    return math.pow(2.0, x)


def _fma(x: float, y: float, z: float) -> float:
    return x * y + z


def _mix(x: float, y: float, part: float) -> float:
    return x * (1.0 - part) + y * part


def _step(edge: float, x: float) -> float:
    return 1.0 if edge <= x else 0.0


def _smoothstep(low: float, high: float, x: float) -> float:
    part = _saturate((x - low) / (high - low))
    return part * part * (3.0 - 2.0 * part)


def _terms_of_mix(x: Any, y: Any, part: Any) -> Any:
    return abs(x) * (1 + abs(part)) + abs(y * part)


def _apart(low: Any, high: Any, _: Any) -> Any:
    return low < high


def _is_above_128(exponent: int) -> bool:
    return exponent > 128


def _ldexp(x: float, exponent: float) -> float:
    return math.ldexp(x, int(exponent))


def _quantize(x: float) -> float:
    (result,) = struct.unpack("<e", struct.pack("<e", x))
    return float(result)


_PART = "saturate((z - x) / (y - x))"
_RISE = f"6.0 * {_PART} * (1.0 - {_PART}) / (y - x)"
"""The derivative of `smoothstep(x, y, z)` by z; 0 outside of the edges."""

FLOAT_ROWS = (
    Builtin(
        name="saturate",
        overloads=same(1, F32),
        doc="The argument, kept between 0 and 1.",
        numpy="np.clip({0}, 0.0, 1.0)",
        javascript="$host.min($host.max({0}, 0), 1)",
        scalar=_saturate,
        partials=(
            "if x < 0.0 or x > 1.0 { 0.0 } else if 0.0 < x and x < 1.0 { 1.0 } else { 0.5 }",
        ),
    ),
    Builtin(
        name="floor",
        overloads=same(1, F32),
        doc="The largest whole number not above.",
        numpy="np.floor({0})",
        javascript="Math.floor({0})",
        scalar=math.floor,
        partials=("0.0",),
        variation=Variation.STEPS,
        largest=_step_above,
    ),
    Builtin(
        name="ceil",
        overloads=same(1, F32),
        doc="The smallest whole number not below.",
        numpy="np.ceil({0})",
        javascript="Math.ceil({0})",
        scalar=math.ceil,
        partials=("0.0",),
        variation=Variation.STEPS,
        largest=_step_above,
    ),
    Builtin(
        name="round",
        overloads=same(1, F32),
        doc="The nearest whole number; of two, the even one.",
        numpy="np.rint({0})",
        javascript="$host.round({0})",
        scalar=round,
        partials=("0.0",),
        variation=Variation.STEPS,
        largest=_step_above,
    ),
    Builtin(
        name="trunc",
        overloads=same(1, F32),
        doc="The whole part, rounded toward 0.",
        numpy="np.trunc({0})",
        javascript="Math.trunc({0})",
        scalar=math.trunc,
        partials=("0.0",),
        variation=Variation.STEPS,
        largest=_step_above,
    ),
    Builtin(
        name="fract",
        overloads=same(1, F32),
        doc="What is above the largest whole number not above.",
        numpy="np.mod({0}, 1.0)",
        javascript="{0} - Math.floor({0})",
        scalar=_fract,
        partials=("1.0",),
        accuracy=Accuracy(ulps=0.5, source=INHERITED + "x - floor(x)"),
        variation=Variation.JUMPS,
    ),
    Builtin(
        name="sqrt",
        overloads=same(1, F32),
        doc="The square root.",
        numpy="np.sqrt({0})",
        javascript="Math.sqrt({0})",
        scalar=hostmath.sqrt,
        host="hostmath.sqrt",
        partials=("0.5 / f",),
        accuracy=Accuracy(ulps=4.5, source=INHERITED + "1 / inverseSqrt(x)"),
        domain=(_NATURAL,),
    ),
    Builtin(
        name="inverseSqrt",
        overloads=same(1, F32),
        doc="One over the square root.",
        numpy="np.reciprocal(np.sqrt({0}))",
        javascript="1 / Math.sqrt({0})",
        scalar=_inverse_sqrt,
        partials=("-0.5 * f * f * f",),
        accuracy=Accuracy(ulps=2.0, source=BY_RULE),
        domain=(_NORMAL,),
    ),
    Builtin(
        name="exp",
        overloads=same(1, F32),
        doc="e to a power.",
        numpy="np.exp({0})",
        javascript="Math.exp({0})",
        scalar=hostmath.exp,
        host="hostmath.exp",
        partials=("f",),
        accuracy=Accuracy(ulps=3.0, ulps_per_argument=2.0, source=BY_RULE),
        # e^88 is still finite in f32, e^89 is not.
        domain=((-2 * F32_MAX, 88.0),),
    ),
    Builtin(
        name="exp2",
        overloads=same(1, F32),
        doc="2 to a power.",
        numpy="np.exp2({0})",
        javascript="2 ** {0}",
        scalar=_exp2,
        partials=("0.6931471805599453 * f",),
        accuracy=Accuracy(ulps=3.0, ulps_per_argument=2.0, source=BY_RULE),
        domain=((-2 * F32_MAX, 127.0),),
    ),
    Builtin(
        name="log",
        overloads=same(1, F32),
        doc="The natural logarithm.",
        numpy="np.log({0})",
        javascript="Math.log({0})",
        scalar=hostmath.log,
        host="hostmath.log",
        partials=("1.0 / x",),
        accuracy=Accuracy(ulps=3.0, absolute=2.0**-21, source=BY_RULE),
        domain=(_NORMAL,),
    ),
    Builtin(
        name="log2",
        overloads=same(1, F32),
        doc="The logarithm to base 2.",
        numpy="np.log2({0})",
        javascript="Math.log2({0})",
        scalar=math.log2,
        partials=("1.4426950408889634 / x",),
        accuracy=Accuracy(ulps=3.0, absolute=2.0**-21, source=BY_RULE),
        domain=(_NORMAL,),
    ),
    Builtin(
        name="pow",
        overloads=same(2, F32),
        doc="The first argument to the power of the second; NaN of a negative one to a fraction.",
        helper=POWER,
        numpy="np.power({0}, {1})",
        javascript="$host.pow({0}, {1})",
        scalar=hostmath.power,
        host="hostmath.power",
        # Not 0 times infinity where the first argument is 0, as in PyTorch.
        partials=(
            "if y == 0.0 { 0.0 } else { y * pow(x, y - 1.0) }",
            "if x == 0.0 and y >= 0.0 { 0.0 } else { f * log(x) }",
        ),
        accuracy=Accuracy(
            ulps=640.0, source=INHERITED + "exp2(y * log2(x)), |y * log2(x)| up to 127"
        ),
        domain=((0.01, 10.0), (-6.0, 6.0)),
    ),
    Builtin(
        name="fma",
        overloads=same(3, F32),
        doc="x * y + z, rounded once or twice.",
        numpy="np.add(np.multiply({0}, {1}), {2})",
        javascript="{0} * {1} + {2}",
        scalar=_fma,
        partials=("y", "x", "1.0"),
        accuracy=Accuracy(ulps=1.5, source=INHERITED + "x * y + z, terms of one sign"),
    ),
    Builtin(
        name="mix",
        overloads=same(3, F32),
        doc="x * (1 - z) + y * z.",
        numpy="np.add(np.multiply({0}, np.subtract(1.0, {2})), np.multiply({1}, {2}))",
        javascript="{0} * (1 - {2}) + {1} * {2}",
        scalar=_mix,
        partials=("1.0 - z", "z", "y - x"),
        accuracy=Accuracy(
            ulps=3.0,
            absolute=2.0**-20,
            source=INHERITED + "x * (1 - z) + y * z, terms of one sign below 9; "
            "SwiftShader computes x + (y - x) * z",
        ),
        domain=(MODERATE,) * 3,
        magnitude=_terms_of_mix,
        splats_last=True,
    ),
    Builtin(
        name="step",
        overloads=same(2, F32),
        doc="1 from the edge, given first, on; below it 0.",
        numpy="np.heaviside(np.subtract({1}, {0}), 1.0)",
        javascript="((d) => (d < 0 ? 0 : d >= 0 ? 1 : d))({1} - {0})",
        scalar=_step,
        partials=("0.0", "0.0"),
        variation=Variation.STEPS,
    ),
    Builtin(
        name="smoothstep",
        overloads=same(3, F32),
        doc="A smooth step from 0 at the first argument to 1 at the second.",
        numpy="ref.smoothstep({0}, {1}, {2})",
        javascript=(
            "((t) => t * t * (3 - 2 * t))"
            "($host.min($host.max(({2} - {0}) / ({1} - {0}), 0), 1))"
        ),
        scalar=_smoothstep,
        partials=(f"-{_RISE} * (1.0 - {_PART})", f"-{_RISE} * {_PART}", _RISE),
        accuracy=Accuracy(
            ulps=12.0, absolute=2.0**-20, source=INHERITED + "t * t * (3 - 2 * t)"
        ),
        domain=(MODERATE,) * 3,
        condition=_apart,
        refusals=(Refusal((0, 1), operator.eq, "both edges are the same"),),
    ),
    Builtin(
        name="ldexp",
        overloads=(Overload((F32, I32), F32),),
        doc="x times 2 to a whole power.",
        numpy="ref.ldexp({0}, {1})",
        javascript="((x, e) => x && x * 2 ** (e >> 1) * 2 ** (e - (e >> 1)))({0}, {1})",
        scalar=_ldexp,
        partials=("ldexp(1.0, y)", "0.0"),
        accuracy=Accuracy(ulps=0.5, source=BY_RULE),
        refusals=(Refusal((1,), _is_above_128, "the exponent is above 128"),),
    ),
    Builtin(
        name="quantizeToF16",
        overloads=same(1, F32),
        doc="Rounded to an f16 and back.",
        numpy="ref.quantize_to_f16({0})",
        scalar=_quantize,
        # Rounding is passed through, as PyTorch's casts to f16 do.
        partials=("1.0",),
        accuracy=Accuracy(ulps=8192.0, source=BY_RULE + ", a step of f16"),
        domain=((-1000.0, 1000.0),),
        variation=Variation.JUMPS,
    ),
    Builtin(
        name="erf",
        overloads=same(1, F32),
        doc="The error function.",
        helper=ERF,
        numpy="ref.erf({0})",
        scalar=math.erf,
        partials=("1.1283791670955126 * exp(-x * x)",),
        accuracy=Accuracy(
            absolute=5e-7, source="1.3e-7 measured (lavapipe), and exp's by WGSL"
        ),
    ),
    Builtin(
        name="log1p",
        overloads=same(1, F32),
        doc="log(1 + x), exact for small x too.",
        helper=LOG1P,
        numpy="np.log1p({0})",
        javascript="Math.log1p({0})",
        scalar=math.log1p,
        partials=("1.0 / (1.0 + x)",),
        accuracy=Accuracy(
            ulps=8.0,
            absolute=2.0**-21,
            source="3.7 ulp measured (lavapipe), and log's by WGSL",
        ),
        domain=((-0.99, 50.0),),
    ),
    Builtin(
        name="expm1",
        overloads=same(1, F32),
        doc="exp(x) - 1, exact for small x too.",
        helper=EXPM1,
        numpy="np.expm1({0})",
        javascript="Math.expm1({0})",
        scalar=math.expm1,
        partials=("exp(x)",),
        accuracy=Accuracy(
            ulps=10.0,
            ulps_per_argument=2.0,
            source="16 ulp at 20 measured (lavapipe), and exp's by WGSL",
        ),
        domain=((-20.0, 20.0),),
    ),
    Builtin(
        name="is_nan",
        overloads=(Overload((F32,), BOOL),),
        doc="Whether the argument is not a number, by its bits.",
        helper=IS_NAN,
        numpy="np.isnan({0})",
        javascript="Number.isNaN({0})",
        scalar=math.isnan,
    ),
    Builtin(
        name="is_finite",
        overloads=(Overload((F32,), BOOL),),
        doc="Whether the argument is a number and not infinite, by its bits.",
        helper=IS_FINITE,
        numpy="np.isfinite({0})",
        javascript="Number.isFinite({0})",
        scalar=math.isfinite,
    ),
)
