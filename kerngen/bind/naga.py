"""Structs whose layout naga computes differently from WGSL's rules.

An '@align' in a struct raises the alignment of that struct, too.  naga 29 forgets that
where the struct is a member of another (gfx-rs/wgpu 4377, open since 2022), silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kerngen.ir.memory import FixedArray, Leaf, Member, MemoryType, Struct, structs_in
from kerngen.layout.rules import Space, leaf_footprint, round_up
from kerngen.layout.types import StructLayout, lay_out


def misread(type_: MemoryType) -> Iterator[tuple[Struct, Member]]:
    """Yield the structs that naga lays out differently, with the member at fault."""
    for struct in dict.fromkeys(structs_in(type_)):
        laid = lay_out(struct, Space.STORAGE)
        assert isinstance(laid, StructLayout), "a struct is laid out as one"
        # naga's layout, member by member; `same` while offsets agree with WGSL's.
        aligns = [max(_align(m.type), m.align or 1) for m in struct.members]
        end, same = 0, True
        for align, field, member in zip(
            aligns, laid.fields, struct.members, strict=True
        ):
            start = round_up(align, end)
            same = same and start == field.offset
            end = start + max(field.size, member.size or 0)
        if same and round_up(max(aligns), end) == laid.size:
            continue
        pairs = zip(aligns, laid.fields, struct.members, strict=True)
        yield struct, next(m for align, field, m in pairs if align < field.align)


def _align(type_: MemoryType) -> int:
    """Return the alignment that naga gives a type: without the '@align's in it."""
    match type_:
        case Leaf():
            return leaf_footprint(type_).align
        case FixedArray(element=element):
            return _align(element)
        case Struct(members=members):
            return max(_align(member.type) for member in members)
        case _:
            assert_never(type_)
