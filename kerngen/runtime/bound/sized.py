"""Structs whose last member is an array of any length: classes for one length."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar, cast

from kerngen.runtime.errors import ShapeError
from kerngen.runtime.struct import Struct
from kerngen.runtime.values.codec import struct_dtype

S = TypeVar("S", bound=Struct)


def sized(struct: type[S], count: int) -> type[S]:
    """Return a struct's class with `count` elements in its runtime-sized array.

    It is an element type: `ctx.scalar(record, sized(Particles, 100))` is a buffer of one
    such struct, and `arrayLength()` is 100 in a shader that it is bound to.

    Raises ShapeError if a buffer can't have that many: it has one at least, and as many
    as the size of the struct has room for.
    """
    found: type[Struct] = _sized(cast("Hashable", struct), count)
    return cast("type[S]", found)


@lru_cache(maxsize=1024)
def _sized(hashable: Hashable, count: int) -> type[Struct]:
    struct = cast("type[Struct]", hashable)
    *others, last = struct.FIELDS
    least = max(1, (struct.SIZE - last.offset) // last.stride) if last.stride else 0
    if not last.lengths or count < least:
        rule = f"it has {least} at least" if last.lengths else "it ends in no array"
        raise ShapeError(f"'{struct.__name__}' with {count} elements: {rule}.")
    fields = (*others, replace(last, lengths=(count, *last.lengths[1:])))
    # A buffer is as long as whole words; a struct that is padded would have room for more.
    size = max(struct.SIZE, -(-(last.offset + count * last.stride) // 4) * 4)
    namespace = {
        "__slots__": (),
        "__module__": struct.__module__,
        "FIELDS": fields,
        "SIZE": size,
        "DTYPE": struct_dtype(fields, size),
    }
    made: type[Struct] = type(struct.__name__, (struct,), namespace)
    made.value_class = made
    return made
