"""How the workgroups of a tiled product share the terms: sizes that the host computes.

`stream.py` describes the shares, and writes the shaders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from kerngen.ir.nodes import Index
from kerngen.plan import size as host
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.phases import Phases
from kerngen.schedule.gemm.tiling import MULTIPROCESSORS, Tiling
from kerngen.schedule.sizes import domain_size
from kerngen.schedule.task import Task

LEAST_WORK: Final = 2**16
"""The least work of a share, in products of two numbers: two turns in tiles of 32 x 32 x 32.

Which shares are worth the second dispatch, `share` decides.  A greater least share left products
unshared that gain by it.  Of 130 products on an H200, with sides of 16 to 1,500, in us; "-" was not
measured:

| product | 2^19 | 2^18 | 2^17 | 2^16 |
| --- | --- | --- | --- | --- |
| 80 x 752 by 752 x 82, `tn` | 16.3 | 13.6 | 8.3 | - |
| 64 x 872 by 872 x 424, `nt` | 14.3 | 11.3 | 8.5 | - |
| 396 x 688 by 688 x 68, `nn` | 13.4 | 11.1 | 8.9 | - |
| 59 x 374 by 374 x 537, `tn` | - | - | 11.3 | 7.9 |
| 168 x 353 by 353 x 248, `nt` | - | - | 10.5 | 8.4 |
| 112 x 4168 by 4168 x 40, `tn` | - | - | 9.3 | 9.8 |
| 368 x 640 by 640 x 621, `nn` | 19.3 | 20.4 | 20.5 | 20.5 |
"""

LEAST_ROWS: Final = 32
"""A tile of fewer rows works as long as one of 32, as it waits for what it loads of the columns.

On an H200, in us, where the rows of a tile count as 32, and as what they are:

| product | tile | 32 | own |
| --- | --- | --- | --- |
| gradient of 2 x 3 x 32 x 32 by 64 kernels of 3 x 3 | 8 x 128 x 8 | 16 | 39 |
| 1 x 64 x 80 x 80 by 3 kernels of 3 x 3 | 8 x 128 x 8 | 17 | 42 |
| 16 x 1024 by 1024 x 1024, `nt` | 16 x 128 x 16 | 14 | 21 |
| 16 x 2048 by 2048 x 2048, `nt` | 16 x 128 x 16 | 16 | 23 |
"""

LEAST_WAVE: Final = (6, 4)
"""A tile takes at least 6/10 of the time that it takes on a full device, however few others run;
in slices, which have more invocations for a tile, 4/10.

Few hide less of the time that reading memory takes.  Of 39 products on an H200, where no
multiprocessor had two tiles, and four would have filled it, a turn took 0.60 to 0.67 of its time on
a full device in tiles of 32 x 32, and 0.32 to 0.37 in slices; in slices of 64 x 64 0.30 to 0.35.
"""

FAR_APART: Final = 32
"""An even share takes 1/32 of its turns more: its workgroups read at places far apart.

Those with whole tiles read the same terms at the same time, which a cache then has.  On an H200,
4096 x 4096 x 4096 of `nt` in tiles of 128 x 64 takes 3.19 ms whole and 3.32 in even shares, with
odd sides 3.57 and 3.61, though a device has 3 % fewer turns then.
"""

JOIN_COST: Final = (2, 3)
"""What the second dispatch and its slots take, in turns of large tiles and of others.

It is about the same time, but turns of large tiles are longer.  In the median of 250 products on an
H200 it is 2 turns of 128 x 64, and 3 of 64 x 64 or 32 x 32.
"""

LARGE_ABOVE: Final = 2**16
"""Tiles are large whose turns have more products of two numbers than 64 x 64 x 16 has."""

SLOTS_OF_TURN: Final = 32
"""How many slots of a tile the second dispatch adds in the time of a turn.

