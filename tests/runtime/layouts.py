"""Arrays of small whole numbers, and the ways in which they may lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


def whole(seed: int, length: int) -> Array:
    """Small whole numbers of both signs."""
    return ((np.arange(length) + seed) % 7 - 3).astype(np.float32)


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def mapped(array: Array) -> Array:
    with TemporaryFile() as file:
        file.write(array.tobytes())
        file.flush()
        return np.memmap(file, array.dtype, "r", shape=array.shape)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "backwards": lambda array: array[::-1],
    "every other": lambda array: array[::2],
    "other way round": lambda array: array.astype(">f4"),
    "transposed": lambda array: array.reshape(2, -1).T,
    "repeated": lambda array: np.broadcast_to(array[:1], (5,)),
    "read-only": read_only,
    "mapped": mapped,
    "one": lambda array: array[0],
}
