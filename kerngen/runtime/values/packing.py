"""Integers of 4 bits, packed two to a byte, and the byte sizes of tensors.

Of two neighbours the first is in the lower half of their byte, and bytes follow each other
across the rows; the last half is 0 where the number of elements is odd.

    >>> pack4(np.array([[1, 2, 3], [4, 5, 6]]))
    array([33, 67, 101], dtype=uint8)
    >>> unpack4(np.array([0x21, 0x43], np.uint8), (3,), i4)
    array([1, 2, 3], dtype=int8)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import DtypeError, ShapeError
from kerngen.runtime.values.elements import Element, Leaf
from kerngen.runtime.values.shapes import Shape

_HALF = 4
"""The bits of half a byte."""


def is_packed(element: type[Element]) -> bool:
    """Whether two elements of this type share a byte, as those of u4 and i4 do."""
    return issubclass(element, Leaf) and element.number.shares_bytes


def is_narrow(element: type[Element]) -> bool:
    """Whether several elements share a word of four bytes: integers of 4 and of 8 bits."""
    return issubclass(element, Leaf) and element.number.bits > 0


def element_bytes(element: type[Element], shape: Shape) -> int:
    """Return how many bytes the elements of a tensor take."""
    count = math.prod(shape)
    return -(-count // 2) if is_packed(element) else count * element.DTYPE.itemsize


def pack4(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return integers of 4 bits, signed or not, packed two to a byte.

    Raises:
        DtypeError: If a number is below -8 or above 15, or the array is none of integers.
    """
    if array.dtype.kind not in "iu":
        raise DtypeError(f"pack4 takes an array of integers, got {array.dtype}.")
    if array.size and (array.min() < -8 or array.max() > 15):
        raise DtypeError("pack4 takes integers of 4 bits: -8 to 7, or 0 to 15.")
    halves: NDArray[np.uint8] = np.asarray(array.reshape(-1) & 0xF, np.uint8)
    if halves.size % 2:
        halves = np.append(halves, np.uint8(0))
    packed: NDArray[np.uint8] = halves[::2] | (halves[1::2] << np.uint8(_HALF))
    return packed


def unpack4(
    packed: NDArray[np.uint8], shape: Shape, element: type[Leaf]
) -> NDArray[Any]:
    """Return the integers that `pack4` packed, as uint8 for `u4` and int8 for `i4`.

    Raises:
        ShapeError: If there are not as many bytes as the shape needs.
    """
    expected = element_bytes(element, shape)
    if packed.dtype != np.uint8 or packed.size != expected or not is_packed(element):
        raise ShapeError(
            f"unpack4: {element.__name__} elements of shape {shape} are {expected} "
            f"bytes of uint8, got {packed.size} of {packed.dtype}."
        )
    halves = np.empty(2 * packed.size, np.uint8)
    # Each half is shifted to the upper end, and down again with or without its sign.
    halves[::2], halves[1::2] = packed.reshape(-1) << _HALF, packed.reshape(-1) & 0xF0
    whole = halves[: math.prod(shape)].view(element.number.dtype) >> _HALF
    return whole.reshape(shape)
