"""Cases of sorting and of the greatest elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kerngen.bench.arguments import Sizes, random_tensor, rotations
from kerngen.bench.case import BenchCase, Unit
from kerngen.bench.measure import Launch
from kerngen.bench.system_sizes import (
    SORT,
    SORT_SIZES,
    TOPK,
    TOPK_SIZES,
    chosen_sizes,
)
from kerngen.runtime import Context, Tensor, f32
from kerngen.sort import sort, topk


def sort_case(sizes: Sizes) -> BenchCase:
    """Return the case of sorting a vector of f32."""
    (n,) = chosen_sizes(SORT, SORT_SIZES, sizes)
    # Each element is read and written once, at least.
    return _case(SORT, sizes, (n,), 8 * n, sort)


def topk_case(sizes: Sizes) -> BenchCase:
    """Return the case of the k greatest elements of rows."""
    m, n, k = chosen_sizes(TOPK, TOPK_SIZES, sizes)
    # Elements are read, and k values with their places written.
    return _case(TOPK, sizes, (m, n), 4 * m * n + 8 * m * k, lambda x: topk(x, k))


def _case(
    name: str,
    sizes: Sizes,
    shape: tuple[int, ...],
    moved: int,
    function: Callable[[Tensor[f32, Any]], object],
) -> BenchCase:
    """Return the case of a function of a tensor, which moves at least `moved` bytes."""

    def prepare(ctx: Context) -> Launch:
        inputs = [
            random_tensor(ctx, f32, shape, seed)
            for seed in range(rotations(moved, ctx.kind))
        ]

        def launch(turn: int) -> object:
            return function(inputs[turn % len(inputs)])

        return launch

    largest = 4 * max(shape[0], 1) * (shape[1] if len(shape) > 1 else 1)
    return BenchCase(name, sizes, Unit.BYTES, moved, 0, largest, prepare, name)


_SIZES: Final[tuple[Sizes, ...]] = ({"m": 16384, "n": 4096, "k": 8}, {"n": 2**26})
_SMALL: Final[tuple[Sizes, ...]] = ({"m": 64, "n": 4096, "k": 8}, {"n": 2**14})
"""Sizes of the suite's cases, top-k and sort, as `_SIZES`, for adapters that are no GPUs."""


def sorting_cases(*, small: bool) -> Iterator[BenchCase]:
    """Yield the cases for a GPU, or small ones."""
    rows, vector = _SMALL if small else _SIZES
    yield topk_case(rows)
    yield sort_case(vector)
