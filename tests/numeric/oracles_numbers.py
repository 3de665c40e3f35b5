"""What the standard kernels of statistics, random numbers and casts compute, in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .approx import Array, exactly, known

Leaf: TypeAlias = Callable[[Array], Array]
"""Makes numbers that carry bounds on their errors: for oracles that take no tensors."""


def row_mean(x: Array) -> Array:
    """The mean of each row; 0 of nothing."""
    mean: Array = x.sum(-1) / max(x.shape[-1], 1)
    return mean


def row_variance(x: Array, *, ddof: int) -> Array:
    """The mean square of the differences from the mean."""
    d = x - row_mean(x)[:, None]
    variance: Array = (d * d).sum(-1) / (x.shape[1] - ddof)
    return variance


def standardize(x: Array, *, eps: float) -> Array:
    """Mean 0 and deviation 1."""
    d = x - row_mean(x)[:, None]
    return d / (np.sqrt(row_mean(d * d)) + eps)[:, None]


def covariance(x: Array, *, ddof: int) -> Array:
    """Of each two columns."""
    d = x - x.sum(0) / x.shape[0]
    result: Array = d.T @ d / (x.shape[0] - ddof)
    return result


def histogram(x: Array, *, low: float, high: float, bins: int) -> NDArray[np.int64]:
    """NumPy's own."""
    return np.histogram(exactly(x), bins, (low, high))[0]


def bincount(x: NDArray[np.uint32], *, bins: int) -> NDArray[np.int64]:
    """How often each number appears."""
    result: NDArray[np.int64] = np.equal.outer(np.arange(bins), x).sum(1)
    return result


def moving_average(x: Array, *, window: int) -> Array:
    """The mean of each window."""
    mean: Array = sliding_window_view(x, window, 0).sum(-1) / window
    return mean


def cosine_similarity(a: Array, b: Array, *, eps: float) -> Array:
    """The product by the norms."""
    norms = np.sqrt((a * a).sum(-1)) * np.sqrt((b * b).sum(-1))
    result: Array = (a * b).sum(-1) / np.maximum(norms, eps)
    return result


def pairwise_squared_distances(a: Array, b: Array) -> Array:
    """The squares of the differences, added up."""
    d = a[:, None] - b[None]
    result: Array = (d * d).sum(-1)
    return result


def philox(x: int, y: int, key: int) -> tuple[int, int]:
    """Philox2x32-10 by Python's integers, as in Random123's philox.h."""
    for _ in range(10):
        product = 0xD256D193 * x
        x, y = (product >> 32) ^ key ^ y, product & 0xFFFFFFFF
        key = (key + 0x9E3779B9) & 0xFFFFFFFF
    return x, y


def words(count: int, seed: int, offset: int, stream: int) -> NDArray[np.int64]:
    """Both words of `count` counters from `offset` on."""
    places = [(offset + place) & 0xFFFFFFFF for place in range(count)]
    drawn = [philox(place, stream, seed) for place in places]
    return np.array(drawn, np.int64).reshape(count, 2).T


def units(count: int, seed: int, offset: int, stream: int) -> Array:
    """The same as numbers from 0 up to, but not, 1."""
    return (words(count, seed, offset, stream) >> 8) / 2**24


def random_bits(
    _: Leaf, *, count: int, seed: int, offset: int, stream: int
) -> NDArray[np.int64]:
    """The first words."""
    result: NDArray[np.int64] = words(count, seed, offset, stream)[0]
    return result


def uniform(_: Leaf, *, count: int, seed: int, offset: int, stream: int) -> Array:
    """The first words, as numbers."""
    result: Array = units(count, seed, offset, stream)[0]
    return result


def normal(
    leaf: Leaf,
    *,
    count: int,
    seed: int,
    offset: int,
    stream: int,
    mean: float,
    deviation: float,
) -> Array:
    """Box and Muller's: a radius and a direction; cos(x - pi) = -cos(x)."""
    u, v = units(count, seed, offset, stream)
    angle = 2 * math.pi * (leaf(v) - 0.5)
    radius = np.sqrt(np.maximum(-2 * np.log(1 - leaf(u)), 0))
    result: Array = mean - deviation * radius * np.cos(angle)
    return result


def gumbel(x: Array, *, temperature: float, seed: int, place: int) -> Array:
    """Logits and noise."""
    rows, columns = x.shape
    drawn = [
        [philox(j, place, (seed + i) & 0xFFFFFFFF)[0] >> 9 for j in range(columns)]
        for i in range(rows)
    ]
    u = (np.array(drawn, np.float64).reshape(rows, columns) + 0.5) / 2**23
    noise: Array = -np.log(-np.log(known(u, x)))
    return x / temperature + noise


def dropout(x: Array, *, rate: float, seed: int, offset: int, stream: int) -> Array:
    """0 where the random number is below the rate."""
    kept = units(x.shape[0], seed, offset, stream)[0] >= np.float32(rate)
    return np.where(kept, 1 / (1 - rate) * x, 0.0)


def f32_to_i32(x: Array) -> NDArray[np.int64]:
    """Toward 0, inside the range as far as float32 reaches."""
    return np.trunc(np.clip(exactly(x), -(2.0**31), 2147483520)).astype(np.int64)


def f32_to_u32(x: Array) -> NDArray[np.int64]:
    """Toward 0, inside the range as far as float32 reaches."""
    return np.trunc(np.clip(exactly(x), 0, 4294967040)).astype(np.int64)


def to_f32(x: NDArray[np.integer[Any]]) -> Array:
    """The same number."""
    return x.astype(np.float64)


def i32_to_u32(x: NDArray[np.int32]) -> NDArray[np.int64]:
    """Modulo 2^32."""
    return x.astype(np.int64) % 2**32


def u32_to_i32(x: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Modulo 2^32, the upper half below 0."""
    return (x.astype(np.int64) + 2**31) % 2**32 - 2**31


NUMBERS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "statistics": {
        "row_mean": row_mean,
        "row_variance": row_variance,
        "standardize": standardize,
        "covariance": covariance,
        "histogram": histogram,
        "bincount": bincount,
        "moving_average": moving_average,
        "cosine_similarity": cosine_similarity,
        "pairwise_squared_distances": pairwise_squared_distances,
    },
    "random": {
        "random_bits": random_bits,
        "uniform": uniform,
        "normal": normal,
        "gumbel": gumbel,
        "dropout": dropout,
    },
    "cast": {
        "f32_to_i32": f32_to_i32,
        "f32_to_u32": f32_to_u32,
        "i32_to_f32": to_f32,
        "u32_to_f32": to_f32,
        "i32_to_u32": i32_to_u32,
        "u32_to_i32": u32_to_i32,
    },
}
"""The oracle of each kernel, by module and name."""
