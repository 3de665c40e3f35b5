"""Where WGSL puts every scalar of a type: worked out from the specification's text.

It shares nothing with `kerngen.layout`: the sizes are the specification's own table
(14.4.1), row by row, and the rest follows its sentences one by one.  In the uniform
address space it has kerngen's promise beside that: a matrix whose columns don't fill 16
bytes is kept as an array of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.ir.memory import FixedArray, Leaf, Member, MemoryType, Struct

TABLE: Final = {
    "i32": (4, 4),
    "u32": (4, 4),
    "f32": (4, 4),
    "f16": (2, 2),
    "vec2i": (8, 8),
    "vec2u": (8, 8),
    "vec2f": (8, 8),
    "vec2h": (4, 4),
    "vec3i": (16, 12),
    "vec3u": (16, 12),
    "vec3f": (16, 12),
    "vec3h": (8, 6),
    "vec4i": (16, 16),
    "vec4u": (16, 16),
    "vec4f": (16, 16),
    "vec4h": (8, 8),
    "mat2x2f": (8, 16),
    "mat2x2h": (4, 8),
    "mat3x2f": (8, 24),
    "mat3x2h": (4, 12),
    "mat4x2f": (8, 32),
    "mat4x2h": (4, 16),
    "mat2x3f": (16, 32),
    "mat2x3h": (8, 16),
    "mat3x3f": (16, 48),
    "mat3x3h": (8, 24),
    "mat4x3f": (16, 64),
    "mat4x3h": (8, 32),
    "mat2x4f": (16, 32),
    "mat2x4h": (8, 16),
    "mat3x4f": (16, 48),
    "mat3x4h": (8, 24),
    "mat4x4f": (16, 64),
    "mat4x4h": (8, 32),
}
"""AlignOf and SizeOf."""

Place = tuple[int, int]
"""The offset of a scalar, and its size."""


def align_and_size(type_: MemoryType, *, uniform: bool) -> tuple[int, int]:
    """Return what a type asks for within another one."""
    match type_:
        case Leaf(spelling=name):
            align, size = TABLE[name]
            columns = _columns(name)
            if uniform and columns and size // columns % 16:
                return 16, 16 * columns
            return align, size
        case FixedArray(element=element, length=length):
            align, stride = _array(element, uniform=uniform)
            return align, stride * length
        case Struct(members=members):
            *_, align, end = _walk(members, uniform=uniform)
            align = _up(align, 16) if uniform else align
            return align, _up(end, align)


def size_of_members(members: tuple[Member, ...], *, uniform: bool) -> int:
    """Return the size of a struct that stands in no other."""
    *_, align, end = _walk(members, uniform=uniform)
    return _up(end, align)


def scalars(type_: MemoryType, at: int, *, uniform: bool) -> Iterator[Place]:
    """Yield every scalar of a type that starts at `at`, in the declared order."""
    match type_:
        case Leaf(spelling=name):
            unit = 2 if name.endswith(("h", "16")) else 4
            columns = _columns(name) or 1
            _, size = align_and_size(type_, uniform=uniform)
            rows = int(name[-2]) if name[:3] == "mat" else _width(name)
            for column in range(columns):
                start = at + column * (size // columns)
                yield from ((start + row * unit, unit) for row in range(rows))
        case FixedArray(element=element, length=length):
            _, stride = _array(element, uniform=uniform)
            for number in range(length):
                yield from scalars(element, at + number * stride, uniform=uniform)
        case Struct(members=members):
            yield from scalars_of_members(members, at, uniform=uniform)


def scalars_of_members(
    members: tuple[Member, ...], at: int, *, uniform: bool
) -> Iterator[Place]:
    """Yield every scalar of a struct's members."""
    offsets = _walk(members, uniform=uniform)[:-2]
    for member, offset in zip(members, offsets, strict=True):
        yield from scalars(member.type, at + offset, uniform=uniform)


def _walk(members: tuple[Member, ...], *, uniform: bool) -> tuple[int, ...]:
    """Return the offset of each member, then the struct's alignment and its end."""
    offsets: list[int] = []
    end, most = 0, 1
    for member in members:
        align, size = align_and_size(member.type, uniform=uniform)
        align = max(align, member.align or 1)
        end = _up(end, align)
        offsets.append(end)
        reserved = max(size, member.size or 0)
        if uniform and isinstance(member.type, Struct):
            reserved = _up(reserved, 16)
        end += reserved
        most = max(most, align)
    return *offsets, most, end


def _array(element: MemoryType, *, uniform: bool) -> tuple[int, int]:
    """Return the alignment and the stride of an array."""
    align, size = align_and_size(element, uniform=uniform)
    stride = _up(size, align)
    return (_up(align, 16), _up(stride, 16)) if uniform else (align, stride)


def _columns(name: str) -> int:
    return int(name[3]) if name.startswith("mat") else 0


def _width(name: str) -> int:
    return int(name[3]) if name.startswith("vec") else 1


def _up(number: int, unit: int) -> int:
    while number % unit:
        number += 1
    return number
