"""Structs of a shader: types as they are laid out, declared where they are first used.

Padding is in plain sight: a member with unused bytes behind it has an `@size`.  There is
never an `@align`, which naga forgets of a struct in a struct; what the user aligned is
realised by the padding in front of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never, final

from kerngen.ir.once import once
from kerngen.layout.types import (
    ArrayLayout,
    ColumnsLayout,
    Laid,
    LayoutField,
    LeafLayout,
    StructLayout,
    declared_form,
)
from kerngen.shader import declarations as wgsl
from kerngen.shader.names import Namer, member_names, unlike_enumerants

UNIFORM: Final = "Uniform"
"""The uniform struct of every kernel, so that equal shaders are equal to the letter."""


@final
class StructDeclarations:
    """The structs of one shader; `namer` is that of its other declarations.

    Two layouts of one struct are one declaration if it is the same text.
    """

    def __init__(self, namer: Namer) -> None:
        self._namer = namer
        self._names: dict[object, str] = {}
        self._declared: list[wgsl.Struct] = []

    @property
    def declarations(self) -> tuple[wgsl.Struct, ...]:
        """What was declared, inner structs before outer ones."""
        return tuple(self._declared)

    def declare_uniform(self, laid: StructLayout) -> str:
        """Declare a kernel's uniform struct; return its name, the same in every shader.

        A struct that was declared before may have that name: the uniform's has a `_` then.
        """
        return self._struct(replace(laid, name=UNIFORM))

    def type_of(self, laid: Laid) -> str:
        """Return the WGSL type of what is laid out, and declare its structs."""
        match laid:
            case LeafLayout(leaf=leaf):
                return leaf.spelling
            case ArrayLayout(carrier=carrier, length=length):
                return f"array<{self.type_of(carrier)}, {length}>"
            case ColumnsLayout(columns=columns):
                return self.type_of(columns)
            case StructLayout():
                return self._struct(laid)
            case _:
                assert_never(laid)

    def _struct(self, laid: StructLayout) -> str:
        form = declared_form(laid)
        if form not in self._names:
            names = members_of(laid)
            members = tuple(self._member(field, names) for field in laid.fields)
            name = self._names[form] = self._namer.claim(unlike_enumerants(laid.name))
            self._declared.append(wgsl.Struct(name, members))
        return self._names[form]

    def _member(
        self, field: LayoutField, names: Mapping[str, str]
    ) -> wgsl.StructMember:
        return wgsl.StructMember(
            name=names[field.name],
            type=self.type_of(field.laid),
            comment=f"offset {field.offset}",
            size=field.span if field.padding else None,
        )


@once
def members_of(laid: StructLayout) -> dict[str, str]:
    """Return what each field of a struct is called in WGSL."""
    return member_names(field.name for field in laid.fields)
