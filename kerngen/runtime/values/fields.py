"""The fields of structs, as generated modules declare them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard, final

import numpy as np

from kerngen.runtime.values.elements import (
    F16,
    Element,
    Leaf,
    arrayed,
    leaf_dtype,
    spaced,
)
from kerngen.runtime.values.shapes import Shape


class FieldPlace(NamedTuple):
    """The place in a struct's bytes of one number, or of one nested struct."""

    offset: int
    code: str
    size: int


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: its name, type and offset in bytes.

    `type` is that of the value or, of a fixed array, of each element: a scalar, a
    vector, a matrix, or the class of a struct.  An array has `lengths`, the outermost
    first, and its elements lie `stride` bytes apart, as do the columns of a matrix by
    `column_stride`.
    """

    name: str
    type: type[Element]
    offset: int
    lengths: Shape = ()
    stride: int = 0
    column_stride: int = 0

    @property
    def spelling(self) -> str:
        """The type as the kernel language writes it: `vec3f`, `f32[2, 5]`."""
        lengths = ", ".join(map(str, self.lengths))
        return f"{self.type.__name__}[{lengths}]" if lengths else self.type.__name__

    @property
    def shape(self) -> Shape:
        """The shape of the value: the lengths, then the components of an element."""
        return (*self.lengths, *(self.type.shape if is_leaf(self.type) else ()))

    @property
    def count(self) -> int:
        """The number of numbers, or of structs, in the value."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The field's NumPy dtype: a sub-array if the field has a shape."""
        one = self.type.DTYPE
        if is_leaf(self.type):
            leaf = self.type
            one = leaf_dtype(leaf.number, leaf.shape, self.column_stride)
        return arrayed(spaced(one, self.stride), self.lengths) if self.lengths else one

    @property
    def size(self) -> int:
        """The size of the field in bytes."""
        return self.dtype.itemsize

    def places(self) -> Iterator[FieldPlace]:
        """Yield the place of each number, or of each nested struct."""
        # The offset of each element, then of each column in it, then of each number.
        starts: Iterable[int] = (self.offset,)
        if self.lengths:
            end = self.offset + self.stride * math.prod(self.lengths)
            starts = range(self.offset, end, self.stride)
        if not is_leaf(self.type):
            size = self.type.DTYPE.itemsize
            yield from (FieldPlace(start, f"{size}s", size) for start in starts)
            return
        number, (*columns, width) = self.type.number, self.type.shape or (1,)
        for start in starts:
            for column in range(math.prod(columns)):
                first = start + column * self.column_stride
                for at in range(first, first + width * number.size, number.size):
                    yield FieldPlace(at, number.code, number.size)


def holds_half(element: type[Element]) -> bool:
    """Whether an element type contains f16 numbers."""
    if is_leaf(element):
        return element.number is F16
    fields: tuple[Field, ...] = getattr(element, "FIELDS", ())
    return any(holds_half(field.type) for field in fields)


def is_leaf(element: type[Element]) -> TypeGuard[type[Leaf]]:
    """Whether an element type is a scalar, a vector or a matrix."""
    return issubclass(element, Leaf)
