"""The rows of trigonometric and hyperbolic built-ins, which compute in f32.

Sections named in `source` are those of the WGSL specification, as in `floats.py`.
"""

from __future__ import annotations

import math

from kerngen.ir.builtins.floats import BY_RULE, INHERITED
from kerngen.ir.builtins.helpers import ASINH
from kerngen.ir.builtins.row import Accuracy, Builtin, Variation, same
from kerngen.ir.types import Scalar

_ONE, _TWO = same(1, Scalar.F32), same(2, Scalar.F32)
# Intervals of arguments in which the error bounds below hold.
_TURN = (-math.pi, math.pi)
_TEN = (-10.0, 10.0)

ANGLE_ROWS = (
    Builtin(
        name="sin",
        overloads=_ONE,
        doc="The sine.",
        numpy="np.sin({0})",
        javascript="Math.sin({0})",
        scalar=math.sin,
        partials=("cos(x)",),
        accuracy=Accuracy(absolute=2.0**-11, source=BY_RULE + ", between -pi and pi"),
        domain=(_TURN,),
        variation=Variation.LIPSCHITZ,
    ),
    Builtin(
        name="cos",
        overloads=_ONE,
        doc="The cosine.",
        numpy="np.cos({0})",
        javascript="Math.cos({0})",
        scalar=math.cos,
        partials=("-sin(x)",),
        accuracy=Accuracy(absolute=2.0**-11, source=BY_RULE + ", between -pi and pi"),
        domain=(_TURN,),
        variation=Variation.LIPSCHITZ,
    ),
    Builtin(
        name="tan",
        overloads=_ONE,
        doc="The tangent.",
        numpy="np.tan({0})",
        javascript="Math.tan({0})",
        scalar=math.tan,
        partials=("1.0 + f * f",),
        accuracy=Accuracy(
            ulps=2.5,
            absolute=2.0**-9,
            source=INHERITED + "sin(x) / cos(x), |x| up to pi / 4",
        ),
        domain=((-math.pi / 4, math.pi / 4),),
    ),
    Builtin(
        name="asin",
        overloads=_ONE,
        doc="The angle with that sine, in radians.",
        numpy="np.arcsin({0})",
        javascript="Math.asin({0})",
        scalar=math.asin,
        partials=("inverseSqrt((1.0 - x) * (1.0 + x))",),
        accuracy=Accuracy(ulps=4096.0, absolute=6.81e-5, source=BY_RULE),
        domain=((-1.0, 1.0),),
    ),
    Builtin(
        name="acos",
        overloads=_ONE,
        doc="The angle with that cosine, in radians.",
        numpy="np.arccos({0})",
        javascript="Math.acos({0})",
        scalar=math.acos,
        partials=("-inverseSqrt((1.0 - x) * (1.0 + x))",),
        accuracy=Accuracy(ulps=4096.0, absolute=6.81e-5, source=BY_RULE),
        domain=((-1.0, 1.0),),
    ),
    Builtin(
        name="atan",
        overloads=_ONE,
        doc="The angle with that tangent, in radians.",
        numpy="np.arctan({0})",
        javascript="Math.atan({0})",
        scalar=math.atan,
        partials=("1.0 / (1.0 + x * x)",),
        accuracy=Accuracy(ulps=4096.0, source=BY_RULE),
    ),
    Builtin(
        name="atan2",
        overloads=_TWO,
        doc="The angle, in radians, of a point: its y is given first, then its x.",
        numpy="np.arctan2({0}, {1})",
        javascript="Math.atan2({0}, {1})",
        scalar=math.atan2,
        partials=("y / (x * x + y * y)", "-x / (x * x + y * y)"),
        accuracy=Accuracy(ulps=4096.0, source=BY_RULE),
        domain=(_TEN, (0.1, 10.0)),
    ),
    Builtin(
        name="sinh",
        overloads=_ONE,
        doc="The hyperbolic sine.",
        numpy="np.sinh({0})",
        javascript="Math.sinh({0})",
        scalar=math.sinh,
        partials=("cosh(x)",),
        accuracy=Accuracy(
            ulps=8.0,
            ulps_per_argument=4.0,
            absolute=2.0**-21,
            source=INHERITED + "(exp(x) - exp(-x)) / 2",
        ),
        domain=(_TEN,),
    ),
    Builtin(
        name="cosh",
        overloads=_ONE,
        doc="The hyperbolic cosine.",
        numpy="np.cosh({0})",
        javascript="Math.cosh({0})",
        scalar=math.cosh,
        partials=("sinh(x)",),
        accuracy=Accuracy(
            ulps=5.0,
            ulps_per_argument=2.0,
            source=INHERITED + "(exp(x) + exp(-x)) / 2",
        ),
        domain=(_TEN,),
    ),
    Builtin(
        name="tanh",
        overloads=_ONE,
        doc="The hyperbolic tangent; some drivers overflow unless |x| is kept small.",
        # From |x| = 9.02 on, tanh(x) is 1 or -1 in f32.
        wgsl="tanh(clamp({0}, {T}(-15.0), {T}(15.0)))",
        numpy="np.tanh({0})",
        javascript="Math.tanh({0})",
        scalar=math.tanh,
        partials=("1.0 - f * f",),
        accuracy=Accuracy(ulps=12.0, absolute=1e-5, source=BY_RULE),
    ),
    Builtin(
        name="asinh",
        overloads=_ONE,
        doc="The inverse of sinh.",
        helper=ASINH,
        numpy="np.arcsinh({0})",
        javascript="Math.asinh({0})",
        scalar=math.asinh,
        partials=("inverseSqrt(x * x + 1.0)",),
        accuracy=Accuracy(
            ulps=2.0,
            absolute=2.0**-20,
            source="ours: a series near 0, else by WGSL's log",
        ),
        domain=(_TEN,),
    ),
    Builtin(
        name="acosh",
        overloads=_ONE,
        doc="The inverse of cosh, for 1 and more.",
        numpy="np.arccosh({0})",
        javascript="Math.acosh({0})",
        scalar=math.acosh,
        partials=("inverseSqrt((x - 1.0) * (x + 1.0))",),
        accuracy=Accuracy(
            ulps=8.0, absolute=2.0**-19, source=INHERITED + "log(x + sqrt(x * x - 1))"
        ),
        domain=((1.0, 10.0),),
    ),
    Builtin(
        name="atanh",
        overloads=_ONE,
        doc="The inverse of tanh, between -1 and 1.",
        numpy="np.arctanh({0})",
        javascript="Math.atanh({0})",
        scalar=math.atanh,
        partials=("1.0 / ((1.0 - x) * (1.0 + x))",),
        accuracy=Accuracy(
            ulps=8.0,
            absolute=2.0**-19,
            source=INHERITED + "log((1 + x) / (1 - x)) / 2",
        ),
        domain=((-0.9, 0.9),),
    ),
    Builtin(
        name="degrees",
        overloads=_ONE,
        doc="Radians to degrees.",
        numpy="np.degrees({0})",
        javascript="{0} * (180 / Math.PI)",
        scalar=math.degrees,
        partials=("57.29577951308232",),
        accuracy=Accuracy(ulps=1.5, source=INHERITED + "x * 57.295779513082322865"),
    ),
    Builtin(
        name="radians",
        overloads=_ONE,
        doc="Degrees to radians.",
        numpy="np.radians({0})",
        javascript="{0} * (Math.PI / 180)",
        scalar=math.radians,
        partials=("0.017453292519943295",),
        accuracy=Accuracy(ulps=1.5, source=INHERITED + "x * 0.017453292519943295474"),
    ),
)
