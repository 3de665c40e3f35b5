"""Order of elements: the greatest of each row.

    from kerngen.sort import topk

    best = topk(x, 8)                  # x: a matrix on the device
    best.values, best.places           # f32[m, 8], i32[m, 8]

It needs the runtime and the generated kernels, nothing of the compiler.
"""

from __future__ import annotations

from kerngen.parts import STANDARD, needing

with needing(__name__, STANDARD):
    from kerngen.sort.topk import TopK, topk

__all__ = ["TopK", "topk"]
