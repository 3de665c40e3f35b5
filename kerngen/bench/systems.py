"""Cases of several kernels: an optimizer step, and a feed-forward block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from kerngen.bench.arguments import Sizes, random_tensor, rotations
from kerngen.bench.case import BenchCase, Unit
from kerngen.bench.measure import Launch
from kerngen.bench.system_sizes import (
    FEED_FORWARD,
    FEED_FORWARD_SIZES,
    STEP,
    chosen_sizes,
    step_lengths,
)
from kerngen.runtime import Context, Tensor, f32
from kerngen.train import Trainer
from kerngen_kernels import elementwise, gemv, matmul

Floats: TypeAlias = Tensor[f32, Any]

_SCALE: Final = 1e-3
"""Keeps the values of layer after layer finite."""


def step_case(sizes: Sizes) -> BenchCase:
    """Return the case of clipping by the global norm, then AdamW, over flat arenas."""
    lengths = step_lengths(sizes)
    total = sum(lengths)

    def prepare(ctx: Context) -> Launch:
        block = np.random.default_rng(0).random(max(lengths), np.float32)
        trainer = Trainer(ctx, {f"p{i}": block[:n] for i, n in enumerate(lengths)})
        for i, n in enumerate(lengths):
            trainer.gradients[f"p{i}"].copy_from(random_tensor(ctx, f32, (n,), i))

        def launch(turn: int) -> None:
            del turn
            trainer.clip_gradients(1.0)
            trainer.adamw_step(lr=1e-3)

        return launch

    # For each element, clipping reads the gradient for the norm (4 bytes), then reads and
    # writes it (8); AdamW reads four tensors (16) and writes three (12). The operations are
    # 3 and 15.
    return BenchCase(
        STEP, sizes, Unit.BYTES, 40 * total, 18 * total, 4 * max(lengths), prepare, STEP
    )


def feed_forward_case(sizes: Sizes) -> BenchCase:
    """Return the case of `down(swiglu(gate x, up x))`, layer after layer."""
    m, width, inner, layers = chosen_sizes(FEED_FORWARD, FEED_FORWARD_SIZES, sizes)
    weights = 3 * layers * width * inner

    def prepare(ctx: Context) -> Launch:
        shapes = ((inner, width), (inner, width), (width, inner))
        held: list[list[Floats]] = [
            [random_tensor(ctx, f32, shape, layer) for shape in shapes]
            for layer in range(layers)
        ]
        inputs: list[Floats] = [
            random_tensor(ctx, f32, (m, width), seed)
            for seed in range(rotations(4 * weights, ctx.kind))
        ]

        def launch(turn: int) -> None:
            x = inputs[turn % len(inputs)]
            for gate, up, down in held:
                opened = _linear(x, gate).reshape(m * inner)
                between = elementwise.swiglu(opened, _linear(x, up).reshape(m * inner))
                x = _linear(between.reshape((m, inner)), down)

        return launch

    # Weights once; of each layer the results of gate and up, their product, x and y.
    moved = 4 * (weights + layers * m * (3 * inner + 2 * width))
    return BenchCase(
        FEED_FORWARD,
        sizes,
        Unit.OPERATIONS if m > 16 else Unit.BYTES,
        moved,
        2 * m * weights,
        4 * inner * max(m, width),
        prepare,
        FEED_FORWARD,
    )


def _linear(x: Floats, weight: Floats) -> Floats:
    """Return x weight^T, by the kernel that a `MatmulCache` would run."""
    rows, width = x.shape
    if rows == 1:
        return gemv.gemv(weight, x.reshape(width), alpha=_SCALE).reshape((1, -1))
    return matmul.matmul_nt(x, weight, alpha=_SCALE)


_QWEN3_4B: Final = {"width": 2560, "inner": 9728, "layers": 36}
_SMALL: Final = {"width": 256, "inner": 1024, "layers": 2}
"""The feed-forward blocks for adapters that are no GPUs; a GPU's are those of Qwen3-4B."""


def system_cases(*, small: bool) -> Iterator[BenchCase]:
    """Yield the cases for a GPU, or small ones."""
    yield step_case(
        {"tensors": 100, "shortest": 10**2, "longest": 10**4}
        if small
        else {"tensors": 100, "shortest": 10**4, "longest": 10**7}
    )
    for m in (1, 16) if small else (1, 512):
        yield feed_forward_case({"m": m, **(_SMALL if small else _QWEN3_4B)})
