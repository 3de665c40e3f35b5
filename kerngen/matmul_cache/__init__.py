"""Matrix products with weights that stay on the device: one call per layer.

    from kerngen.matmul_cache import MatmulCache

    cache = MatmulCache(ctx)
    cache.upload_weight("up", linear.weight.detach().numpy())  # [n, k], as in PyTorch
    y = cache.matmul("up", x)                                  # [m, k] gives [m, n]
    print(cache.plan(m=1, k=2560, n=9728).why)

It needs the runtime and the generated kernels, nothing of the compiler.
"""

from __future__ import annotations

from kerngen.parts import STANDARD, needing

with needing(__name__, STANDARD):
    from kerngen.matmul_cache.cache import MatmulCache, MemoryUse
    from kerngen.matmul_cache.layouts import Layout
    from kerngen.matmul_cache.plan import MatmulPlan, PlannedPart, ScheduleName

__all__ = [
    "Layout",
    "MatmulCache",
    "MatmulPlan",
    "MemoryUse",
    "PlannedPart",
    "ScheduleName",
]
