"""Train: parameters in flat arenas, gradients, clipping, optimizers, checkpoints.

    from kerngen.train import Trainer

    trainer = Trainer(ctx, {"weight": weight, "bias": bias})
    for x, y in batches:
        loss = network(trainer.parameters, x, y)
        trainer.backward(loss)
        trainer.clip_gradients(1.0)
        trainer.adamw_step(lr=1e-3)
    trainer.save("model.safetensors")

A step only records work; the device is waited for where a number is read.
"""

from __future__ import annotations

from kerngen.parts import TRAIN, needing

with needing(__name__, TRAIN):
    from kerngen.train.arena import Layout, Place, Span
    from kerngen.train.captured import CapturedStep
    from kerngen.train.errors import (
        CheckpointError,
        ExchangeError,
        NonFiniteError,
        TornStateError,
    )
    from kerngen.train.exchange import Wire
    from kerngen.train.group import Arrivals, Exchange, ProcessGroup
    from kerngen.train.trainer import Trainer

__all__ = [
    "Arrivals",
    "CapturedStep",
    "CheckpointError",
    "Exchange",
    "ExchangeError",
    "Layout",
    "NonFiniteError",
    "Place",
    "ProcessGroup",
    "Span",
    "TornStateError",
    "Trainer",
    "Wire",
]
