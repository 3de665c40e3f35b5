"""Random structs, drawn by hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from kerngen.ir.memory import LEAVES, FixedArray, Leaf, Member, MemoryType, Struct

from . import spec

DEEPEST = 4
MOST_SCALARS = 16
"""The scalars that an array may be made of, so that probes stay short."""


@dataclass(frozen=True)
class Drawing:
    """What may be drawn: f16 or not, for which address space."""

    halves: bool
    uniform: bool

    def structs(self, depth: int = DEEPEST) -> st.SearchStrategy[Struct]:
        """Draw a struct with types nested up to `depth` in it."""
        return _struct(self, depth)

    def leaves(self) -> st.SearchStrategy[MemoryType]:
        """Draw a scalar, vector or matrix."""
        names = [n for n, leaf in LEAVES.items() if self.halves or not leaf.is_half]
        return st.sampled_from([LEAVES[name] for name in names])

    def types(self, depth: int) -> st.SearchStrategy[MemoryType]:
        """Draw a type with others nested up to `depth` in it."""
        if depth == 0:
            return self.leaves()
        deeper = _array(self, depth - 1), self.structs(depth - 1)
        return st.one_of(self.leaves(), *deeper)


@st.composite
def _array(draw: st.DrawFn, drawing: Drawing, depth: int) -> FixedArray:
    element = draw(drawing.types(depth))
    most = max(1, min(5, MOST_SCALARS // count(element)))
    return FixedArray(element, draw(st.integers(1, most)))


@st.composite
def _struct(draw: st.DrawFn, drawing: Drawing, depth: int) -> Struct:
    most = 6 if depth == DEEPEST else 3
    types = draw(
        st.lists(drawing.types(depth - 1 if depth else 0), min_size=1, max_size=most)
    )
    members = tuple(
        draw(_member(drawing, f"m{number}", type_))
        for number, type_ in enumerate(types)
    )
    return Struct(f"Depth{DEEPEST - depth}", members)


@st.composite
def _member(draw: st.DrawFn, drawing: Drawing, name: str, type_: MemoryType) -> Member:
    attributes = draw(st.integers(0, 9))
    natural, _ = spec.align_and_size(type_, uniform=False)
    _, needed = spec.align_and_size(type_, uniform=drawing.uniform)
    align = natural << draw(st.integers(0, 3)) if attributes in {7, 9} else None
    size = needed + draw(st.integers(0, 40)) if attributes in {8, 9} else None
    return Member(name, type_, align, size)


def count(type_: MemoryType) -> int:
    """Return how many scalars a type is made of."""
    match type_:
        case Leaf():
            return sum(1 for _ in spec.scalars(type_, 0, uniform=False))
        case FixedArray(element=element, length=length):
            return length * count(element)
        case Struct(members=members):
            return sum(count(member.type) for member in members)
