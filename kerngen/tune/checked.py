"""The sizes at which candidates' results are checked against NumPy.

They are smaller than the sizes that are tuned for, and leave the same remainder in the last
tile.  For a schedule that is tuned at m = n = k = 4096:

    m, n, k = 256, 256, 256
    m, n, k = 129, 257, 257     one more each, and 255, 255, 255: the variants for edges
    m, n, k = 4096, 64, 64      one axis at its full length: the parts that it is split into
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Final

from kerngen.bench.arguments import Sizes

STEPS: Final = 2**24
"""The most steps of the reference, as the product of all lengths."""
EXACT_BELOW: Final = 16
"""A schedule for a shorter length is for that length alone: no neighbours are checked."""
_MODULI: Final = (256, 64, 16)
"""Lengths are halved such that they keep their remainder by 256, if need be by fewer."""
_LEAST: Final = 5
"""The length of an axis at last, where nothing else makes sizes small enough."""


def words(sizes: Sizes) -> str:
    """Return sizes as text: `m = 1, n = 64`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def all_checked(dims: Sequence[str], sizes: Sizes) -> list[Sizes]:
    """Return all sizes at which to check a schedule that is tuned at `sizes`."""
    found: list[Sizes] = []
    for small in _all(dims, sizes):
        if small not in found:
            found.append(small)
    return found


def _all(dims: Sequence[str], sizes: Sizes) -> Iterator[Sizes]:
    more, less = (_moved(dims, sizes, by) for by in (1, -1))
    small = checked_sizes(dims, sizes)
    yield from (small, checked_sizes(dims, more), checked_sizes(dims, less))
    for dim in dims:
        if small[dim] < sizes[dim]:
            yield checked_sizes(dims, sizes, kept=dim)
            yield checked_sizes(dims, more, kept=dim)


def _moved(dims: Iterable[str], sizes: Sizes, by: int) -> Sizes:
    moved = {dim: sizes[dim] + by for dim in dims if sizes[dim] >= EXACT_BELOW}
    return {**sizes, **moved}


def checked_sizes(dims: Sequence[str], sizes: Sizes, kept: str = "") -> Sizes:
    """Return smaller sizes that NumPy can compute, with one axis `kept` long.

    The longest axis is halved repeatedly, and keeps its remainder by 256; if that is not
    enough, by 64, then by 16; at last single axes become 5.
    """
    small = dict(sizes)
    for axes in ([dim for dim in dims if dim != kept], dims):
        for modulus in _MODULI:
            while _is_large(dims, small):
                halves = {dim: _halved(small[dim], modulus) for dim in axes}
                shorter = [dim for dim in axes if halves[dim] < small[dim]]
                if not shorter:
                    break
                longest = max(shorter, key=small.__getitem__)
                small[longest] = halves[longest]
    while _is_large(dims, small):
        longest = max(dims, key=small.__getitem__)
        if small[longest] <= _LEAST:
            break
        small[longest] = _LEAST
    return small


def shortened(dims: Iterable[str], sizes: Sizes) -> Sizes | None:
    """Return sizes with the longest axis halved, or None if none can be."""
    longest = max(dims, key=sizes.__getitem__)
    half = _halved(sizes[longest], _MODULI[0])
    return {**sizes, longest: half} if half < sizes[longest] else None


def _is_large(dims: Iterable[str], sizes: Sizes) -> bool:
    return prod(sizes[dim] for dim in dims) > STEPS


def _halved(length: int, modulus: int) -> int:
    """Return about half of a length, with its remainder; or the length if that is tiny."""
    half = length // 2 // modulus * modulus + length % modulus
    return half if half >= modulus // 2 else length
