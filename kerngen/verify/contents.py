"""Contents of tensors and parameters: from NumPy arrays to the oracle's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.types import Scalar, scalar_of
from kerngen.runtime.values.records import numbers
from kerngen.verify.meaning import number
from kerngen.verify.meaning.evaluate import Contents
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.vectors import components


def leaves(
    memory: MemoryType, array: NDArray[Any], path: str = ""
) -> Iterator[tuple[str, Leaf, NDArray[Any]]]:
    """Yield the arrays of numbers in an array of elements, each with its path.

    Axes of the array come first, then those of fixed arrays, then components.
    """
    match memory:
        case Leaf():
            yield path, memory, numbers(array)
        case FixedArray(innermost=innermost):
            yield from leaves(innermost, array, path)
        case Struct(members=members):
            names = array.dtype.names or ()
            for member, name in zip(members, names, strict=True):
                yield from leaves(member.type, array[name], f"{path}.{member.name}")
        case _:
            assert_never(memory)


def contents_of(memory: MemoryType, array: NDArray[Any]) -> Contents:
    """Return an argument's values as the oracle's numbers."""
    match memory:
        case Leaf(type=type_):
            found = numbers(array)
            if scalar_of(type_) is Scalar.F32:
                return number.real(found)
            return number.known(found.astype(np.int64))
        case FixedArray(innermost=innermost):
            return contents_of(innermost, array)
        case Struct(members=members):
            names = array.dtype.names or ()
            return {
                member.name: contents_of(member.type, array[name])
                for member, name in zip(members, names, strict=True)
            }
        case _:
            assert_never(memory)


def blank(memory: MemoryType, shape: tuple[int, ...]) -> Contents:
    """Return the contents of an output before anything is written."""
    match memory:
        case Leaf(type=type_):
            return number.unknown((*shape, *components(type_)), scalar_of(type_))
        case FixedArray(lengths=lengths, innermost=innermost):
            return blank(innermost, (*shape, *lengths))
        case Struct(members=members):
            return {each.name: blank(each.type, shape) for each in members}
        case _:
            assert_never(memory)


def flat(contents: Contents) -> Iterator[BoundedArray]:
    """Yield all numbers of some contents, in the order of `leaves`."""
    if isinstance(contents, BoundedArray):
        yield contents
        return
    assert isinstance(contents, Mapping), "all of it is computed"
    for part in contents.values():
        yield from flat(part)
