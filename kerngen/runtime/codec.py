"""A struct's values as bytes and back, by one precompiled `struct.Struct`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import isnan
from typing import Any, TypeAlias, final

import numpy as np

from kerngen.runtime.bits import NARROW
from kerngen.runtime.fields import Field, Place

Writable: TypeAlias = bytearray | memoryview
Readable: TypeAlias = bytes | Writable


@final
class Codec:
    """Packs and unpacks flat values: the numbers of all fields in order.

    A struct inside another is its bytes.  NaNs keep their bits.
    """

    def __init__(self, name: str, fields: tuple[Field, ...], size: int) -> None:
        """Take the stated offsets and size, which must leave no value overlapping."""
        self._fields = fields
        self._struct = struct.Struct(_format(name, fields, size))
        self._nests = any(place.code[-1] == "s" for f in fields for place in f.places())

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return tuple(place for field in self._fields for place in field.places())

    def pack_into(
        self, buffer: Writable, offset: int, values: Sequence[Any], /
    ) -> None:
        """Write the values at `offset`, padding zeroed; raise as `struct` does."""
        self._struct.pack_into(buffer, offset, *values)
        # A sum is the quickest way to see that there is no NaN among the values.
        total = sum(_numbers(values) if self._nests else values)
        if total != total:  # noqa: PLR0124 - NaN alone differs from itself
            self._write_nans(buffer, offset, values)

    def unpack(self, data: Readable) -> tuple[Any, ...]:
        """Return the values that these bytes hold, which must be as many as there are."""
        values = self._struct.unpack(data)
        total = sum(_numbers(values) if self._nests else values)
        if total != total:  # noqa: PLR0124 - NaN alone differs from itself
            return self._read_nans(data, values)
        return values

    def first_misfit(self, values: Sequence[Any]) -> tuple[int, Any] | None:
        """Return the number and the value of the first that does not fit its place."""
        for number, (place, value) in enumerate(
            zip(self._places, values, strict=False)
        ):
            try:
                struct.pack("<" + place.code, value)
            except (struct.error, OverflowError):
                return number, value
        return None

    def _write_nans(self, buffer: Writable, offset: int, values: Sequence[Any]) -> None:
        for number, place in self._nans(values):
            narrow = NARROW[place.code]
            bits = narrow.nan_bits(values[number])
            struct.pack_into(f"<{narrow.code}", buffer, offset + place.offset, bits)

    def _read_nans(self, data: Readable, values: Sequence[Any]) -> tuple[Any, ...]:
        kept = list(values)
        for number, place in self._nans(values):
            narrow = NARROW[place.code]
            (bits,) = struct.unpack_from(f"<{narrow.code}", data, place.offset)
            kept[number] = narrow.nan(bits)
        return tuple(kept)

    def _nans(self, values: Sequence[Any]) -> Iterator[tuple[int, Place]]:
        for number, place in enumerate(self._places):
            if place.code in NARROW and isnan(values[number]):
                yield number, place


def _numbers(values: Sequence[Any]) -> Iterator[Any]:
    return (value for value in values if value.__class__ is not bytes)


def _format(name: str, fields: Sequence[Field], size: int) -> str:
    """Return the `struct` format of the fields, every gap spelled as pad bytes."""
    parts = ["<"]
    end = 0
    for field in fields:
        for place in field.places():
            assert place.offset >= end, f"{name}: FIELDS overlap at '{field.name}'"
            parts.append(f"{place.offset - end}x{place.code}")
            end = place.offset + place.size
    assert size >= end, f"{name}: SIZE and FIELDS disagree"
    parts.append(f"{size - end}x")
    return "".join(parts)


def struct_dtype(fields: Sequence[Field], size: int) -> np.dtype[np.void]:
    """Return the structured dtype of fields at their offsets."""
    return np.dtype(
        {
            "names": [field.name for field in fields],
            "formats": [field.dtype for field in fields],
            "offsets": [field.offset for field in fields],
            "itemsize": size,
        }
    )
