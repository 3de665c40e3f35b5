"""WGSL texts of random structs, as a user would write them, attributes included."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct, holds_half
from kerngen.ir.types import Storage


def text_of(struct: Struct, names: dict[Struct, str]) -> str:
    """Return the declarations of a struct, inner ones first, each with a name."""
    lines: list[str] = []
    for member in struct.members:
        inner = member.type
        while isinstance(inner, FixedArray):
            inner = inner.element
        if isinstance(inner, Struct) and inner not in names:
            lines.append(text_of(inner, names))
    names[struct] = f"S{len(names)}"
    lines.append(f"struct {names[struct]} {{")
    for member in struct.members:
        align = f"@align({member.align}) " if member.align else ""
        size = f"@size({member.size}) " if member.size else ""
        lines.append(
            f"    {align}{size}{member.name}: {type_text(member.type, names)},"
        )
    return "\n".join((*lines, "}"))


def type_text(type_: MemoryType, names: dict[Struct, str]) -> str:
    """Return a type as WGSL spells it."""
    match type_:
        case Leaf(spelling=spelling, wide=Storage(value=wide)):
            outer = spelling.removesuffix(wide)
            return f"{outer}<{wide}>" if outer else wide
        case Leaf(spelling=spelling):
            return spelling
        case FixedArray(element=element, length=length):
            return f"array<{type_text(element, names)}, {length}>"
        case Struct():
            return names[type_]


def scalars(type_: MemoryType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the expression of every scalar, and its type."""
    match type_:
        case Leaf(spelling=spelling) if spelling[:3] == "vec":
            for part in "xyzw"[: int(spelling[3])]:
                yield f"{path}.{part}", _SCALARS.get(spelling[4:], spelling[4:])
        case Leaf(spelling=spelling) if spelling[:3] == "mat":
            for column in range(int(spelling[3])):
                for row in range(int(spelling[5])):
                    yield f"{path}[{column}][{row}]", _SCALARS.get(
                        spelling[6:], spelling[6:]
                    )
        case Leaf(spelling=spelling):
            yield path, spelling
        case FixedArray(element=element, length=length):
            for number in range(length):
                yield from scalars(element, f"{path}[{number}]")
        case Struct(members=members):
            for member in members:
                yield from scalars(member.type, f"{path}.{member.name}")


_SCALARS = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}


def writing_shader(struct: Struct, *, in_array: bool) -> str:
    """Return a shader that writes 1, 2, 3 and so on to the scalars of a struct."""
    names: dict[Struct, str] = {}
    lines = ["enable f16;"] if holds_half(struct) else []
    lines.append(text_of(struct, names))
    name = names[struct]
    store = f"array<{name}>" if in_array else name
    lines.append(f"@group(0) @binding(0) var<storage, read_write> b: {store};")
    lines.append("@compute @workgroup_size(1) fn main() {")
    for number, (path, type_) in enumerate(
        scalars(struct, "b[1]" if in_array else "b"), 1
    ):
        lines.append(f"    {path} = {type_}({number});")
    return "\n".join((*lines, "}"))