On an H200 a slot takes 0.04 us, and a turn 1.3 to 3.2.  Without that, 128 x 4096 x 128 of `nt` has
four tiles of 64 x 64 with 128 slots each, and takes 20 us; in tiles of 32 x 32 it takes 12.
"""


@final
@dataclass(frozen=True, slots=True)
class TermShares:
    """How the workgroups share the loop turns of all tiles.

    `m`, `n` and `k` are the sizes of a tile, `most` is the number of workgroups that a device is
    taken to run at once, and `slices` the number of invocations that share an element's terms.
    Each of the `phases` of the columns has tiles of its own.
    """

    task: Task
    m: host.Size
    n: host.Size
    k: host.Size
    most: host.Size
    slices: host.Size
    phases: Phases | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, task: Task, tiling: Tiling, phases: Phases | None = None) -> TermShares:
        """Return the shares for a stage and a tiling."""
        return cls(task, *map(host.Literal, tile_numbers(tiling)), phases=phases)

    @property
    def tiled_axes(self) -> tuple[host.Size, host.Size]:
        """How many tiles lie along the rows of the result, and along its columns."""
        rows, columns = map(domain_size, sides_of(self.task))
        if self.phases:
            columns = self.phases.columns_of_each
        return host.ceil_div(rows, self.m), host.ceil_div(columns, self.n)

    @property
    def tiles(self) -> host.Size:
        """The number of tiles of the result."""
        rows, columns = self.tiled_axes
        phases = self.phases.count if self.phases else host.Literal(1)
        return domain_size(batch_of(self.task)) * phases * rows * columns

    @property
    def turns(self) -> host.Size:
        """The turns of a tile: at least one, so that sums of no terms are stored, too."""
        return host.maximum(
            host.ceil_div(domain_size(product_of(self.task)[0].over), self.k), 1
        )

    @property
    def all_turns(self) -> host.Size:
        """The turns of all tiles."""
        return self.tiles * self.turns

    @property
    def least(self) -> host.Size:
        """The least even share in turns: for `LEAST_WORK` products, but at most a tile's.

        A turn has m * n * k of them, with `LEAST_ROWS` in place of a smaller m.
        """
        rows = host.maximum(self.m, LEAST_ROWS)
        least = host.ceil_div(LEAST_WORK, rows * self.n * self.k)
        return host.minimum(least, self.turns)

    @property
    def even_share(self) -> host.Size:
        """The turns of a workgroup if the turns of all tiles are shared evenly."""
        return host.maximum(host.ceil_div(self.all_turns, self.most), self.least)

    @property
    def shared_turns(self) -> host.Size:
        """How many turns of whole tiles an even share takes as long as."""
        return self.even_share + host.ceil_div(self.even_share, FAR_APART)

    @property
    def at_once(self) -> host.Size:
        """How many workgroups run at once on a multiprocessor, of `most` on all."""
        nearest = host.quotient(self.most + MULTIPROCESSORS // 2, MULTIPROCESSORS)
        return host.maximum(nearest, 1)

    @property
    def own_tiles(self) -> host.Size:
        """The most tiles of a multiprocessor, where each tile has a workgroup."""
        return host.ceil_div(self.tiles, host.ceil_div(self.most, self.at_once))

    @property
    def waves(self) -> host.Size:
        """How long a workgroup for each tile takes, in turns of a full device.

        Where four workgroups run at once, a multiprocessor with five tiles takes 5/4 of the time
        of one with four; one with two takes not half of it, but `LEAST_WAVE`.  On an H200, 2944 x
        1856 x 416 in tiles of 64 x 64, up to 11 on each of 132, takes 114 us (72 turns), and
        124 us if workgroups share the terms (72).
        """
        whole, sliced = LEAST_WAVE
        part = host.select(host.compare(">", self.slices, 1), sliced, whole)
        least = host.ceil_div(self.turns * part, 10)
        own = host.ceil_div(self.turns * self.own_tiles, self.at_once)
        return host.maximum(least, own)

    @property
    def shared_time(self) -> host.Size:
        """How long even shares take, in turns, with the second dispatch."""
        large = host.compare(">", self.m * self.n * self.k, LARGE_ABOVE)
        # In this order, no product can be too large for a u32 of the shader.
        slots = host.quotient(self.turns, self.even_share)
        slots = host.quotient(slots, SLOTS_OF_TURN)
        return host.add(self.shared_turns, host.select(large, *JOIN_COST), slots)

    @property
    def share(self) -> host.Size:
        """The turns of a workgroup: an even share if that is faster, or all turns of a tile.

        The last workgroup has what is left.  In tiles of 128 x 64 x 16, of which 396 run at once,
        1024 x 1024 x 1024 is shared: its 128 tiles take 39 turns, and shares 21 + 1 + 2.  On an
        H200 it takes 73 us, and 61 shared.
        """
        faster = host.compare(">", self.waves, self.shared_time)
        return host.select(faster, self.even_share, self.turns)

    @property
    def duration(self) -> host.Size:
        """About how many turns pass until all tiles are done."""
        return host.minimum(self.waves, self.shared_time)

    @property
    def trips(self) -> host.Size:
        """An upper bound of the trips of a workgroup's loops: over turns, and over tiles."""
        return host.add(self.share, host.ceil_div(self.share, self.turns), 1)

    @property
    def groups(self) -> host.Size:
        """The number of workgroups."""
        return host.ceil_div(self.all_turns, self.share)

    @property
    def joined(self) -> host.Size:
        """The number of tiles that the second dispatch tests for whether they were split.

        If shares are shorter than tiles, any tile may be split, and it tests all of them.
        Else at most one tile is split at the end of each share.
        """
        return host.select(
            host.compare("<", self.share, self.turns), self.tiles, self.groups
        )

    def if_joined(self, size: host.Size) -> host.Size:
        """Return `size` if some tiles are split among workgroups, else 0.

        No tile is split if a share is a whole number of tiles.
        """
        return host.select(
            host.compare("!=", host.remainder(self.share, self.turns), 0), size, 0
        )


def batch_of(task: Task) -> tuple[Index, ...]:
    """Return the indices of the domain that are neither of rows nor of columns of tiles."""
    rows, columns = sides_of(task)
    return tuple(index for index in task.domain if index not in rows + columns)


def tile_numbers(tiling: Tiling) -> tuple[int, int, int, int, int]:
    """Return the numbers of a tiling that the shares depend on."""
    return tiling.m, tiling.n, tiling.k, tiling.stream, tiling.slices
