"""Resolve WGSL's type names, the user's own first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast, final

from kerngen.bind import model, tree
from kerngen.bind.constants import Constants
from kerngen.bind.faults import (
    CircularDeclaration,
    MisplacedRuntimeArray,
    UnknownWgslName,
    WrongValue,
)
from kerngen.bind.foreign import NATIVE
from kerngen.ir.memory import LEAVES, WIDE, FixedArray, Leaf, Member, MemoryType, Struct
from kerngen.layout.rules import Space
from kerngen.layout.types import lay_out
from kerngen.source.diagnostic import CompileError
from kerngen.source.similar import suggesting

_COMPOSITE: Final = re.compile(r"vec[234]|mat[234]x[234]")
_WIDE: Final = {"i64": "i64", "u64": "u64", "f64": "f64"}
_LETTERS: Final = {"f32": "f", "i32": "i", "u32": "u", "f16": "h"} | _WIDE
"""The last letter of the names of vectors and matrices, by their scalar: `vec2f`."""
_KNOWN: Final = LEAVES | WIDE
_NAMED: Final = {each: _KNOWN[each] for each in (*LEAVES, *_WIDE)}
"""The types that WGSL names by one word; `vec2<u64>` has none, `vec2u64` is our own."""
_TEXTURE: Final = re.compile(
    r"texture_(?:(?P<depth>depth)_)?(?P<multi>multisampled_)?(?P<dim>1d|2d_array|2d|3d|cube_array|cube)"
)
_STORAGE_TEXTURE: Final = re.compile(r"texture_storage_(1d|2d_array|2d|3d)")
_SAMPLES: Final = {"f32": "float", "i32": "sint", "u32": "uint"}
_OPAQUE: Final = {
    "bool": "WGSL does not define how a bool lies in memory",
    "ptr": "it is a pointer",
}


_OTHERS: Final = {"array", "atomic", "sampler", "sampler_comparison", *_OPAQUE, *NATIVE}


def is_predeclared(name: str) -> bool:
    """Whether a name is a type's, or that of a family of types, in every file."""
    families = (_COMPOSITE, _TEXTURE, _STORAGE_TEXTURE)
    return (
        name in _NAMED
        or name in _OTHERS
        or any(family.fullmatch(name) for family in families)
    )


