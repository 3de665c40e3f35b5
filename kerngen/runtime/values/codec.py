"""Conversion of a struct's values to bytes and back by `struct.Struct`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import isnan
from operator import itemgetter
from typing import Any, TypeAlias, final

import numpy as np

from kerngen.runtime.values.bits import NARROW
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.fields import Field, FieldPlace, is_leaf

Writable: TypeAlias = bytearray | memoryview
Readable: TypeAlias = bytes | Writable


@final
class Codec:
    """Packs and unpacks a struct's flat values: the numbers of all fields in order.

    A nested struct is packed as its bytes.  The bits of NaNs are kept.  Of a vec3f at 0, an
    f32 at 12 and a u32 at 32, in 48 bytes, the format is `<0x3f0x1f16x1I12x`: offsets in it
    are gaps of pad bytes.
    """

    def __init__(self, name: str, fields: tuple[Field, ...], size: int) -> None:
        """Compile the format for fields at these offsets; they must not overlap."""
        self._fields = fields
        self._size = size
        end = 0
        for field in fields:
            where = f"'{name}.{field.name}'"
            assert field.offset >= end, f"{where} overlaps the field before it"
            end = field.offset + field.size
        assert size >= end, f"{name}: SIZE and FIELDS disagree"

    # Made at the first use, not at the import that declares the structs of a module.
    @cached_property
    def _pick(self) -> Callable[[Sequence[Any]], Iterable[Any]] | None:
        return _number_picker(self._fields)

    @cached_property
    def _struct(self) -> struct.Struct:
        return struct.Struct(_format(self._fields, self._size))

    @cached_property
    def _places(self) -> tuple[FieldPlace, ...]:
        return tuple(place for field in self._fields for place in field.places())

    @cached_property
    def structs(self) -> tuple[tuple[int, type[Element]], ...]:
        """The position of each nested struct among the flat values, and its class."""
        kinds = (f.type for f in self._fields for _ in range(f.count))
        return tuple(place for place in enumerate(kinds) if not is_leaf(place[1]))

    def pack_into(
        self, buffer: Writable, offset: int, values: Sequence[Any], /
    ) -> None:
        """Store the flat values in `buffer` from `offset` on; padding becomes 0.

        Raises what `struct.Struct.pack_into` raises for values that don't fit.
        """
        self._struct.pack_into(buffer, offset, *values)
        # A sum is the quickest way to see that there is no NaN among the values: it is NaN
        # if one is (and for inf - inf, for which `_nans` then finds none).
        total = sum(values if self._pick is None else self._pick(values))
        if total != total:  # noqa: PLR0124 - NaN alone differs from itself
            self._write_nans(buffer, offset, values)

    def unpack(self, data: Readable) -> tuple[Any, ...]:
        """Return the flat values of `data`, which must be the bytes of one struct."""
        values = self._struct.unpack(data)
        total = sum(values if self._pick is None else self._pick(values))
        if total != total:  # noqa: PLR0124 - NaN alone differs from itself
            return self._read_nans(data, values)
        return values

    def first_misfit(self, values: Sequence[Any]) -> tuple[int, Any] | None:
        """Return the position and value of the first that does not fit its field, or None."""
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

    def _nans(self, values: Sequence[Any]) -> Iterator[tuple[int, FieldPlace]]:
        for number, place in enumerate(self._places):
            if place.code in NARROW and isnan(values[number]):
                yield number, place


def _number_picker(
    fields: Sequence[Field],
) -> Callable[[Sequence[Any]], Iterable[Any]] | None:
    """Return a function that picks the numbers out of flat values, or None if all are."""
    kinds = [is_leaf(field.type) for field in fields for _ in range(field.count)]
    chosen = [number for number, is_number in enumerate(kinds) if is_number]
    if len(chosen) == len(kinds):
        return None
    if len(chosen) > 1:
        return itemgetter(*chosen)
    return lambda values: [values[number] for number in chosen]


def _format(fields: Sequence[Field], size: int) -> str:
    """Return the `struct` format of the fields, every gap spelled as pad bytes."""
    parts = ["<"]
    end = 0
    for field in fields:
        if is_leaf(field.type) and field.count * field.type.number.size == field.size:
            code = f"{field.count}{field.type.number.code}"
            parts.append(f"{field.offset - end}x{code}")
            end = field.offset + field.size
            continue
        for place in field.places():
            parts.append(f"{place.offset - end}x{place.code}")
            end = place.offset + place.size
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
