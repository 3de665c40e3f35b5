"""The tile sizes of strategy `flash`, and the conditions that they must satisfy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Final, final

from kerngen.schedule.gemm.tiling import VECTOR, Tiling, tiling_of
from kerngen.schedule.task import Options


@final
@dataclass(frozen=True, slots=True)
class FlashTiling:
    """The tiling of attention: what a workgroup, and each of its invocations, computes.

    - `queries x columns`: the results of a workgroup; it goes over the keys, `keys` at a
      time
    - `micro_queries x micro_keys`: the scores that an invocation has in registers
    - `terms`: how many terms of a score are in workgroup memory at once
    - `weights`: how many keys' weights and values are in workgroup memory at once
    - `rows`: for few queries, how many rows a workgroup has, all with the same keys, which are
      then cut into parts; 0 for many queries
    - `chunk`: for gradients, how many queries of a head a chunk of stored gradients of
      scores has at most; with 0, none are stored
    """

    queries: int = 64
    keys: int = 64
    columns: int = 64
    micro_queries: int = 8
    micro_keys: int = 8
    terms: int = 16
    weights: int = 16
    rows: int = 0
    chunk: int = 0

    @property
    def scores(self) -> Tiling:
        """The tiles of the product of queries and keys."""
        return _tiling(
            (self.queries, self.keys, self.terms),
            (self.micro_queries, self.micro_keys),
        )

    @property
    def values(self) -> Tiling:
        """The tiles of the product of weights and values, by the same invocations as `scores`.

        An invocation has the rows of its scores, and a part of the columns of values.
        """
        across = max(self.keys // self.micro_keys, 1)
        return _tiling(
            (self.queries, self.columns, self.weights),
            (self.micro_queries, self.columns // across),
        )

    @property
    def stored(self) -> FlashTiling:
        """The tiling of dq, stored gradients times keys: `keys` is for the result's columns."""
        micro = 2 * VECTOR if self.columns >= STORED_ROWS else VECTOR
        return FlashTiling(
            queries=gcd(self.keys, STORED_ROWS),
            keys=self.columns,
            columns=self.columns,
            micro_queries=micro,
            micro_keys=micro,
            terms=self.weights,
        )

    @property
    def turns(self) -> int:
        """In how many turns the weights of a block of keys go through workgroup memory.

        A block has four keys of each invocation along the keys: with 8 such invocations, and 16
        weights at a time, these are 2 turns.
        """
        return self.scores.columns * VECTOR // self.weights

    def faults(self) -> Iterator[str]:
        """Yield the first fault of the tile sizes, if any, in the user's words."""
        if self.rows:
            if self.columns not in ROW_COLUMNS:
                listed = ", ".join(map(str, ROW_COLUMNS))
                yield f"with rows, a tile has one of {listed} columns"
            return
        sizes = (self.micro_queries, self.micro_keys)
        if any(size % VECTOR or not size for size in sizes):
            yield "micro's sizes must be positive multiples of 4"
            return
        faults = (*self.scores.faults(), *self.values.faults())
        if faults:
            yield faults[0]
            return
        # Powers of two, as places in the tile of weights are XORed.  That tile has a line for
        # each of `weights` keys: every invocation along the keys needs a line when they join
        # numbers (`KeyPass.shared`), and a block has four keys of each.
        rows, columns = self.scores.rows, self.scores.columns
        if rows & (rows - 1) or columns & (columns - 1):
            yield f"{columns} x {rows} invocations are no powers of two"
        elif columns > self.weights or self.weights > columns * VECTOR:
            yield (
                f"{self.weights} keys at a time do not suit {columns} invocations "
                f"along the keys"
            )
        elif self.chunk:
            yield from self._chunk_faults()

    def _chunk_faults(self) -> Iterator[str]:
        if self.chunk % self.keys:
            yield f"a chunk's queries must be a multiple of tile's keys, {self.keys}"
        else:
            yield from self.stored.scores.faults()


STORED_ROWS: Final = 64
"""The rows of the tiles in which stored gradients of scores are read."""

ROW_COLUMNS: Final = (32, 64, 128)
"""The numbers of columns that a tile for few queries may have: 8 to 32 lanes have four each."""


def _tiling(tile: tuple[int, int, int], micro: tuple[int, int]) -> Tiling:
    return tiling_of({"tile": tile, "micro": micro})


FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "tile": ("queries", "keys", "columns"),
    "micro": ("micro_queries", "micro_keys"),
    "depth": ("terms", "weights"),
    "rows": ("rows",),
    "chunk": ("chunk",),
}
"""The fields that each option of `flash` sets, in the order of its values."""


def flash_tiling(options: Options) -> FlashTiling:
    """Return the tiling that a schedule's options ask for."""
    given = {
        field: value
        for option, values in options.items()
        for field, value in zip(FIELDS[option], values, strict=True)
    }
    return FlashTiling(**given)