@final
@dataclass(frozen=True)
class Types:
    """Resolves the types of a module."""

    declared: Mapping[str, tree.Declaration]
    constants: Constants
    _known: dict[str, model.Type] = field(default_factory=dict[str, model.Type])
    _open: list[str] = field(default_factory=list[str])

    def resolve(self, name: tree.Name) -> model.Type:
        """Return the type; raise `CompileError` if it does not exist."""
        declared = self.declared.get(name.text)
        match declared:
            case tree.Struct() | tree.Alias():
                return self._declared(name, declared)
            case None:
                return self._predeclared(name)
            case _:
                raise self._no_type(name)

    def _declared(
        self, name: tree.Name, declared: tree.Struct | tree.Alias
    ) -> model.Type:
        """Return a struct's or alias's type; `_open` are those that refer to it now."""
        if name.text in self._known:
            return self._known[name.text]
        if name.text in self._open:
            raise CompileError([CircularDeclaration(span=name.span, name=name.text)])
        self._open.append(name.text)
        try:
            found = (
                self.resolve(declared.type)
                if isinstance(declared, tree.Alias)
                else self._struct(declared)
            )
        finally:
            self._open.pop()
        self._known[name.text] = found
        return found

    def _struct(self, struct: tree.Struct) -> model.Type:
        """Return a struct; one that can't be in a buffer is opaque."""
        members: list[Member] = []
        element: MemoryType | None = None
        for member in struct.members:
            type_ = self.resolve(member.type)
            if element is not None:
                raise CompileError([MisplacedRuntimeArray(span=member.name.span)])
            if isinstance(type_, model.RuntimeStruct):
                raise CompileError([MisplacedRuntimeArray(span=member.type.span)])
            memory = model.memory_of(type_)
            if isinstance(type_, model.Opaque) and type_.tool:
                return type_
            if memory is None:
                why = (
                    type_.why if isinstance(type_, model.Opaque) else "it holds no data"
                )
                why = f"in its member '{member.name.text}', {why}"
                return model.Opaque(struct.name.text, why)
            if isinstance(type_, model.RuntimeArray):
                element = type_.element
            members.append(self._member(member, memory))
        made = Struct(
            struct.name.text,
            tuple(members),
            struct.name.span.source.name,
            span=struct.name.span,
        )
        return made if element is None else model.RuntimeStruct(made, element)

    def _member(self, member: tree.Member, memory: MemoryType) -> Member:
        laid = lay_out(memory, Space.STORAGE)
        align = self._sized(member, "align", laid.align)
        size = self._sized(member, "size", laid.size)
        return Member(member.name.text, memory, align, size, span=member.name.span)

    def _sized(self, member: tree.Member, word: str, least: int) -> int | None:
        """Return the value of a member's `@size` or `@align`, or None without one."""
        found = tree.attribute(member.attributes, word)
        if found is None or not found.arguments:
            return None
        value = self.constants.integer(found.arguments[0])
        fits = value >= least if word == "size" else _divides(least, value)
        if not fits:
            more = "or more" if word == "size" else "or a greater power of two"
            fault = WrongValue(
                span=found.span,
                what=f"'@{word}' of '{member.name.text}'",
                value=str(value),
                expected=f"{least} {more}",
            )
            raise CompileError([fault])
        return value

    def _predeclared(self, name: tree.Name) -> model.Type:
        text = name.text
        if text in _NAMED and not name.arguments:
            return _NAMED[text]
        if _COMPOSITE.fullmatch(text) and len(name.arguments) == 1:
            return self._composite(name)
        if text == "array" and name.arguments:
            return self._array(name)
        if text == "atomic" and len(name.arguments) == 1:
            return self._argument(name, 0)
        if text in _OPAQUE:
            return model.Opaque(text, _OPAQUE[text])
        if text in {"sampler", "sampler_comparison"}:
            return model.Sampler(text == "sampler_comparison")
        if found := _STORAGE_TEXTURE.fullmatch(text):
            return self._storage_texture(name, found[1])
        if found := _TEXTURE.fullmatch(text):
            return self._texture(name, found)
        if text in NATIVE:
            return model.Opaque(
                text, f"'{text}' is a type of {NATIVE[text]}", NATIVE[text]
            )
        raise self._no_type(name)

    def _argument(self, name: tree.Name, number: int) -> model.Type:
        given = name.arguments[number]
        if not isinstance(given, tree.Name):
            raise self._no_type(name)
        return self.resolve(given)

    def _composite(self, name: tree.Name) -> model.Type:
        component = self._argument(name, 0)
        spelling = component.spelling if isinstance(component, Leaf) else ""
        found = _KNOWN.get(name.text + _LETTERS.get(spelling, ""))
        if found is not None:
            return found
        if isinstance(component, model.Opaque) and component.name in {"bool", *NATIVE}:
            return component
        raise self._no_type(name)

    def _array(self, name: tree.Name) -> model.Type:
        """Return the type of `array<T>` or `array<T, N>`."""
        type_ = self._argument(name, 0)
        element = model.memory_of(type_)
        if isinstance(type_, model.Opaque):
            return type_
        if element is None:
            return model.Opaque("array", "its elements hold no data")
        if isinstance(type_, model.RuntimeArray | model.RuntimeStruct):
            raise CompileError([MisplacedRuntimeArray(span=name.span)])
        if len(name.arguments) == 1:
            return model.RuntimeArray(element)
        length = name.arguments[1]
        if isinstance(length, tree.Name) and isinstance(
            self.declared.get(length.text), tree.Override
        ):
            return model.Opaque("array", f"its length '{length.text}' is an override")
        value = self.constants.integer(length)
        if value < 1:
            fault = WrongValue(
                span=length.span,
                what="The length of an array",
                value=str(value),
                expected="1 or more",
            )
            raise CompileError([fault])
        return FixedArray(element, value)

    def _texture(self, name: tree.Name, found: re.Match[str]) -> model.Type:
        dimension = found["dim"].replace("_", "-")
        multisampled = found["multi"] is not None
        if found["depth"] is not None:
            return model.Texture(dimension, "depth", multisampled)
        sampled = self._argument(name, 0) if name.arguments else None
        sample = _SAMPLES.get(sampled.spelling) if isinstance(sampled, Leaf) else None
        if sample is None:
            raise self._no_type(name)
        return model.Texture(dimension, sample, multisampled)

    def _storage_texture(self, name: tree.Name, dimension: str) -> model.Type:
        words = [each.text for each in name.arguments if isinstance(each, tree.Name)]
        if len(words) != 2 or words[1] not in {"read", "write", "read_write"}:
            raise self._no_type(name)
        access = cast("model.Access", words[1])
        return model.StorageTexture(dimension.replace("_", "-"), words[0], access)

    def _no_type(self, name: tree.Name) -> CompileError:
        own = [
            each
            for each, declared in self.declared.items()
            if isinstance(declared, tree.Struct | tree.Alias)
        ]
        fault = UnknownWgslName(
            span=name.span,
            what="type",
            name=name.span.text,
            remedy=suggesting("", name.text, [*own, *_NAMED]).strip(),
        )
        return CompileError([fault])


def _divides(least: int, value: int) -> bool:
    """Whether an alignment is a power of two, and a multiple of the least one."""
    return value > 0 and value & (value - 1) == 0 and value % least == 0
