"""Small networks and batches for the tests of the trainer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.runtime import f32
from kerngen.train import Trainer
from kerngen_kernels import elementwise

from .optimizers import ADAMW, Case

INPUTS, HIDDEN, CLASSES, BATCH = 6, 9, 4, 8


def initial(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Parameters of a network with one hidden layer."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "hidden.weight": (HIDDEN, INPUTS),
        "hidden.bias": (HIDDEN,),
        "out.weight": (CLASSES, HIDDEN),
        "out.bias": (CLASSES,),
    }
    return {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}


def loss_of(trainer: Trainer, step: int) -> nn.Variable:
    """The loss of the batch of a step, which is a function of its number alone."""
    rng = np.random.default_rng(step)
    p = trainer.parameters
    x = trainer.ctx.matrix(rng.normal(size=(BATCH, INPUTS)), f32)
    hidden = nn.gelu(nn.linear(x, p["hidden.weight"], p["hidden.bias"]))
    logits = nn.linear(hidden, p["out.weight"], p["out.bias"])
    return nn.cross_entropy(logits, rng.integers(0, CLASSES, BATCH))


def take_step(trainer: Trainer, case: Case = ADAMW) -> gpu.Scalar[f32]:
    """Take the next step and return the norm of its gradients."""
    trainer.backward(loss_of(trainer, trainer.step_count))
    norm = trainer.clip_gradients(1.0)
    case.step(trainer, lr=1e-2)
    return norm


def poison(trainer: Trainer, name: str = "out.bias", value: float = np.nan) -> None:
    """Make an element of a gradient something that is not finite."""
    gradient = trainer.gradients[name]
    array = np.zeros(gradient.shape, np.float32)
    array.flat[-1] = value
    gradient.copy_from(array)


@contextmanager
def lost(ctx: gpu.Context) -> Generator[None, None, None]:
    """Let what is recorded in the block end with another kernel's error."""
    doomed = ctx.vector([1.0], f32)
    buffer = doomed.buffer
    yield
    elementwise.neg(doomed)
    buffer.destroy()
    with pytest.raises(gpu.Error):
        ctx.submit()
