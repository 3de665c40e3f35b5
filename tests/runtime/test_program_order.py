"""Program order: whatever is interleaved, the result is that of running at once.

`test_machine.py` interleaves at random.
"""

from __future__ import annotations

import numpy as np

from kerngen.runtime import Context, Vector, f32
from tests.runtime.kernels import ACCUMULATE, AXPY, launch


def test_an_upload_waits_for_recorded_readers(ctx: Context) -> None:
    x, y = ctx.vector(np.ones(64), f32), ctx.zeros(64, f32)
    launch(ACCUMULATE, y, x, factor=1.0)
    x.copy_from(np.full(64, 100.0))
    np.testing.assert_array_equal(y.numpy(), np.ones(64, np.float32))
    np.testing.assert_array_equal(x.numpy(), np.full(64, 100, np.float32))


def test_a_pooled_buffer_filled_anew_waits_for_recorded_readers(ctx: Context) -> None:
    y = ctx.zeros(64, f32)
    before = ctx.counters.snapshot()
    kept: list[Vector[f32]] = []
    for value in range(20):
        x = ctx.vector(np.full(64, value), f32)
        kept += launch(AXPY, x, y, alpha=1.0)
        del x
    reused = (ctx.counters - before).copies
    assert reused > 0, "no buffer came back while it was in use: the test tests nothing"
    for value, z in enumerate(kept):
        np.testing.assert_array_equal(z.numpy(), np.full(64, value, np.float32))
