"""WGSL structs of a shader, declared from laid-out types.

Padding is in plain sight: a member with unused bytes behind it has an `@size`.  There is
never an `@align`, which naga forgets of a struct in a struct; what the user aligned is
realised by the padding in front of it.
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
"""The uniform struct of every kernel, so that equal shaders are equal to the letter."""


@final
class StructDeclarations:
    """The struct declarations of one shader; `namer` names them.

    Two layouts of a struct share a declaration if their texts are equal.
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
        """Declare a kernel's uniform struct, the same in every shader; return its name.

        If another struct has that name, the uniform's gets a `_`.
        """
        return self._struct(replace(laid, name=UNIFORM))

    def type_of(self, laid: layout.Laid) -> str:
        """Return the WGSL type of a laid-out type, and declare its structs."""
        match laid:
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
    """Return the WGSL name of each field of a struct."""
    return member_names(field.name for field in laid.fields)
