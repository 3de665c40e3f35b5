"""The rows of the built-ins that compute in f32.

Sections named in `source` are those of the WGSL specification; where it says that an
error is inherited from a formula, the bound is that formula's, worked out for arguments
of moderate size.  Rows of ours say what was measured.
"""

from __future__ import annotations

from kerngen.ir.builtin import Accuracy, Builtin, Overload
from kerngen.ir.builtins_shared import BOOL, EXACT, F32, I32, same

_BY_RULE = "WGSL 15.7.4.1"
_INHERITED = "WGSL 15.7.4.2, inherited from "

FLOAT_ROWS = (
    Builtin(
        "saturate",
        same(1, F32),
        "saturate({0})",
        "np.clip({0}, 0.0, 1.0)",
        EXACT,
        "The argument, kept between 0 and 1.",
    ),
    Builtin(
        "floor",
        same(1, F32),
        "floor({0})",
        "np.floor({0})",
        EXACT,
        "The largest whole number not above.",
    ),
    Builtin(
        "ceil",
        same(1, F32),
        "ceil({0})",
        "np.ceil({0})",
        EXACT,
        "The smallest whole number not below.",
    ),
    Builtin(
        "round",
        same(1, F32),
        "round({0})",
        "np.rint({0})",
        EXACT,
        "The nearest whole number; of two, the even one.",
    ),
    Builtin(
        "trunc",
        same(1, F32),
        "trunc({0})",
        "np.trunc({0})",
        EXACT,
        "The whole part, rounded toward 0.",
    ),
    Builtin(
        "fract",
        same(1, F32),
        "fract({0})",
        "np.mod({0}, 1.0)",
        Accuracy(ulps=0.5, source=_INHERITED + "x - floor(x)"),
        "What is above the largest whole number not above.",
    ),
    Builtin(
        "sqrt",
        same(1, F32),
        "sqrt({0})",
        "np.sqrt({0})",
        Accuracy(ulps=4.5, source=_INHERITED + "1 / inverseSqrt(x)"),
        "The square root.",
    ),
    Builtin(
        "inverseSqrt",
        same(1, F32),
        "inverseSqrt({0})",
        "np.reciprocal(np.sqrt({0}))",
        Accuracy(ulps=2.0, source=_BY_RULE),
        "One over the square root.",
    ),
    Builtin(
        "exp",
        same(1, F32),
        "exp({0})",
        "np.exp({0})",
        Accuracy(ulps=3.0, ulps_per_argument=2.0, source=_BY_RULE),
        "e to a power.",
    ),
    Builtin(
        "exp2",
        same(1, F32),
        "exp2({0})",
        "np.exp2({0})",
        Accuracy(ulps=3.0, ulps_per_argument=2.0, source=_BY_RULE),
        "2 to a power.",
    ),
    Builtin(
        "log",
        same(1, F32),
        "log({0})",
        "np.log({0})",
        Accuracy(ulps=3.0, absolute=2.0**-21, source=_BY_RULE),
        "The natural logarithm.",
    ),
    Builtin(
        "log2",
        same(1, F32),
        "log2({0})",
        "np.log2({0})",
        Accuracy(ulps=3.0, absolute=2.0**-21, source=_BY_RULE),
        "The logarithm to base 2.",
    ),
    Builtin(
        "pow",
        same(2, F32),
        "pow({0}, {1})",
        "ref.power({0}, {1})",
        Accuracy(
            ulps=640.0, source=_INHERITED + "exp2(y * log2(x)), |y * log2(x)| up to 127"
        ),
        "The first argument, not negative, to the power of the second.",
    ),
    Builtin(
        "sin",
        same(1, F32),
        "sin({0})",
        "np.sin({0})",
        Accuracy(absolute=2.0**-11, source=_BY_RULE + ", between -pi and pi"),
        "The sine.",
    ),
    Builtin(
        "cos",
        same(1, F32),
        "cos({0})",
        "np.cos({0})",
        Accuracy(absolute=2.0**-11, source=_BY_RULE + ", between -pi and pi"),
        "The cosine.",
    ),
    Builtin(
        "tan",
        same(1, F32),
        "tan({0})",
        "np.tan({0})",
        Accuracy(
            ulps=2.5,
            absolute=2.0**-9,
            source=_INHERITED + "sin(x) / cos(x), |x| up to pi / 4",
        ),
        "The tangent.",
    ),
    Builtin(
        "asin",
        same(1, F32),
        "asin({0})",
        "np.arcsin({0})",
        Accuracy(ulps=4096.0, absolute=6.81e-5, source=_BY_RULE),
        "The angle with that sine, in radians.",
    ),
    Builtin(
        "acos",
        same(1, F32),
        "acos({0})",
        "np.arccos({0})",
        Accuracy(ulps=4096.0, absolute=6.81e-5, source=_BY_RULE),
        "The angle with that cosine, in radians.",
    ),
    Builtin(
        "atan",
        same(1, F32),
        "atan({0})",
        "np.arctan({0})",
        Accuracy(ulps=4096.0, source=_BY_RULE),
        "The angle with that tangent, in radians.",
    ),
    Builtin(
        "atan2",
        same(2, F32),
        "atan2({0}, {1})",
        "np.arctan2({0}, {1})",
        Accuracy(ulps=4096.0, source=_BY_RULE),
        "The angle of the point (x, y), given as y and x, in radians.",
    ),
    Builtin(
        "sinh",
        same(1, F32),
        "sinh({0})",
        "np.sinh({0})",
        Accuracy(
            ulps=8.0,
            ulps_per_argument=4.0,
            absolute=2.0**-21,
            source=_INHERITED + "(exp(x) - exp(-x)) / 2",
        ),
        "The hyperbolic sine.",
    ),
    Builtin(
        "cosh",
        same(1, F32),
        "cosh({0})",
        "np.cosh({0})",
        Accuracy(
            ulps=5.0,
            ulps_per_argument=2.0,
            source=_INHERITED + "(exp(x) + exp(-x)) / 2",
        ),
        "The hyperbolic cosine.",
    ),
    Builtin(
        "tanh",
        same(1, F32),
        "tanh(clamp({0}, {T}(-15.0), {T}(15.0)))",
        "np.tanh({0})",
        Accuracy(ulps=12.0, absolute=1e-5, source=_BY_RULE),
        "The hyperbolic tangent; some drivers overflow unless |x| is kept small.",
    ),
    Builtin(
        "asinh",
        same(1, F32),
        "asinh({0})",
        "np.arcsinh({0})",
        Accuracy(
            ulps=8.0, absolute=2.0**-19, source=_INHERITED + "log(x + sqrt(x * x + 1))"
        ),
        "The inverse of sinh.",
    ),
    Builtin(
        "acosh",
        same(1, F32),
        "acosh({0})",
        "np.arccosh({0})",
        Accuracy(
            ulps=8.0, absolute=2.0**-19, source=_INHERITED + "log(x + sqrt(x * x - 1))"
        ),
        "The inverse of cosh, for 1 and more.",
    ),
    Builtin(
        "atanh",
        same(1, F32),
        "atanh({0})",
        "np.arctanh({0})",
        Accuracy(
            ulps=8.0,
            absolute=2.0**-19,
            source=_INHERITED + "log((1 + x) / (1 - x)) / 2",
        ),
        "The inverse of tanh, between -1 and 1.",
    ),
    Builtin(
        "degrees",
        same(1, F32),
        "degrees({0})",
        "np.degrees({0})",
        Accuracy(ulps=1.5, source=_INHERITED + "x * 57.295779513082322865"),
        "Radians to degrees.",
    ),
    Builtin(
        "radians",
        same(1, F32),
        "radians({0})",
        "np.radians({0})",
        Accuracy(ulps=1.5, source=_INHERITED + "x * 0.017453292519943295474"),
        "Degrees to radians.",
    ),
    Builtin(
        "fma",
        same(3, F32),
        "fma({0}, {1}, {2})",
        "np.add(np.multiply({0}, {1}), {2})",
        Accuracy(ulps=1.5, source=_INHERITED + "x * y + z, terms of one sign"),
        "x * y + z, rounded once or twice.",
    ),
    Builtin(
        "mix",
        same(3, F32),
        "mix({0}, {1}, {2})",
        "np.add(np.multiply({0}, np.subtract(1.0, {2})), np.multiply({1}, {2}))",
        Accuracy(
            ulps=3.0, source=_INHERITED + "x * (1 - z) + y * z, terms of one sign"
        ),
        "x * (1 - a) + y * a.",
    ),
    Builtin(
        "step",
        same(2, F32),
        "step({0}, {1})",
        "np.heaviside(np.subtract({1}, {0}), 1.0)",
        EXACT,
        "1 from the edge, given first, on; below it 0.",
    ),
    Builtin(
        "smoothstep",
        same(3, F32),
        "smoothstep({0}, {1}, {2})",
        "ref.smoothstep({0}, {1}, {2})",
        Accuracy(
            ulps=12.0, absolute=2.0**-20, source=_INHERITED + "t * t * (3 - 2 * t)"
        ),
        "A smooth step from 0 at the first argument to 1 at the second.",
    ),
    Builtin(
        "ldexp",
        (Overload((F32, I32), F32),),
        "ldexp({0}, {1})",
        "ref.ldexp({0}, {1})",
        Accuracy(ulps=0.5, source=_BY_RULE),
        "x times 2 to a whole power.",
    ),
    Builtin(
        "quantizeToF16",
        same(1, F32),
        "quantizeToF16({0})",
        "ref.quantize_to_f16({0})",
        Accuracy(ulps=8192.0, source=_BY_RULE + ", a step of f16"),
        "Rounded to an f16 and back.",
    ),
    Builtin(
        "erf",
        same(1, F32),
        "erf({0})",
        "ref.erf({0})",
        Accuracy(absolute=5e-7, source="1.3e-7 measured (lavapipe), and exp's by WGSL"),
        "The error function.",
    ),
    Builtin(
        "log1p",
        same(1, F32),
        "log1p({0})",
        "np.log1p({0})",
        Accuracy(
            ulps=8.0,
            absolute=2.0**-21,
            source="3.7 ulp measured (lavapipe), and log's by WGSL",
        ),
        "log(1 + x), exact for small x too.",
    ),
    Builtin(
        "expm1",
        same(1, F32),
        "expm1({0})",
        "np.expm1({0})",
        Accuracy(
            ulps=10.0,
            ulps_per_argument=2.0,
            source="16 ulp at 20 measured (lavapipe), and exp's by WGSL",
        ),
        "exp(x) - 1, exact for small x too.",
    ),
    Builtin(
        "is_nan",
        (Overload((F32,), BOOL),),
        "is_nan({0})",
        "np.isnan({0})",
        EXACT,
        "Whether the argument is not a number, by its bits.",
    ),
    Builtin(
        "is_finite",
        (Overload((F32,), BOOL),),
        "is_finite({0})",
        "np.isfinite({0})",
        EXACT,
        "Whether the argument is a number and not infinite, by its bits.",
    ),
)
