"""Layouts of structs as data, from which `kerngen layout` prints its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypedDict, assert_never, final

from kerngen.ir.memory import Struct, structs_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel
from kerngen.layout import types as layout
from kerngen.layout.order import BetterOrder, better_order
from kerngen.layout.rules import Space
from kerngen.layout.struct import struct_layout, uniform_layout


class RuleData(TypedDict):
    """A rule of WGSL that determines a field's place, with its section, as data."""

    section: str
    text: str


class FieldData(TypedDict, total=False):
    """A field of a struct with its padding, as data.

    - `offset`, `size`, `align`, `padding`: in bytes
    - `lengths`, `strides`: of each axis of an array, the outermost first, or of a matrix's
      columns
    - `fields`: those of a struct that the field, or each of its elements, is; their offsets
      are from the start of that struct
    """

    name: str
    type: str
    offset: int
    size: int
    align: int
    padding: int
    lengths: list[int]
    strides: list[int]
    fields: list[FieldData]
    rules: list[RuleData]


class StructData(TypedDict):
    """A struct in one address space, as data."""

    name: str
    struct: str
    space: str
    size: int
    align: int
    fields: list[FieldData]


class HintData(TypedDict):
    """A better order of a struct's fields, as data."""

    struct: str
    space: str
    size: int
    better: int
    order: list[str]


class LayoutData(TypedDict):
    """All laid-out structs of a file, as data."""

    path: str
    structs: list[StructData]
    hints: list[HintData]


@final
@dataclass(frozen=True, slots=True)
class LayoutSubject:
    """A struct, or the uniform struct of a kernel's parameters, to be shown."""

    item: Struct | Kernel
    layouts: tuple[layout.StructLayout, ...]

    @property
    def name(self) -> str:
        """The name of the struct; for parameters, that of the uniform struct."""
        if isinstance(self.item, Kernel):
            return self.layouts[0].name
        return self.item.name

    @property
    def names(self) -> set[str]:
        """The names by which a user may ask for it on the command line."""
        return {self.name, self.item.name, *(laid.name for laid in self.layouts)}


def subjects(module: Module, *, foreign: bool = False) -> list[LayoutSubject]:
    """Return the structs of a file, then its kernels with parameters to lay out.

    With `foreign`, structs of other files that these contain are added.
    """
    found = dict.fromkeys(module.structs)
    if foreign:
        found |= dict.fromkeys(_used(module))
    structs = [
        LayoutSubject(struct, tuple(struct_layout(struct, space) for space in Space))
        for struct in found
    ]
    kernels = [
        LayoutSubject(kernel, (uniform_layout(kernel),))
        for kernel in module.kernels
        if uniform_layout(kernel).fields
    ]
    return [*structs, *kernels]


def _used(module: Module) -> Iterator[Struct]:
    """Yield the structs inside of a file's structs, tensors and parameters."""
    for struct in module.structs:
        yield from structs_in(struct)
    for kernel in module.kernels:
        for tensor in kernel.tensors:
            yield from structs_in(tensor.memory)
        for parameter in kernel.parameters:
            yield from structs_in(parameter.memory)


def hints(module: Module) -> list[BetterOrder]:
    """Return the structs of a file for which a better order of fields exists.

    For uniform buffers, only structs inside of parameters are considered.
    """
    found: list[BetterOrder] = []
    parameters = {
        struct
        for kernel in module.kernels
        for parameter in kernel.parameters
        for struct in structs_in(parameter.memory)
    }
    for struct in module.structs:
        stored = better_order(struct, Space.STORAGE)
        bound = better_order(struct, Space.UNIFORM) if struct in parameters else None
        alike = stored and bound and stored.names == bound.names
        sizes = stored and bound and stored.better == bound.better
        found += [stored] if stored else []
        found += [bound] if bound and not (alike and sizes) else []
    return found


def as_data(
    path: str, chosen: Iterable[LayoutSubject], better: Iterable[BetterOrder]
) -> LayoutData:
    """Return the report of layouts as JSON data."""
    return {
        "path": path,
        "structs": [
            _struct(subject.item.name, laid)
            for subject in chosen
            for laid in subject.layouts
        ],
        "hints": [
            {
                "struct": each.struct.name,
                "space": each.space.value,
                "size": each.size,
                "better": each.better,
                "order": [*each.names],
            }
            for each in better
        ],
    }


def _struct(item: str, laid: layout.StructLayout) -> StructData:
    return {
        "name": laid.name,
        "struct": item,
        "space": laid.space.value,
        "size": laid.size,
        "align": laid.align,
        "fields": [_field(field) for field in laid.fields],
    }


def _field(field: layout.LayoutField) -> FieldData:
    data: FieldData = {
        "name": field.name,
        "type": field.type.spelling,
        "offset": field.offset,
        "size": field.size,
        "align": field.align,
        "padding": field.padding,
    }
    if axes := [*axes_of(field.laid)]:
        data["lengths"] = [length for length, _ in axes]
        data["strides"] = [stride for _, stride in axes]
    if inner := struct_in(field.laid):
        data["fields"] = [_field(each) for each in inner.fields]
    data["rules"] = [
        {"section": rule.section, "text": rule.text} for rule in field.rules
    ]
    return data


def axes_of(laid: layout.Laid) -> Iterator[tuple[int, int]]:
    """Yield the length and stride of each array, or those of a matrix's columns."""
    match laid:
        case layout.LeafLayout(leaf=leaf):
            if column := layout.column_stride(leaf):
                yield column
        case layout.ArrayLayout(length=length, stride=stride, element=element):
            yield length, stride
            yield from axes_of(element)
        case layout.ColumnsLayout(columns=columns):
            yield columns.length, columns.stride
        case layout.StructLayout():
            return
        case _:
            assert_never(laid)


def struct_in(laid: layout.Laid) -> layout.StructLayout | None:
    """Return the struct that a field, or each of its elements, is; None for another type."""
    match laid:
        case layout.ArrayLayout(element=element):
            return struct_in(element)
        case layout.StructLayout():
            return laid
        case layout.LeafLayout() | layout.ColumnsLayout():
            return None
        case _:
            assert_never(laid)
