"""The struct declarations of a shader, from laid-out types.

    struct Camera {
        @size(16) pos: vec3f,  // offset 0
        view: mat4x4f,  // offset 16
    }

A member with unused bytes behind it has an `@size`, so that offsets are visible.  There is
no `@align`, which naga ignores for a struct in a struct: a user's `@align` becomes padding
behind the member before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never, final

from kerngen.ir.cached import cached_on_instance
from kerngen.layout import types as layout
from kerngen.shader import declarations as wgsl
from kerngen.shader.names import Namer, member_names, unlike_enumerants

UNIFORM: Final = "Uniform"
"""The name of every kernel's uniform struct, so that equal shaders have equal texts."""


@final
class StructDeclarations:
    """The struct declarations of one shader, named by `namer`.

    Layouts of a struct in two address spaces share a declaration if their texts are equal.
    """

    def __init__(self, namer: Namer) -> None:
        self._namer = namer
        self._names: dict[object, str] = {}
        self._declared: list[wgsl.Struct] = []

    @property
    def declarations(self) -> tuple[wgsl.Struct, ...]:
        """The declarations so far, inner structs first."""
        return tuple(self._declared)

    def declare_uniform(self, laid: layout.StructLayout) -> str:
        """Declare a kernel's uniform struct; return its name in the shader.

        That is `Uniform`, or `Uniform_` if another struct has the name.
        """
        return self._struct(replace(laid, name=UNIFORM))

    def type_of(self, laid: layout.Laid) -> str:
        """Return the WGSL type of a laid-out type, and declare the structs in it if need be."""
        match laid:
            # Integers of 8 and 4 bits are in words, which the shader takes apart.
            case layout.LeafLayout(leaf=leaf):
                return "u32" if leaf.narrow else leaf.spelling
            case layout.ArrayLayout(carrier=carrier, length=length):
                return f"array<{self.type_of(carrier)}, {length}>"
            case layout.ColumnsLayout(columns=columns):
                return self.type_of(columns)
            case layout.StructLayout():
                return self._struct(laid)
            case _:
                assert_never(laid)

    def _struct(self, laid: layout.StructLayout) -> str:
        """Return the name of a struct's declaration, made at its first use."""
        form = layout.declared_form(laid)
        if form not in self._names:
            names = members_of(laid)
            members = tuple(self._member(field, names) for field in laid.fields)
            name = self._names[form] = self._namer.claim(unlike_enumerants(laid.name))
            self._declared.append(wgsl.Struct(name, members))
        return self._names[form]

    def _member(
        self, field: layout.LayoutField, names: Mapping[str, str]
    ) -> wgsl.StructMember:
        return wgsl.StructMember(
            name=names[field.name],
            type=self.type_of(field.laid),
            comment=f"offset {field.offset}",
            size=field.span if field.padding else None,
        )


@cached_on_instance
def members_of(laid: layout.StructLayout) -> dict[str, str]:
    """Return the WGSL name of each member of a struct, by its name in the source."""
    return member_names(field.name for field in laid.fields)
