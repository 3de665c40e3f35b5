"""The uniform struct of a kernel, laid out: the one source of every offset.

The WGSL struct, the Python dataclass with its NumPy dtype, and the documentation are
all printed from a `StructLayout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import final

from kerngen.ir.nodes import Kernel
from kerngen.ir.types import Scalar, ValueType, Vector
from kerngen.layout.rules import FOOTPRINTS, member_offsets, struct_footprint


@final
@dataclass(frozen=True, slots=True)
class LayoutField:
    """One member of a struct: where it lies, and the gap in front of it in bytes."""

    name: str
    type: ValueType
    offset: int
    size: int
    align: int
    padding_before: int
    is_padding: bool = False

    @property
    def end(self) -> int:
        """The offset of the first byte behind the field."""
        return self.offset + self.size

    @property
    def scalar(self) -> Scalar:
        """The scalar type of the field or of its components."""
        return self.type.scalar if isinstance(self.type, Vector) else self.type

    @property
    def width(self) -> int:
        """The number of scalars in the field."""
        return self.type.width if isinstance(self.type, Vector) else 1


@final
@dataclass(frozen=True, slots=True)
class StructLayout:
    """A struct: its fields in declared order, its alignment and size in bytes.

    A struct without fields has size 0: there is nothing to bind.
    """

    name: str
    fields: tuple[LayoutField, ...]
    size: int
    align: int

    @property
    def members(self) -> tuple[LayoutField, ...]:
        """The fields with a u32 pad member for every 4 bytes of every gap.

        With these members, offsets and size follow without `@align` or `@size`.
        """
        return tuple(self._members())

    def _members(self) -> Iterator[LayoutField]:
        taken = {field.name for field in self.fields}
        names = (name for i in count() if (name := f"pad_{i}") not in taken)
        end = 0
        for field in self.fields:
            yield from _padding(names, end, field.offset)
            yield field
            end = field.end
        yield from _padding(names, end, self.size)


def _padding(names: Iterator[str], start: int, stop: int) -> Iterator[LayoutField]:
    unit = FOOTPRINTS[Scalar.U32]
    for offset in range(start, stop, unit.size):
        yield LayoutField(
            next(names), Scalar.U32, offset, unit.size, unit.align, 0, is_padding=True
        )


def struct_layout(name: str, members: Iterable[tuple[str, ValueType]]) -> StructLayout:
    """Lay out named members in their order."""
    listed = tuple(members)
    footprints = tuple(FOOTPRINTS[type_] for _, type_ in listed)
    whole = struct_footprint(footprints)
    fields: list[LayoutField] = []
    end = 0
    placed = zip(listed, footprints, member_offsets(footprints), strict=True)
    for (field, type_), footprint, offset in placed:
        padding = offset - end
        fields.append(
            LayoutField(field, type_, offset, footprint.size, footprint.align, padding)
        )
        end = offset + footprint.size
    return StructLayout(name, tuple(fields), whole.size, whole.align)


def uniform_layout(kernel: Kernel) -> StructLayout:
    """Lay out a kernel's uniform struct: dims, value parameters, hosts, in that order.

    It is the same for all of the kernel's stages and schedules.
    """
    return struct_layout(
        uniform_name(kernel.name),
        (
            *((dim, Scalar.U32) for dim in kernel.lengths),
            *((parameter.name, parameter.type) for parameter in kernel.parameters),
            *((host.name, host.type) for host in kernel.hosts),
        ),
    )


def uniform_name(kernel: str) -> str:
    """Return the struct's name: `LinearGeluUniform` for `linear_gelu`."""
    return f"{pascal_case(kernel)}Uniform"


def pascal_case(name: str) -> str:
    """Return `LinearGelu` for `linear_gelu`."""
    words = (word for word in name.split("_") if word)
    return "".join(word[:1].upper() + word[1:] for word in words) or "Kernel"
