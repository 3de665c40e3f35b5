"""Random struct items: members of every type, attributes, and structs in structs."""

from __future__ import annotations

from dataclasses import dataclass

from .dice import Dice
from .memory import Fixed, Memory, Record, as_half, numbers_in, scalar_of
from .names import PLAIN, RESERVED, Names

STRUCTS = ("Body", "Light", "Cell", "Part")
ODD_STRUCTS = (
    *("Element", "Uniforms", "Tensor", "Field", "array", "ptr", "class", "np", "Field"),
    *("Body_", "Struct", "Any", "main", "Vector", "out"),
)
MEMBERS = ("pos", "mass", "vel", "trail", "spin", "color", "weight", *PLAIN)
ODD_MEMBERS = (
    *("value", "x", "xyz", "SIZE", "DTYPE", "pack", "FIELDS", "type", "tuple", "int"),
    *RESERVED,
)

VECTORS = ("vec3f", "vec2f", "vec4f", "vec3f", "vec3i", "vec2u", "vec4i", "vec3u")
MATRICES = tuple(f"mat{columns}x{rows}f" for columns in (3, 2, 4) for rows in (3, 2, 4))
LENGTHS = (3, 2, 4)
MOST_NUMBERS = 40
"""In one struct: the interpreter goes through all of them."""


@dataclass(frozen=True)
class StructItem:
    """A struct, and its text."""

    record: Record
    text: str


def struct_item(
    dice: Dice, names: Names, inner: tuple[Record, ...], halves: int
) -> StructItem:
    """Draw a struct, which may hold others."""
    own = Names(dice)
    members: list[tuple[str, Memory]] = []
    fields: list[str] = []
    count = 2 + dice.below(4)
    left = MOST_NUMBERS
    for number in range(count):
        memory = _member(dice, inner if number else (), halves)
        size = len(list(numbers_in(memory)))
        if size > left:
            continue
        left -= size
        name = own.of(MEMBERS, ODD_MEMBERS, 15)
        members.append((name, memory))
        fields.append(f"{_attribute(dice, memory)}{name}: {spelled(memory)}")
    name = names.of(STRUCTS, ODD_STRUCTS, 15)
    text = f"struct {name} {{ {', '.join(fields)} }}"
    return StructItem(Record(name, tuple(members)), text)


def _member(dice: Dice, inner: tuple[Record, ...], halves: int) -> Memory:
    roll = dice.below(100)
    if roll < 25:
        return _leaf(dice, dice.pick(("f32", "f32", "i32", "u32")), halves)
    if roll < 55:
        return _leaf(dice, dice.pick(VECTORS), halves)
    if roll < 67:
        return _leaf(dice, dice.pick(MATRICES), halves)
    if roll < 76 or not inner:
        kinds = ("f32", "vec3f", "i32", "vec2f", "f32", "u32", "mat2x2f", "mat2x3f")
        array = Fixed(_leaf(dice, dice.pick(kinds), halves), dice.pick(LENGTHS))
        return Fixed(array, dice.pick((2, 3))) if dice.chance(15) else array
    held = dice.pick(inner)
    return Fixed(held, 2) if dice.chance(35) else held


def _leaf(dice: Dice, leaf: str, halves: int) -> str:
    real = scalar_of(leaf) == "f32"
    return as_half(leaf) if real and dice.chance(halves) else leaf


def _attribute(dice: Dice, memory: Memory) -> str:
    if not isinstance(memory, str) or not dice.chance(12):
        return ""
    if memory.startswith("mat"):
        return dice.pick(("@size(80) ", "@align(32) ", "@size(96) "))
    return dice.pick(("@size(32) ", "@align(16) ", "@size(20) ", "@align(32) "))


def spelled(memory: Memory) -> str:
    """Return a type as it is written."""
    lengths: list[str] = []
    while isinstance(memory, Fixed):
        lengths.append(str(memory.length))
        memory = memory.element
    name = memory.name if isinstance(memory, Record) else memory
    return f"{name}[{', '.join(lengths)}]" if lengths else name
