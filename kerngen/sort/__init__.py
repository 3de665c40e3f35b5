"""Sorting, the greatest elements, and compaction of vectors on the device.

    from kerngen.sort import argsort, nonzero, sort, topk

    best = topk(x, 8)                  # x: a matrix; best.values, best.places: [m, 8]
    ordered = sort(v)                  # v: a vector of f32, i32 or u32
    places, number = nonzero(flags)    # places.numpy()[: number.item()]

Nothing is read back: all results are tensors.  It needs the runtime and the generated
kernels, nothing of the compiler.
"""

from __future__ import annotations

from kerngen.parts import STANDARD, needing

with needing(__name__, STANDARD):
    from kerngen.sort.compact import Nonzero, Unique, nonzero, unique
    from kerngen.sort.radix import Sorted, argsort, sort, sort_by_key, take
    from kerngen.sort.topk import TopK, topk

__all__ = [
    "Nonzero",
    "Sorted",
    "TopK",
    "Unique",
    "argsort",
    "nonzero",
    "sort",
    "sort_by_key",
    "take",
    "topk",
    "unique",
]
