"""Probes: shaders that copy every scalar of many structs, bit by bit.

Each layout is a binding with an entry point of its own, since drivers compile long ones
slowly; a struct in a storage buffer is the element of an array, as those of tensors are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from kerngen.layout.rules import Space, round_up
from kerngen.layout.types import StructLayout
from kerngen.shader import declarations as wgsl
from kerngen.shader.names import value_namer
from kerngen.shader.printer import print_module
from kerngen.shader.structs import StructDeclarations

from .scalars import Place, places

Bytes = npt.NDArray[np.uint8]

HARD_BITS: Final = (
    0x80000000,  # -0.0
    0x00000001,  # the smallest subnormal
    0x7F800000,  # infinity
    0x7FC12345,  # a quiet NaN with a payload
    0xFFC00001,  # a negative one
    0xFFFFFFFF,
    0x80008000,  # two f16: -0.0
    0x7E01FE55,  # two f16: NaNs with payloads
    0x7C00FC00,  # two f16: infinities
)


@dataclass(frozen=True)
class Probe:
    """One shader for some layouts, each with its number as its binding."""

    layouts: tuple[StructLayout, ...]
    is_half: bool

    @cached_property
    def read(self) -> list[list[Place]]:
        """The scalars that are read of each binding."""
        return [[*_read(number, laid)] for number, laid in enumerate(self.layouts)]

    @property
    def places(self) -> list[Place]:
        """The scalars of all bindings."""
        return [place for of_one in self.read for place in of_one]

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """The buffers that scalars are copied to: no shader knows the bits of an f16."""
        return [("o", "u32"), ("h", "f16")][: 1 + self.is_half]

    @cached_property
    def shader(self) -> str:
        """The text of the shader."""
        structs = StructDeclarations(value_namer(["o", "h"]))
        types = [structs.type_of(laid) for laid in self.layouts]
        cut = [up_to_a_field(laid, n) for n, laid in enumerate(self.layouts)]
        firsts = [(structs.type_of(laid), laid.size) for laid in cut]
        lines = [*_head(structs, is_half=self.is_half)]
        for number, (name, size) in enumerate(firsts):
            lines.append(f"struct First{number} {{ @size({size}) x: {name} }}")
        for number, (laid, name) in enumerate(zip(self.layouts, types, strict=True)):
            # No compiler takes an '@size' below the size of its member.
            lines.append(f"struct Exact{number} {{ @size({laid.size}) x: {name} }}")
            bound = f"@group(0) @binding({number})"
            if laid.space is Space.UNIFORM:
                lines.append(f"{bound} var<uniform> b{number}: {name};")
            else:
                lines.append(f"{bound} var<storage, read> b{number}: array<{name}>;")
        for number, (name, type_) in enumerate(self.outputs, len(types)):
            bound = f"@group(0) @binding({number})"
            lines.append(f"{bound} var<storage, read_write> {name}: array<{type_}>;")
        at = 0
        for number, of_one in enumerate(self.read):
            lines += self._entry_point(number, at, of_one)
            at += len(of_one)
        return "\n".join(lines)

    def _entry_point(self, number: int, at: int, read: list[Place]) -> Iterator[str]:
        yield "@compute @workgroup_size(1)"
        yield f"fn main{number}(@builtin(num_workgroups) groups: vec3u) {{"
        yield "    let zero = groups.x - 1;"
        # A binding that nothing uses has no place in the layout of the pipeline.
        yield from (f"    {name}[{at}] = {type_}();" for name, type_ in self.outputs)
        # All reads, then all writes: drivers join those that lie side by side.
        for n, place in enumerate(read):
            bits = f"bitcast<u32>({place.expression})"
            yield f"    let v{n} = {place.expression if place.is_half else bits};"
        for n, place in enumerate(read):
            yield f"    {'oh'[place.is_half]}[{at + n}] = v{n};"
        yield "}"

    def too_small(self, number: int) -> str:
        """Return the shader that says that a layout is a byte smaller than it is."""
        structs = StructDeclarations(value_namer(["Exact"]))
        laid = self.layouts[number]
        name = structs.type_of(laid)
        exact = f"struct Exact {{ @size({laid.size - 1}) x: {name} }}"
        return "\n".join((*_head(structs, is_half=self.is_half), exact))

    def too_near(self, number: int) -> str:
        """Return the shader that says that a field starts earlier than it does.

        A byte more than fits up to where it ends by us makes the struct larger.
        """
        structs = StructDeclarations(value_namer(["Exact"]))
        laid = up_to_a_field(self.layouts[number], number)
        *before, last = laid.fields
        longer = replace(laid, fields=(*before, replace(last, span=last.span + 1)))
        name = structs.type_of(longer)
        exact = f"struct Exact {{ @size({laid.size}) x: {name} }}"
        return "\n".join((*_head(structs, is_half=self.is_half), exact))

    def expected(self, data: Sequence[Bytes]) -> list[int]:
        """Return the bits at our offsets."""
        return [
            int.from_bytes(all_[place.offset : place.end].tobytes(), "little")
            for all_, of_one in zip(data, self.read, strict=True)
            for place in of_one
        ]


def has_halves(read: Sequence[Place]) -> bool:
    """Whether any scalar is an f16."""
    return any(place.is_half for place in read)


def writing_shader(laid: StructLayout, written: Sequence[Place]) -> str:
    """Return a shader that writes to every scalar, the number-th word or f16 to each."""
    structs = StructDeclarations(value_namer(["b", "o", "h"]))
    name = structs.type_of(laid)
    is_half = has_halves(written)
    lines = [*_head(structs, is_half=is_half)]
    bound = "@group(0) @binding"
    lines.append(f"{bound}(0) var<storage, read_write> b: array<{name}>;")
    lines.append(f"{bound}(1) var<storage, read> o: array<u32>;")
    if is_half:
        lines.append(f"{bound}(2) var<storage, read> h: array<f16>;")
    lines.append("@compute @workgroup_size(1)")
    lines.append("fn main(@builtin(num_workgroups) groups: vec3u) {")
    lines.append("    let one = groups.x;\n    _ = o[0];")
    for number, place in enumerate(written):
        word = f"bitcast<{place.storage.value}>(o[{number}])"
        value = f"h[{number}]" if place.is_half else word
        lines.append(f"    {place.expression} = {value};")
    return "\n".join((*lines, "}"))


def up_to_a_field(laid: StructLayout, number: int) -> StructLayout:
    """Return a struct cut off behind one of its fields, which is drawn out to its end.

    So the struct is just as long as where that field starts and its span together.
    """
    count = 1 + number % len(laid.fields)
    *before, last = laid.fields[:count]
    align = max(field.align for field in (*before, last))
    size = round_up(align, last.end)
    fields = (*before, replace(last, span=size - last.offset))
    return replace(laid, name=f"{laid.name}First{number}", fields=fields, size=size)


def _head(structs: StructDeclarations, *, is_half: bool) -> Iterator[str]:
    if is_half:
        yield "enable f16;"
    yield print_module(wgsl.Module(structs.declarations))


def _read(number: int, laid: StructLayout) -> Iterator[Place]:
    """Yield the scalars of a uniform buffer, or of an element and the ends of another.

    In a uniform buffer, subscripts are now constants, now what no compiler knows.
    """
    name = f"b{number}"
    if laid.space is Space.UNIFORM:
        yield from places(laid, 0, name, "zero + {}" if number % 2 else "{}")
        return
    yield from places(laid, 0, f"{name}[0]", "{}")
    second = [*places(laid, laid.size, f"{name}[1 + zero]", "{}")]
    yield from {0: second[0], -1: second[-1]}.values()


def bytes_for(laid: StructLayout, rng: np.random.Generator) -> Bytes:
    """Return random bits for a binding, many of them hard ones; in padding too."""
    elements = 1 if laid.space is Space.UNIFORM else 2
    words = round_up(4, laid.size * elements) // 4
    bits = rng.integers(0, 2**32, words, dtype=np.uint32)
    hard = rng.choice(np.array(HARD_BITS, np.uint32), words)
    return np.where(rng.random(words) < 0.3, hard, bits).view(np.uint8)


def least_binding(laid: StructLayout) -> int:
    """Return the size of the smallest buffer that a binding should take."""
    return laid.size if laid.space is Space.UNIFORM else round_up(4, laid.size)
