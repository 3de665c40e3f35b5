"""Struct members in derivation: each has an adjoint of its own.

A path is the way to a member, `.lights[k].color`; a fixed array in it adds an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kerngen.gradient.composites import is_real
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import At, Field, Index, IndexValue, Path


def key_of(name: str, path: Path) -> str:
    """Return a key that identifies a member: `scene.lights[].color`."""
    steps = (f".{step.name}" if isinstance(step, Field) else "[]" for step in path)
    return name + "".join(steps)


def leaves(
    type_: MemoryType, path: Path = (), depth: int = 0
) -> Iterator[tuple[Path, Leaf]]:
    """Yield the path to each number, vector and matrix in a type."""
    match type_:
        case Leaf():
            yield path, type_
        case FixedArray(element=element, length=length):
            index = Index(f"{'klpqrst'[depth % 7]}#{depth}member", length)
            step = At(IndexValue(index), length)
            yield from leaves(element, (*path, step), depth + 1)
        case Struct(members=members):
            for member in members:
                inner = (*path, Field(member.name))
                yield from leaves(member.type, inner, depth)
        case _:
            assert_never(type_)


def has_real(type_: MemoryType) -> bool:
    """Whether any part of a type is f32 or f16."""
    return any(is_real(leaf.type) for _, leaf in leaves(type_))


def indices_of(path: Path) -> tuple[Index, ...]:
    """Return the indices in a path, one for each fixed array."""
    return tuple(
        step.place.index
        for step in path
        if isinstance(step, At) and isinstance(step.place, IndexValue)
    )
