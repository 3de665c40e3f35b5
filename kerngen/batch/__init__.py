"""Batches: operations queued on buffers, and run together by one submission.

from kerngen.batch import Batch

batch = Batch(ctx)
x = batch.upload(array)
y = batch.relu(batch.scale(x, 0.5))
batch.execute()
batch.read(y)
"""

from __future__ import annotations

from kerngen.parts import STANDARD, needing

with needing(__name__, STANDARD):
    from kerngen.batch.batch import Batch
    from kerngen.batch.buffer import BatchBuffer

__all__ = ["Batch", "BatchBuffer"]
