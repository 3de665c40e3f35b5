"""The parts of an output's elements that are written: every member must be.

The elements of short arrays are distinguished.  A long one is a single part, which any
statement writes: nobody writes it out by literals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import At, Constant, Field, Path
from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.ir.walk import subscript_value

Parts: TypeAlias = frozenset[str]
"""Names of scalars and matrices in an element: `.pos.x`, `.trail[0]`."""


MOST_APART: Final = 8
"""The length of arrays whose elements are parts of their own."""


def parts_of(memory: MemoryType, path: Path, component: str = "") -> Parts:
    """Return the parts that a path leads to, of those that a read or write touches.

    An index in the path ranges over all elements of a fixed array.
    """
    prefixes = [""]
    for step in path:
        match step:
            case Field(name):
                prefixes = [f"{prefix}.{name}" for prefix in prefixes]
            case At(place=place, length=length):
                value = subscript_value(place)
                at = _elements(length)
                if isinstance(value, Constant) and len(at) > 1:
                    at = [f"[{value.value}]"]
                prefixes = [
                    f"{prefix}{element}" for prefix in prefixes for element in at
                ]
            case _:
                assert_never(step)
    if component:
        return frozenset(f"{prefix}.{component}" for prefix in prefixes)
    return frozenset(f"{p}{part}" for p in prefixes for part in all_parts(memory))


def _elements(length: int) -> list[str]:
    """Return how the elements of an array are distinguished."""
    return [f"[{n}]" for n in range(length)] if length <= MOST_APART else ["[...]"]


def all_parts(memory: MemoryType) -> Iterator[str]:
    """Yield every part of an element, in order."""
    match memory:
        case Leaf(type=Vector(width=width)):
            yield from (f".{letter}" for letter in "xyzw"[:width])
        case Leaf(type=Scalar() | Matrix()):
            yield ""
        case FixedArray(element=element, length=length):
            inner = tuple(all_parts(element))
            yield from (f"{at}{part}" for at in _elements(length) for part in inner)
        case Struct(members=members):
            for member in members:
                yield from (f".{member.name}{part}" for part in all_parts(member.type))
        case Leaf():
            raise AssertionError(memory)
        case _:
            assert_never(memory)
