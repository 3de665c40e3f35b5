"""Structs that other projects got wrong, by hand and before every judge."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kerngen.ir.memory import LEAVES, Member, Struct, holds_half
from kerngen.layout.rules import Space
from kerngen.layout.struct import struct_layout

from .judged import Judges
from .made import struct_of


@dataclass(frozen=True)
class Named:
    """A struct, with the offsets of its fields and its size in both address spaces.

    In a uniform buffer, it is what one parameter is.
    """

    fields: str
    storage: tuple[list[int], int]
    uniform: tuple[list[int], int]
    others: str = ""


INNER = "struct Inner { a: f32 }"
PAIR = "struct Pair { a: vec3f, b: f32, c: f32 }"

NAMED = {
    # three.js, sokol, Hanabi: the scalar goes into the vec3's last 4 bytes.
    "vec3 then f32": Named("a: vec3f, b: f32", ([0, 12], 16), ([0, 12], 16)),
    # It does not where the vec3 is in a struct of its own.
    "struct of a vec3 then f32": Named(
        "a: V, b: f32", ([0, 16], 32), ([0, 16], 32), "struct V { v: vec3f }"
    ),
    # Columns lie 16 bytes apart, so 48 bytes and not 36.
    "mat3x3": Named("m: mat3x3f, b: f32", ([0, 48], 64), ([0, 48], 64)),
    # wgpu-py's packing helper has it as 36 bytes.
    "array<vec3f, 3>": Named("a: vec3f[3], b: f32", ([0, 48], 64), ([0, 48], 64)),
    "array<vec3f, 2> then f32": Named(
        "a: vec3f[2], b: f32", ([0, 32], 48), ([0, 32], 48)
    ),
    # 20 bytes, but 80 in a uniform buffer.
    "array<f32, 5>": Named(
        "a: f32, b: f32[5], c: f32", ([0, 4, 24], 28), ([0, 16, 96], 112)
    ),
    "array<vec2f, 3>": Named("a: vec2f[3], b: u32", ([0, 24], 32), ([0, 48], 64)),
    "array of arrays": Named("a: f32[2, 3], b: u32", ([0, 24], 28), ([0, 96], 112)),
    "array of f16": Named("a: f16[3], b: f16", ([0, 6], 8), ([0, 48], 64)),
    # naga asks for 16 bytes after a struct in a uniform buffer.
    "nested struct then scalar": Named(
        "a: Inner, b: f32", ([0, 4], 8), ([0, 16], 32), INNER
    ),
    "scalar then nested struct": Named(
        "a: f32, b: Inner, c: f32", ([0, 4, 8], 12), ([0, 16, 32], 48), INNER
    ),
    # Each element has 12 bytes behind it.
    "trailing padding of an array of structs": Named(
        "a: Pair[2], b: f32", ([0, 64], 80), ([0, 64], 80), PAIR
    ),
    "f16 pairs": Named(
        "a: f16, b: f16, c: f32, d: vec2h, e: f16",
        ([0, 2, 4, 8, 12], 16),
        ([0, 2, 4, 8, 12], 16),
    ),
    "one f16": Named("a: f16", ([0], 2), ([0], 16)),
    "vec3h then f16": Named("a: vec3h, b: f16", ([0, 6], 8), ([0, 6], 16)),
    # wgpu#10083: drivers misread them in uniform buffers, where they are columns.
    "f16 matrices": Named(
        "a: mat3x3h, b: mat2x2h, c: f16", ([0, 24, 32], 40), ([0, 48, 80], 96)
    ),
    "@size larger than natural": Named(
        "@size(20) a: f32, b: vec2f", ([0, 24], 32), ([0, 24], 32)
    ),
    "@size on the last field": Named(
        "a: f32, @size(40) b: f32", ([0, 4], 44), ([0, 4], 48)
    ),
    # Tint asks for 16 bytes behind a struct whatever its @size.
    "@size on a struct": Named(
        "@size(40) a: Inner, b: f32", ([0, 40], 44), ([0, 48], 64), INNER
    ),
    "only an array": Named("a: f32[5]", ([0], 20), ([0], 80)),
    "struct of only an array": Named(
        "a: f32, b: Only, c: f32",
        ([0, 4, 24], 28),
        ([0, 16, 96], 112),
        "struct Only { a: f32[5] }",
    ),
    # naga 29 writes SPIR-V that no driver takes for one in a struct in a struct.
    "nested matCx2": Named(
        "a: f32, b: M",
        ([0, 8], 40),
        ([0, 16], 80),
        "struct M { m: mat3x2f, x: f32 }",
    ),
    "matCx2 in an array": Named("a: mat2x2f[2], b: f32", ([0, 32], 40), ([0, 64], 80)),
    # gfx-rs/wgpu#4377: naga forgets the alignment of the struct around it.
    "@align in a nested struct": Named(
        "a: f32, b: Aligned, c: f32",
        ([0, 16, 32], 48),
        ([0, 16, 32], 48),
        "struct Aligned { @align(16) x: f32, y: f32, @align(8) z: f32 }",
    ),
    "@align beyond 16 in a nested struct": Named(
        "a: f32, b: Aligned[2]",
        ([0, 64], 192),
        ([0, 64], 192),
        "struct Aligned { @align(64) x: f32 }",
    ),
}

HAND = [pytest.param(named, id=name) for name, named in NAMED.items()]
STRUCTS = [struct_of(named.fields, named.others) for named in NAMED.values()]


@pytest.mark.parametrize("named", HAND)
def test_offsets_and_size_by_hand(named: Named) -> None:
    struct = struct_of(named.fields, named.others)
    for space, wanted in zip(Space, (named.storage, named.uniform), strict=True):
        laid = struct_layout(struct, space)
        assert ([field.offset for field in laid.fields], laid.size) == wanted


def test_every_judge_agrees(judges: Judges) -> None:
    structs = [s for s in STRUCTS if judges.bench.has_halves or not holds_half(s)]
    judges.judge(structs, structs)
    judges.judge([], map(_among_others, structs))


def _among_others(struct: Struct) -> Struct:
    """Return parameters of which one is the struct."""
    before, after = Member("before", LEAVES["u32"]), Member("after", LEAVES["f32"])
    return Struct("Among", (before, Member("it", struct), after))
