"""Positions in domains and tensors: values of indices, and elements at subscripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from kerngen.ir.nodes import Expr, Extent, Index, Reduce
from kerngen.ir.staging.keyed import Prefix, prefix_of
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children
from kerngen.verify.meaning.number import Array, BoundedArray


class Readable(Protocol):
    """Elements that can be read: stored ones, or computed on demand."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of all axes."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        ...

    def at(self, places: Sequence[Array]) -> BoundedArray:
        """Return the elements at positions, which broadcast against each other."""
        ...


def grid(
    indices: tuple[Index, ...], extents: tuple[int, ...], rank: int
) -> dict[str, Array]:
    """Return arrays of index values, for the indices that are a domain's first axes.

    Of `i < 2, j < 3` in a domain of rank 3, `i` has shape (2, 1, 1) and `j` (1, 3, 1).
    """
    return {
        index.name: np.arange(extent, dtype=np.int64).reshape(
            *(1,) * axis, extent, *(1,) * (rank - axis - 1)
        )
        for axis, (index, extent) in enumerate(zip(indices, extents, strict=True))
    }


def taken(contents: Readable, places: list[BoundedArray]) -> BoundedArray:
    """Return the elements at positions, clamped to their axes.

    The host has checked all other subscripts. Nothing is known of an element of an empty
    tensor; it is read where the domain is empty, too.
    """
    shape = contents.shape
    around = np.broadcast_shapes(*(p.value.shape for p in places))
    if 0 in shape[: len(places)] or 0 in around:
        whole = (*around, *shape[len(places) :])
        never = np.full(whole, np.inf)
        return BoundedArray(np.zeros(whole, contents.dtype), never, never)
    key: list[Array] = []
    for place, length in zip(places, shape, strict=False):
        key.append(np.clip(place.value, 0, length - 1))
    found = contents.at(key)
    doubts = [p.unsure for p in places if p.error.any()]
    if not doubts:
        return found
    doubt = np.asarray(sum(doubt.astype(np.int64) for doubt in doubts) > 0)
    inner = found.value.ndim - len(around)
    return doubted(found, doubt.reshape((*doubt.shape, *(1,) * inner)))


def doubted(found: BoundedArray, doubt: Array) -> BoundedArray:
    """Return numbers, those marked in `doubt` as unknown."""
    if not doubt.any():
        return found
    error = np.where(doubt, np.inf, found.error)
    return BoundedArray(found.value, error, np.where(doubt, np.inf, found.size))


def chains(expr: Expr) -> tuple[tuple[Extent, ...], ...]:
    """Return the extents of nested reductions, from the outside in.

    `sum[p < k] (a[p] * max[q < l] b[q])` has one chain, `(k, l)`. A prefix reduction is
    left out, as each result is computed from the one before.
    """
    inner = tuple(chain for child in children(expr) for chain in chains(child))
    if isinstance(expr, Reduce) and scanned(expr) is None:
        own = tuple(index.extent for index in expr.indices)
        inner = tuple((*own, *chain) for chain in inner or ((),))
    return tuple(dict.fromkeys(inner))


def scanned(expr: Reduce) -> Prefix | None:
    """Return the prefix or suffix reduction that a scalar reduction is, or None."""
    return prefix_of(expr) if isinstance(expr.type, Scalar) else None
