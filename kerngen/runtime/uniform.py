"""Uniform structs: a kernel's scalars as the bytes that its shaders read.

A generated module declares one `UniformStruct` per kernel and states its layout three
times: as fields with offsets, as a size and as a NumPy dtype.  Importing the module
checks that the three agree, so that a file edited by hand cannot bind the wrong bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal, Self, TypeAlias, final

import numpy as np

from kerngen.runtime.errors import UniformRangeError

ScalarName: TypeAlias = Literal["f32", "i32", "u32"]
Writable: TypeAlias = bytearray | memoryview
Readable: TypeAlias = bytes | Writable

_CODES: dict[ScalarName, str] = {"f32": "f", "i32": "i", "u32": "I"}
_FORMATS: dict[ScalarName, str] = {"f32": "<f4", "i32": "<i4", "u32": "<u4"}


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A field of a uniform struct: `width` scalars (2 to 4: a vector) at `offset`."""

    name: str
    scalar: ScalarName
    offset: int
    width: int = 1

    @property
    def end(self) -> int:
        """The offset of the first byte behind the field."""
        return self.offset + 4 * self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The field's own dtype; a vector's is a sub-array."""
        shape = () if self.width == 1 else (self.width,)
        return np.dtype((_FORMATS[self.scalar], shape))

    @property
    def spelling(self) -> str:
        """The field's type as the kernel language writes it, `vec3f` for one."""
        if self.width == 1:
            return self.scalar
        return f"vec{self.width}{self.scalar[0]}"


def _components(value: Any) -> tuple[Any, ...]:
    """Return the components of a vector; what is none has none."""
    return tuple(value) if hasattr(value, "__iter__") else ()


class UniformStruct:
    """The base of the generated dataclasses, one of which holds a kernel's scalars.

    A field of width 1 is an attribute holding a number, a wider one a tuple of numbers.
    NaN and infinities are f32 values like any other; a finite number that f32 cannot
    hold is not, and neither is an integer out of range.
    """

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    SIZE: ClassVar[int] = 0
    DTYPE: ClassVar[np.dtype[np.void]] = np.dtype([])
    _codec: ClassVar[struct.Struct] = struct.Struct("<")

    def __init_subclass__(cls) -> None:
        """Check the stated layout and prepare to pack by it."""
        super().__init_subclass__()
        dtype = _dtype(cls.FIELDS, cls.SIZE)
        assert dtype == cls.DTYPE, f"{cls.__name__}: DTYPE and FIELDS disagree"
        cls._codec = struct.Struct(_format(cls.FIELDS, cls.SIZE))
        assert cls._codec.size == cls.SIZE, f"{cls.__name__}: SIZE and FIELDS disagree"

    def pack(self) -> bytes:
        """Return the struct's bytes, padding zeroed."""
        buffer = bytearray(self.SIZE)
        self.pack_into(buffer)
        return bytes(buffer)

    def pack_into(self, buffer: Writable, offset: int = 0) -> None:
        """Write the struct's bytes at `offset`, padding zeroed."""
        values: list[Any] = []
        for field in self.FIELDS:
            value: Any = getattr(self, field.name)
            components = (value,) if field.width == 1 else _components(value)
            if len(components) != field.width:
                raise self._range_error(field, value)
            values += components
        self.pack_values_into(buffer, offset, tuple(values))

    @classmethod
    def pack_values_into(
        cls, buffer: Writable, offset: int, values: tuple[float, ...]
    ) -> None:
        """Write the struct of these values in field order, vectors flattened."""
        try:
            cls._codec.pack_into(buffer, offset, *values)
        except (struct.error, OverflowError) as cause:
            fault = cls._find_fault(values)
            if fault is None:
                raise
            raise fault from cause

    @classmethod
    def unpack(cls, data: Readable) -> Self:
        """Return the struct that these bytes hold; there must be `SIZE` of them."""
        values = iter(cls._codec.unpack(data))
        return cls(**{field.name: _take(values, field.width) for field in cls.FIELDS})

    @classmethod
    def _find_fault(cls, values: Sequence[Any]) -> UniformRangeError | None:
        """Return the error of the first value that does not fit its field."""
        remaining = iter(values)
        for field in cls.FIELDS:
            for value in islice(remaining, field.width):
                try:
                    struct.pack("<" + _CODES[field.scalar], value)
                except (struct.error, OverflowError):
                    return cls._range_error(field, value)
        return None

    @classmethod
    def _range_error(cls, field: Field, value: object) -> UniformRangeError:
        return UniformRangeError(
            f"'{cls.__name__}.{field.name}': expected a value of type "
            f"'{field.spelling}', got {value!r}."
        )


def _take(values: Iterator[Any], width: int) -> Any:
    if width == 1:
        return next(values)
    return tuple(next(values) for _ in range(width))


def _dtype(fields: tuple[Field, ...], size: int) -> np.dtype[np.void]:
    return np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": [field.dtype for field in fields],
            "offsets": [field.offset for field in fields],
            "itemsize": size,
        }
    )


def _format(fields: tuple[Field, ...], size: int) -> str:
    """Return the `struct` format of the fields, every gap spelled as pad bytes."""
    parts: list[str] = ["<"]
    end = 0
    for field in fields:
        parts.append(f"{field.offset - end}x{field.width}{_CODES[field.scalar]}")
        end = field.end
    parts.append(f"{size - end}x")
    return "".join(parts)
