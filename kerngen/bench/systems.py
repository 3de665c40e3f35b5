"""Cases of several kernels: a step of a trainer, the feed-forward part of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kerngen.bench.arguments import Sizes, random_tensor, rotations
from kerngen.bench.case import Case, Unit
from kerngen.bench.measure import Launch
from kerngen.matmul_cache import MatmulCache
from kerngen.runtime import Context, Tensor, f32
from kerngen.train import Trainer
from kerngen_kernels import elementwise

STEP, FEED_FORWARD = "clip and AdamW", "feed-forward"
"""The cases' names, to choose them by."""

Floats = Tensor[f32, Any]


def step_lengths(tensors: int, shortest: int, longest: int) -> list[int]:
    """Return the lengths of parameters, spread evenly by their logarithms."""
    return [int(n) for n in np.geomspace(shortest, longest, tensors).round()]


def step_case(sizes: Sizes) -> Case:
    """Return the case of clipping by the global norm, then AdamW, over flat arenas."""
    lengths = step_lengths(**sizes)
    total = sum(lengths)

    def prepare(ctx: Context) -> Launch:
        block = np.random.default_rng(0).random(lengths[-1], np.float32)
        trainer = Trainer(ctx, {f"p{i}": block[:n] for i, n in enumerate(lengths)})
        for i, n in enumerate(lengths):
            trainer.gradients[f"p{i}"].copy_from(random_tensor(ctx, f32, (n,), i))

        def launch(turn: int) -> None:
            del turn
            trainer.clip_gradients(1.0)
            trainer.adamw_step(lr=1e-3)

        return launch

    return Case(
        STEP, sizes, Unit.BYTES, 40 * total, 18 * total, 4 * max(lengths), prepare, STEP
    )


def feed_forward_case(sizes: Sizes) -> Case:
    """Return the case of `down(swiglu(gate x, up x))`, layer after layer."""
    m, width, inner, layers = (sizes[key] for key in ("m", "width", "inner", "layers"))
    weights = 3 * layers * width * inner

    def prepare(ctx: Context) -> Launch:
        cache = _weights(ctx, width, inner, layers)
        count = rotations(4 * weights, ctx.kind)
        inputs: list[Floats] = [
            random_tensor(ctx, f32, (m, width), seed) for seed in range(count)
        ]

        def launch(turn: int) -> None:
            x = inputs[turn % count]
            for layer in range(layers):
                gate = cache.matmul(f"gate{layer}", x).reshape(m * inner)
                up = cache.matmul(f"up{layer}", x).reshape(m * inner)
                between = elementwise.swiglu(gate, up).reshape((m, inner))
                x = cache.matmul(f"down{layer}", between)

        return launch

    moved = 4 * (weights + layers * m * (3 * inner + 2 * width))
    return Case(
        FEED_FORWARD,
        sizes,
        Unit.OPERATIONS if m > 16 else Unit.BYTES,
        moved,
        2 * m * weights,
        4 * inner * max(m, width),
        prepare,
        FEED_FORWARD,
    )


def _weights(ctx: Context, width: int, inner: int, layers: int) -> MatmulCache:
    cache = MatmulCache(ctx)
    block = np.random.default_rng(0).random((inner, width), np.float32) / width
    for layer in range(layers):
        cache.upload_weight(f"gate{layer}", block)
        cache.upload_weight(f"up{layer}", block)
        cache.upload_weight(f"down{layer}", block.reshape(width, inner))
    return cache


_QWEN3_4B: Final = {"width": 2560, "inner": 9728, "layers": 36}
_SMALL: Final = {"width": 256, "inner": 1024, "layers": 2}


def system_cases(*, small: bool) -> Iterator[Case]:
    """Yield the cases for a GPU, or small ones."""
    yield step_case(
        {"tensors": 100, "shortest": 10**2, "longest": 10**4}
        if small
        else {"tensors": 100, "shortest": 10**4, "longest": 10**7}
    )
    for m in (1, 16) if small else (1, 512):
        yield feed_forward_case({"m": m, **(_SMALL if small else _QWEN3_4B)})
