"""Vectors and matrices as element types, and as the types of fields and parameters.

Their strides are WGSL's: a vector of three takes the room of four.  A value of a matrix
is indexed by its column first, as in WGSL; `Mat4x3` is what type checkers call one.
"""

from __future__ import annotations

from typing import TypeAlias, final

from kerngen.runtime.values.elements import F16, F32, I32, U32, Leaf


@final
class vec2f(Leaf, of=F32, shape=(2,), stride=8):
    """Two 32-bit floats."""

    __slots__ = ()


@final
class vec3f(Leaf, of=F32, shape=(3,), stride=16):
    """Three 32-bit floats."""

    __slots__ = ()


@final
class vec4f(Leaf, of=F32, shape=(4,), stride=16):
    """Four 32-bit floats."""

    __slots__ = ()


@final
class vec2h(Leaf, of=F16, shape=(2,), stride=4):
    """Two 16-bit floats."""

    __slots__ = ()


@final
class vec3h(Leaf, of=F16, shape=(3,), stride=8):
    """Three 16-bit floats."""

    __slots__ = ()


@final
class vec4h(Leaf, of=F16, shape=(4,), stride=8):
    """Four 16-bit floats."""

    __slots__ = ()


@final
class vec2i(Leaf, of=I32, shape=(2,), stride=8):
    """Two signed integers."""

    __slots__ = ()


@final
class vec3i(Leaf, of=I32, shape=(3,), stride=16):
    """Three signed integers."""

    __slots__ = ()


@final
class vec4i(Leaf, of=I32, shape=(4,), stride=16):
    """Four signed integers."""

    __slots__ = ()


@final
class vec2u(Leaf, of=U32, shape=(2,), stride=8):
    """Two unsigned integers."""

    __slots__ = ()


@final
class vec3u(Leaf, of=U32, shape=(3,), stride=16):
    """Three unsigned integers."""

    __slots__ = ()


@final
class vec4u(Leaf, of=U32, shape=(4,), stride=16):
    """Four unsigned integers."""

    __slots__ = ()


@final
class mat2x2f(Leaf, of=F32, shape=(2, 2), stride=8):
    """Two columns of two 32-bit floats."""

    __slots__ = ()


@final
class mat2x3f(Leaf, of=F32, shape=(2, 3), stride=16):
    """Two columns of three 32-bit floats."""

    __slots__ = ()


@final
class mat2x4f(Leaf, of=F32, shape=(2, 4), stride=16):
    """Two columns of four 32-bit floats."""

    __slots__ = ()


@final
class mat3x2f(Leaf, of=F32, shape=(3, 2), stride=8):
    """Three columns of two 32-bit floats."""

    __slots__ = ()


@final
class mat3x3f(Leaf, of=F32, shape=(3, 3), stride=16):
    """Three columns of three 32-bit floats."""

    __slots__ = ()


@final
class mat3x4f(Leaf, of=F32, shape=(3, 4), stride=16):
    """Three columns of four 32-bit floats."""

    __slots__ = ()


@final
class mat4x2f(Leaf, of=F32, shape=(4, 2), stride=8):
    """Four columns of two 32-bit floats."""

    __slots__ = ()


@final
class mat4x3f(Leaf, of=F32, shape=(4, 3), stride=16):
    """Four columns of three 32-bit floats."""

    __slots__ = ()


@final
class mat4x4f(Leaf, of=F32, shape=(4, 4), stride=16):
    """Four columns of four 32-bit floats."""

    __slots__ = ()


@final
class mat2x2h(Leaf, of=F16, shape=(2, 2), stride=4):
    """Two columns of two 16-bit floats."""

    __slots__ = ()


@final
class mat2x3h(Leaf, of=F16, shape=(2, 3), stride=8):
    """Two columns of three 16-bit floats."""

    __slots__ = ()


@final
class mat2x4h(Leaf, of=F16, shape=(2, 4), stride=8):
    """Two columns of four 16-bit floats."""

    __slots__ = ()


@final
class mat3x2h(Leaf, of=F16, shape=(3, 2), stride=4):
    """Three columns of two 16-bit floats."""

    __slots__ = ()


@final
class mat3x3h(Leaf, of=F16, shape=(3, 3), stride=8):
    """Three columns of three 16-bit floats."""

    __slots__ = ()


@final
class mat3x4h(Leaf, of=F16, shape=(3, 4), stride=8):
    """Three columns of four 16-bit floats."""

    __slots__ = ()


@final
class mat4x2h(Leaf, of=F16, shape=(4, 2), stride=4):
    """Four columns of two 16-bit floats."""

    __slots__ = ()


@final
class mat4x3h(Leaf, of=F16, shape=(4, 3), stride=8):
    """Four columns of three 16-bit floats."""

    __slots__ = ()


@final
class mat4x4h(Leaf, of=F16, shape=(4, 4), stride=8):
    """Four columns of four 16-bit floats."""

    __slots__ = ()


Vec2: TypeAlias = tuple[float, float]
Vec3: TypeAlias = tuple[float, float, float]
Vec4: TypeAlias = tuple[float, float, float, float]
Mat2x2: TypeAlias = tuple[Vec2, Vec2]
Mat2x3: TypeAlias = tuple[Vec3, Vec3]
Mat2x4: TypeAlias = tuple[Vec4, Vec4]
Mat3x2: TypeAlias = tuple[Vec2, Vec2, Vec2]
Mat3x3: TypeAlias = tuple[Vec3, Vec3, Vec3]
Mat3x4: TypeAlias = tuple[Vec4, Vec4, Vec4]
Mat4x2: TypeAlias = tuple[Vec2, Vec2, Vec2, Vec2]
Mat4x3: TypeAlias = tuple[Vec3, Vec3, Vec3, Vec3]
Mat4x4: TypeAlias = tuple[Vec4, Vec4, Vec4, Vec4]
