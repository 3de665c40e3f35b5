"""Names and sizes of cases of several kernels, shared with peers."""

from __future__ import annotations

from typing import Final

import numpy as np

from kerngen.bench.arguments import Sizes
from kerngen.runtime import ShapeError

STEP, FEED_FORWARD = "clip and AdamW", "feed-forward"
SORT, TOPK = "sort", "top-k"
"""The cases' names, to choose them by."""

STEP_SIZES: Final = ("tensors", "shortest", "longest")
SORT_SIZES: Final = ("n",)
TOPK_SIZES: Final = ("m", "n", "k")
FEED_FORWARD_SIZES: Final = ("m", "width", "inner", "layers")


def step_lengths(sizes: Sizes) -> list[int]:
    """Return the lengths of a network's parameters, evenly spread on a log scale."""
    tensors, shortest, longest = chosen_sizes(STEP, STEP_SIZES, sizes)
    return [int(n) for n in np.geomspace(shortest, longest, tensors).round()]


def chosen_sizes(name: str, known: tuple[str, ...], sizes: Sizes) -> tuple[int, ...]:
    """Return the sizes in order; raise KeyError if one is missing.

    Raises ShapeError if a size is unknown, or below 1.
    """
    for key, size in sizes.items():
        if key not in known:
            raise ShapeError(
                f"'{name}' has no size '{key}': it has {', '.join(known)}."
            )
        if size < 1:
            raise ShapeError(f"'{name}': '{key}' must be at least 1, not {size}.")
    return tuple(sizes[key] for key in known)
