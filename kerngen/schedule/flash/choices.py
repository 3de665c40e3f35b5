"""Default schedules of `flash`: tile sizes by the lengths, and by how many tiles there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kerngen.ir.staging.stages import Stage
from kerngen.plan.size import (
    Guard,
    Symbol,
    add,
    all_of,
    any_of,
    ceil_div,
    compare,
    divides,
    negate,
)
from kerngen.schedule.choice import ScheduleChoice
from kerngen.schedule.flash.attention import Attention
from kerngen.schedule.flash.attention_sums import AttentionSums, TileSum
from kerngen.schedule.flash.chunks import (
    FOR_EACH,
    LEAST_STORED,
    MOST_STORED,
    Chunks,
    chunks_of,
)
from kerngen.schedule.flash.key_bounds import KeyBounds, mask_of
from kerngen.schedule.flash.strategy import flash_of, suits_flash
from kerngen.schedule.flash.tiling import flash_tiling
from kerngen.schedule.gemm.tiling import MULTIPROCESSORS
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Options, Task

NARROW: Final = 64
WIDE: Final = 256
"""The most columns of values for which the tiles of 64 and of 128 columns are chosen.

With more columns than a tile has, each tile of columns computes the scores again.
"""

FLASH_SUM_TILES: Final[tuple[tuple[int, Options], ...]] = (
    (64, {"tile": (64, 128, 64)}),
    (64, {"micro": (8, 4)}),
    (256, {"tile": (32, 128, 128), "micro": (4, 8)}),
    (256, {"tile": (64, 64, 128), "micro": (8, 4), "depth": (8, 16)}),
)
"""The tiles for gradients, whose invocations have two tiles of products, and one of sums.

With tiles of 64 x 64 x 64 and `micro(8, 8)` these are 192 registers, and NVIDIA's compiler,
which has 255 for all, would spill some to memory; with 128 keys there are 160.  On an H200,
the gradients of 4 x 16 x 2048 x 64 take 7.7 ms with 128 keys and 8.3 with `micro(8, 4)`;
under a causal mask 5.4 and 4.7, as tiles with fewer keys leave more out.  Those of 2 x 16 x
2048 x 128 take 7.9 ms with 32 rows, 9.7 with `tile(64, 64, 128) micro(8, 4)`.
"""

FLASH_CHUNK_TILES: Final[tuple[tuple[int, Options], ...]] = (
    (64, {"micro": (8, 4), "chunk": (1024,)}),
    (256, {"tile": (32, 128, 128), "micro": (4, 8), "chunk": (1024,)}),
)
"""The tiles for gradients where one pass stores the gradients of scores for another."""

IN_CHUNKS: Final = (
    "gradients of attention by tiles of scores, whose own gradients are stored in chunks"
)
MOST_IN_CHUNKS: Final = 2**34
LONGEST_IN_CHUNKS: Final = 2**18
"""The most scores, and the most keys, for which gradients of scores are stored in chunks.

Of more scores there would be thousands of chunks, each of three dispatches; of more keys, a
chunk of the fewest queries would take more than its bound.
"""

ELEMENT: Final = 4
"""The bytes of an f32."""

_TILE: Final = 127
"""The most by which a length in a chunk exceeds that of its axis: `STEP` - 1."""

_BYTES: Final = FOR_EACH * ELEMENT
"""How many bytes a chunk may have for each element of q, k, v and dy."""

FLASH_ROWS: Final[Options] = {"tile": (64, 64, 128), "rows": (4,)}
FLASH_NARROW_ROWS: Final[Options] = {"tile": (64, 64, 64), "rows": (4,)}
"""The tiles for few queries, of 128 and of up to 64 columns.

32 lanes have four of 128 columns each, so that 4 groups of lanes share the keys; of 64
columns, 8 groups do.
"""

FEW_QUERIES: Final = 16
"""The most queries for which `rows(4)` is chosen.

