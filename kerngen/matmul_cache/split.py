"""Splitting a weight into row ranges that the adapter can bind.

Rows are stored one after the other, so each part is contiguous in the caller's array and
on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kerngen.matmul_cache.layouts import LAYOUTS, Layout, weight_shape
from kerngen.plan.hostmath import ceil_div
from kerngen.runtime import LimitError, f32
from kerngen.runtime.tensor import STORAGE_ALIGNMENT

RowRange: TypeAlias = tuple[int, int]
"""The first row, and the one after the last."""

F32_BYTES = f32.DTYPE.itemsize

ROW_STEP = 64
"""Parts start at multiples of it: results at 4 bytes a row then start at multiples of
256 bytes, which every adapter can bind without a copy (WebGPU's
`min-storage-buffer-offset-alignment`)."""


def split_weight(layout: Layout, k: int, n: int, most: int) -> Sequence[RowRange]:
    """Return the row ranges of a weight's parts, at most `most` bytes each.

    There are as few as can be, of nearly equal length.  Where `ROW_STEP` rows are too
    many for a part, parts start at any row: results at an offset that the adapter can't
    bind then take a copy.

    Raises:
        LimitError: If a single row is larger than `most`.
    """
    rows, columns = weight_shape(layout, k, n)
    row_bytes = columns * F32_BYTES
    room = _room(most)
    if rows * row_bytes <= room:
        return ((0, rows),)
    fitting = room // row_bytes
    if fitting == 0:
        raise _row_too_long(layout, k, n, most)
    step = ROW_STEP if fitting >= ROW_STEP else 1
    fitting -= fitting % step
    # Nearly equal parts: of 1000 rows of which 320 fit, three have 256, the last one 232.
    parts = ceil_div(rows, fitting)
    length = ceil_div(ceil_div(rows, parts), step) * step
    return tuple((start, min(start + length, rows)) for start in range(0, rows, length))


def _room(most: int) -> int:
    """Return the bytes of elements that can be bound: storage is padded to 16 bytes."""
    return most // STORAGE_ALIGNMENT * STORAGE_ALIGNMENT


def _row_too_long(layout: Layout, k: int, n: int, most: int) -> LimitError:
    rows, columns = weight_shape(layout, k, n)
    across = "k" if LAYOUTS[layout].axis == "n" else "n"
    other = "kn" if layout == "nk" else "nk"
    across_bytes = rows * F32_BYTES
    transpose = f"the transpose with layout='{other}', whose rows take {across_bytes} bytes, or "
    return LimitError(
        f"One row of a weight of shape {(rows, columns)} (layout "
        f"'{layout}') takes {columns * F32_BYTES} bytes, and the adapter binds at most "
        f"{most}; rows are never cut. Upload "
        f"{transpose * (across_bytes <= _room(most))}several weights with a part of "
        f"{across} each."
    )
