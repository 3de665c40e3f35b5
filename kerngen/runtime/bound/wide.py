"""Numbers of 64 bits, which naga has and WGSL lacks: elements of bound shaders.

No kernel reads them, so that they are not exported by `kerngen.runtime`.  naga's
`vec2<u64>` is `vec2u64` here.
"""

from __future__ import annotations

from math import inf
from typing import final

import numpy as np

from kerngen.runtime.values.elements import Leaf, Number

I64 = Number("i64", np.dtype("<i8"), "q", -(2**63), 2**63 - 1)
U64 = Number("u64", np.dtype("<u8"), "Q", 0, 2**64 - 1)
F64 = Number("f64", np.dtype("<f8"), "d", -inf, inf, inf)


@final
class i64(Leaf, of=I64):
    """Signed 64-bit integers."""

    __slots__ = ()


@final
class vec2i64(Leaf, of=I64, shape=(2,), stride=16):
    """Two signed 64-bit integers."""

    __slots__ = ()


@final
class vec3i64(Leaf, of=I64, shape=(3,), stride=32):
    """Three signed 64-bit integers."""

    __slots__ = ()


@final
class vec4i64(Leaf, of=I64, shape=(4,), stride=32):
    """Four signed 64-bit integers."""

    __slots__ = ()


@final
class u64(Leaf, of=U64):
    """Unsigned 64-bit integers."""

    __slots__ = ()


@final
class vec2u64(Leaf, of=U64, shape=(2,), stride=16):
    """Two unsigned 64-bit integers."""

    __slots__ = ()


@final
class vec3u64(Leaf, of=U64, shape=(3,), stride=32):
    """Three unsigned 64-bit integers."""

    __slots__ = ()


@final
class vec4u64(Leaf, of=U64, shape=(4,), stride=32):
    """Four unsigned 64-bit integers."""

    __slots__ = ()


@final
class f64(Leaf, of=F64):
    """64-bit floats."""

    __slots__ = ()


@final
class vec2f64(Leaf, of=F64, shape=(2,), stride=16):
    """Two 64-bit floats."""

    __slots__ = ()


@final
class vec3f64(Leaf, of=F64, shape=(3,), stride=32):
    """Three 64-bit floats."""

    __slots__ = ()


@final
class vec4f64(Leaf, of=F64, shape=(4,), stride=32):
    """Four 64-bit floats."""

    __slots__ = ()


@final
class mat2x2f64(Leaf, of=F64, shape=(2, 2), stride=16):
    """Two columns of two 64-bit floats."""

    __slots__ = ()


@final
class mat2x3f64(Leaf, of=F64, shape=(2, 3), stride=32):
    """Two columns of three 64-bit floats."""

    __slots__ = ()


@final
class mat2x4f64(Leaf, of=F64, shape=(2, 4), stride=32):
    """Two columns of four 64-bit floats."""

    __slots__ = ()


@final
class mat3x2f64(Leaf, of=F64, shape=(3, 2), stride=16):
    """Three columns of two 64-bit floats."""

    __slots__ = ()


@final
class mat3x3f64(Leaf, of=F64, shape=(3, 3), stride=32):
    """Three columns of three 64-bit floats."""

    __slots__ = ()


@final
class mat3x4f64(Leaf, of=F64, shape=(3, 4), stride=32):
    """Three columns of four 64-bit floats."""

    __slots__ = ()


@final
class mat4x2f64(Leaf, of=F64, shape=(4, 2), stride=16):
    """Four columns of two 64-bit floats."""

    __slots__ = ()


@final
class mat4x3f64(Leaf, of=F64, shape=(4, 3), stride=32):
    """Four columns of three 64-bit floats."""

    __slots__ = ()


@final
class mat4x4f64(Leaf, of=F64, shape=(4, 4), stride=32):
    """Four columns of four 64-bit floats."""

    __slots__ = ()