So few leave most of a tile of 64 empty, and as a rule most of a device idle.
"""

MANY_SCORES: Final = 2**25
"""The most scores that are stored: as f32 they take the 128 MiB that WebGPU promises of a
binding.  With more, `flash` is chosen for any number of columns, with the last tiles of a
table."""


def attention_choices(task: Task) -> Iterator[ScheduleChoice]:
    """Yield the default schedules of attention, or of its gradients; none for other stages.

    Each is a tiling with the guard that the number of columns suits it.
    """
    found = flash_of(task)
    if isinstance(found, str):
        return
    if isinstance(found, AttentionSums):
        yield from _attention_sums(task, found)
        return
    together, columns = len(found.stages), extent_size(found.column.extent)
    # `suits_flash` returns the reason against few queries, "" if there is none.
    if not suits_flash(task, FLASH_ROWS):
        few = compare("<=", extent_size(found.row.extent), FEW_QUERIES)
        narrow = all_of(few, compare("<=", columns, 64))
        reason = "few queries, and many workgroups that share the keys"
        for guard, options in ((narrow, FLASH_NARROW_ROWS), (few, FLASH_ROWS)):
            yield ScheduleChoice("flash", reason, guard, options, together)
    reason = "attention in one pass over the keys, which stores no scores"
    scores = domain_size((*found.batch, found.row, found.key))
    *tiles, (last, options) = flash_tiles(found)
    for guard, each in (
        *tiles,
        (any_of(last, compare(">", scores, MANY_SCORES)), options),
    ):
        yield ScheduleChoice("flash", reason, guard, each, together)


def flash_tiles(found: Attention) -> Iterator[tuple[Guard, Options]]:
    """Yield the tiles of `flash` for attention, the first one that suits being chosen.

    Those of 64 columns take 16, 16, 20 and 14 KiB of workgroup memory, those of 128 take 20, 20,
    48, 32 and 16; adapters that have less take a later one.  A tile of keys costs barriers, and
    its weights go through memory: 128 keys at a time and 32 sums in an invocation are best, at
    4 x 16 x 2048 x 64 as fast as PyTorch on an H200.  The others, on an H200:

    - Where there are fewer workgroups than multiprocessors, tiles of 32 rows: 2 x 8 x 256 x 64
      takes 16 us with them, and 26 with 64 rows.  A smaller device takes 1.3 times as long where
      tiles are smaller for no reason.  Under a mask rows have unlike numbers of keys,
      and what the last ones take is seen with twice as many workgroups: 1 x 12 x 1024 x 64
      takes 79 us and not 107, 1 x 16 x 1024 x 128 159 and not 217.
    - For up to 64 keys, tiles of 64: 32 x 8 x 50 x 64 takes 12.9 us and not 15.6.
    - Tiles of 64 rows, if 128 had a fifth more rows: 16 x 16 x 257 x 80 takes 315 us and not 378.
    - With 128 columns, 32 terms at a time are 7 % faster than 16, as they cost fewer barriers.
      A turn of loads has whole vectors only if its terms divide theirs: 2 x 16 x 1000 x 80
      takes 387 us with 16 terms, 425 with 32.
    """
    rows, keys = extent_size(found.row.extent), extent_size(found.key.extent)
    columns, terms = extent_size(found.column.extent), domain_size(found.product.over)
    is_masked = bool(KeyBounds.of(found.score, found.row, found.key).bounds)

    def at_most(groups: int, tile: int) -> Guard:
        """Return the condition that there are at most `groups` tiles of so many rows."""
        return compare("<=", domain_size(found.batch) * ceil_div(rows, tile), groups)

    narrow, wide = (compare("<=", columns, most) for most in (NARROW, WIDE))
    few = at_most(MULTIPROCESSORS, 64)
    if is_masked:
        twice = at_most(2 * MULTIPROCESSORS, 64)
        few = any_of(few, all_of(twice, compare(">", keys, 128)))
    yield all_of(narrow, few), {"tile": (32, 128, 64), "micro": (4, 8)}
    short = compare("<=", keys, 64)
    yield all_of(narrow, short), {"tile": (64, 64, 64), "micro": (8, 4)}
    # 8 terms at a time are 10 % slower, but they divide 40 terms, which 16 don't.
    suits_16 = any_of(divides(16, terms), negate(divides(8, terms)))
    yield all_of(narrow, suits_16), {"tile": (64, 128, 64)}
    yield narrow, {"tile": (64, 128, 64), "depth": (8, 16)}
    if is_masked:
        few = at_most(MULTIPROCESSORS, 128)
        yield all_of(wide, few), {"tile": (32, 128, 128), "micro": (4, 8)}
    # Whole tiles of 128 rows have at least 6/5 of the rows of whole tiles of 64.
    rough = compare(">=", ceil_div(rows, 128) * 128 * 5, ceil_div(rows, 64) * 64 * 6)
    yield all_of(wide, rough), {"tile": (64, 64, 128), "micro": (8, 4)}
    suits_32 = divides(32, terms)
    yield all_of(wide, suits_32), {"tile": (128, 128, 128), "depth": (32, 16)}
    yield wide, {"tile": (128, 128, 128)}
    yield wide, {"tile": (64, 64, 128), "micro": (8, 4), "depth": (8, 16)}


def _attention_sums(task: Task, found: AttentionSums) -> Iterator[ScheduleChoice]:
    """Yield the gradients of attention, in tiles that suit the numbers of columns."""
    reason = "gradients of attention by tiles of scores, which are not stored"
    together = len(found.stages)
    sums = [each for pass_ in found.passes for each in pass_.sums]
    for most, options in FLASH_CHUNK_TILES:
        chunks = chunks_of(task, found, flash_tiling(options))
        # Where a pass over the keys finds the numbers of rows (`Statistics`), chunks are not
        # chosen: that pass computes the scores once more in any case.
        if isinstance(chunks, Chunks) and isinstance(found.statistics, Stage):
            fits = all_of(_narrow(sums, most), _fits_chunks(chunks))
            yield ScheduleChoice("flash", IN_CHUNKS, fits, options, together)
    # Under a mask, tiles with fewer keys leave more out: the first tiles, of 128, are left.
    masked = any(mask_of(each.weight) for each in sums)
    tiles, outer = found.passes[0].tiles, found.passes[0].outer
    scores = domain_size((*tiles.batch, *outer, tiles.row, tiles.key))
    for most, options in FLASH_SUM_TILES[1:] if masked else FLASH_SUM_TILES:
        guard = _narrow(sums, most)
        if options == FLASH_SUM_TILES[-1][1]:
            guard = any_of(guard, compare(">", scores, MANY_SCORES))
        yield ScheduleChoice("flash", reason, guard, options, together)


def _narrow(sums: Sequence[TileSum], most: int) -> Guard:
    return all_of(*(compare("<=", extent_size(x.column.extent), most) for x in sums))


def _fits_chunks(chunks: Chunks) -> Guard:
    """Return the guard that chunks are not too many, and that an adapter can bind one.

    An adapter binds a chunk if that is within `LEAST_STORED`, if it binds `MOST_STORED`, or if
    it binds the bytes that the tensors of the call allow.  Chunks are as large as these allow:
    smaller ones would have too few workgroups for a large device.
    """
    tiles = chunks.taker.tiles
    batch = domain_size(tiles.batch)
    row, key = extent_size(tiles.row.extent), extent_size(tiles.key.extent)
    width = add(*(extent_size(x.column.extent) for x in chunks.maker.sums))
    bound = Symbol("adapter.tensor_bytes")
    within = compare("<=", (row + key) * width * _BYTES * batch, bound)
    # No less than the lengths of the tiles along both axes.
    tiled = (row + _TILE) * (key + _TILE)
    small = compare("<=", tiled * batch, LEAST_STORED)
    large = compare(">=", bound, MOST_STORED * ELEMENT)
    few = compare("<=", batch * row * key, MOST_IN_CHUNKS)
    short = compare("<=", key, LONGEST_IN_CHUNKS)
    return all_of(any_of(small, large, within), few, short)
