"""Stream-K: the workgroups of a tiled product share the terms of all tiles evenly.

A turn is one iteration of the loop over the terms: it adds `k` terms to every element of a
tile.  A workgroup per tile leaves a device idle where the tiles do not fill it, or fill it
once and a bit.  Here the turns of all tiles lie in a line, and each workgroup takes an equal
share of it:

    tile          0         1         2         3         4
              ├─────────┼─────────┼─────────┼─────────┼─────────┤
    workgroup ├──────0──────┤├──────1──────┤├──────2──────┤├──3...

A workgroup that has all turns of a tile finishes it at once: it does the stage's steps and
stores the results.  Its partial sums of any other tile go to a slot, an area of the scratch
buffer `parts`, and a second dispatch adds the slots of each tile, in order.  Where that costs
more than sharing saves (`TermShares.share`), each workgroup has a whole tile instead.

After Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense
Matrix-Matrix Multiplication on the GPU", 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final

from kerngen.ir.nodes import Index, Reduce
from kerngen.plan import size as host
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.phases import Phases
from kerngen.schedule.gemm.tiling import Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import (
    reduction_label,
    reduction_of,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.steps import vector_tensors, write_steps
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size, loop_trips, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

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

FIFTHS: Final = (3, 4)
"""How many fifths of a wave's time half of its workgroups take, of large and of small tiles."""

FAR_APART: Final = 32
"""An even share takes 1/32 of its turns more: its workgroups read at places far apart.

Those with whole tiles read the same terms at the same time, which a cache then has.  On an H200,
4096 x 4096 x 4096 of `nt` in tiles of 128 x 64 takes 3.19 ms whole and 3.32 in even shares, with
odd sides 3.57 and 3.61, though a device has 3 % fewer turns then.
"""

JOIN_COST: Final = 6
"""What the second dispatch and its slots take, in turns."""

BY_ARITHMETIC: Final = 64 * 64
"""Tiles of so many results or more wait for arithmetic, smaller ones for workgroup memory: the
tiles of products without a schedule have 8 x 8 sums per invocation then, or 8 x 16, and 4 x 4."""

JOIN_COLUMNS: Final = 64
JOIN_ROWS: Final = 4
"""The shape of a workgroup of the second dispatch: 64 lanes side by side, in 4 rows.

Lanes side by side have four neighbouring elements of a tile each; the 4 rows have the same
elements, and share their slots.
"""

PIECE: Final = JOIN_COLUMNS * LANES
"""How many elements of a tile a workgroup of the second dispatch adds up: 256."""

NAMES: Final = ("TILE_M", "TILE_N", "TILE_K", "STREAM")
"""The overrides of the second dispatch: m, n and k of a tile, and the most workgroups."""


@final
@dataclass(frozen=True, slots=True)
class TermShares:
    """How the workgroups share the loop turns of all tiles.

    `m`, `n` and `k` are the sizes of a tile, and `most` is the number of workgroups that a
    device is taken to run at once.  Each of the `phases` of the columns has tiles of its own.
    """

    task: Task
    m: host.Size
    n: host.Size
    k: host.Size
    most: host.Size
    phases: Phases | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, task: Task, tiling: Tiling, phases: Phases | None = None) -> TermShares:
        """Return the shares for a stage and a tiling."""
        return cls(task, *map(host.Literal, _numbers(tiling)), phases=phases)

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
    def waves(self) -> host.Size:
        """How long a workgroup for each tile takes, in turns of all workgroups at once.

        Half of the workgroups or fewer take 3/5 of that time, as each has more of its
        multiprocessor; of small tiles they take 4/5 (`BY_ARITHMETIC`).  The last of several
        waves takes as long as others: its workgroups begin where some have ended, two on a
        multiprocessor and none on another.
        """
        fifths = host.select(
            host.compare(">=", self.m * self.n, BY_ARITHMETIC), *FIFTHS
        )
        few = host.compare("<=", self.tiles * 2, self.most)
        whole = self.turns * host.ceil_div(self.tiles, self.most)
        return host.select(few, host.ceil_div(self.turns * fifths, 5), whole)

    @property
    def shared_time(self) -> host.Size:
        """How long even shares take, in turns, with the second dispatch."""
        return self.shared_turns + JOIN_COST

    @property
    def share(self) -> host.Size:
        """The turns of a workgroup: an even share if that is faster, or all turns of a tile.

        The last workgroup has what is left.  On an H200, of 148 products with sides of 32 to
        50,000 in the tiles chosen for them, that took 2 % more than the better of both ways,
        at worst 17 %.  In tiles of 64 x 64 x 16, of which 528 run at once, 1024 x 1024 x 1024 is
        not shared: its 256 tiles take 39 turns, and 33 + 6 are no fewer.  It takes 61 us, and 64
        shared.  1280 x 1280 x 1280 is shared, as 80 > 63 + 2 + 6.
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


def _numbers(tiling: Tiling) -> tuple[int, int, int, int]:
    """Return the tile sizes that the shares depend on."""
    return tiling.m, tiling.n, tiling.k, tiling.stream


@final
@dataclass(frozen=True, slots=True)
class ProductTiles:
    """The WGSL variables for the numbers and places of a product's tiles.

    `sizes` has the variable of each size of `shares` that has one; statements that
    declare variables are appended to `body`.
    """

    shader: ShaderBuilder
    body: list[t.Stmt]
    shares: TermShares
    sizes: dict[host.Size, t.Expr]

    def __getitem__(self, size: host.Size) -> t.Expr:
        """Return a size as a WGSL expression: its variable, if it has one."""
        return to_wgsl(size, self.shader, self.sizes)

    def let(self, wanted: str, value: t.Expr) -> t.Ident:
        """Append a `let` of `value`, named like `wanted`; return its identifier."""
        return self.shader.let(self.body, wanted, value)

    def name(self, *sizes: tuple[str, host.Size]) -> None:
        """Append a variable for each pair of a wanted name and a size."""
        for wanted, size in sizes:
            self.sizes[size] = self.let(wanted, self[size])

    def name_axes(self) -> None:
        """Append variables for the numbers of tiles along rows and along columns."""
        rows, columns = self.shares.tiled_axes
        self.name(("tile_rows", rows), ("tile_columns", columns))

    def name_shares(self) -> None:
        """Append variables for the turns of a tile, of all tiles, and of a share.

        In tiles of 128 x 64 x 16 for up to 396 workgroups:

            let turns = max((u.k + 15u) >> 4u, 1u);
            let all_turns = tile_rows * tile_columns * turns;
            let least = min(4u, turns);
            let even_share = max((all_turns + 395u) / 396u, least);
            let waves = select(..., (turns * 3u + 4u) / 5u, tile_rows * tile_columns * 2u <= 396u);
            let share = select(turns, even_share, ...);
        """
        of = self.shares
        self.name_axes()
        self.name(("turns", of.turns), ("all_turns", of.all_turns))
        self.name(("least", of.least), ("even_share", of.even_share))
        self.name(("waves", of.waves))
        self.name(("share", of.share))

    def place(
        self, tile: t.Expr, backwards: tuple[bool, bool] = (False, False)
    ) -> tuple[dict[Index, t.Expr], t.Ident, t.Ident]:
        """Append and return batch indices, first row and first column of tile number `tile`.

        `backwards` is whether the rows of tiles, and the columns of them, are numbered from the
        last one on.
        """
        # Tiles are numbered along the columns first, then along the rows, then by batch.
        rows, columns = (self[axis] for axis in self.shares.tiled_axes)
        batch = batch_of(self.shares.task)
        at = unravel(self.shader, self.body, batch, tile // columns // rows)
        many = batch or self.shares.phases
        row = tile // columns % rows if many else tile // columns
        column = tile % columns
        if backwards[0]:
            row = t.Binary("-", t.Binary("-", rows, t.ONE), row)
        if backwards[1]:
            column = t.Binary("-", t.Binary("-", columns, t.ONE), column)
        return (
            at,
            self.let("tile_row", row * self[self.shares.m]),
            self.let("tile_column", column * self[self.shares.n]),
        )


def keep_total(
    shader: ShaderBuilder,
    tiling: Tiling,
    slot: t.Expr,
    at: tuple[t.Expr, t.Expr],
    total: t.Expr,
) -> t.Stmt:
    """Return the statement that stores four neighbouring totals in slot number `slot`.

    `at` is the row in the tile, and the number of the vector in that row.
    """
    kept = shader.scratch("parts", reduction_of(shader.task).type, written=True)
    row, number = at
    vector = row * (tiling.n // LANES) + number
    return kept.store(slot * (tiling.m * tiling.n // LANES) + vector, total)


def slot_of(group: t.Expr, *, begun: t.Expr) -> t.Expr:
    """Return the number of one of the two slots of a workgroup.

    Of the tiles of a share, only the first and the last can be incomplete: slot 1 of a
    workgroup is for a tile of whose turns it has the first ones (`begun`), slot 0 for a tile
    that an earlier workgroup has begun.
    """
    return group * 2 + t.call("u32", begun)


def joining_shader(
    task: Task, tiling: Tiling, *, wide: bool, spread: bool
) -> DispatchShader:
    """Return the second dispatch: it adds up the slots of each tile that was split.

    The numbers of the tiling are overrides, whose values the pipeline has: so all tilings
    share the shader.  `wide` is whether vectors of four results are stored, `spread` whether
    the four of a slot's vector lie apart in the tile (`Operand.gap`).
    """
    task = replace(task, label="gemm_stream")
    shader = task.once(
        (joining_shader, wide, spread),
        lambda: _joining_shader(task, wide=wide, spread=spread),
    )
    names = (name for name, _ in shader.constants)
    own, pieces = TermShares.of(task, tiling), tiling.m * tiling.n // PIECE
    turns = {reduction_of(task): host.ceil_div(own.groups, JOIN_ROWS)}
    return replace(
        shader,
        constants=tuple(zip(names, _numbers(tiling), strict=True)),
        groups=own.if_joined(own.joined * pieces),
        trips=loop_trips(task, turns),
    )


def _joining_shader(task: Task, *, wide: bool, spread: bool) -> DispatchShader:
    """Write the shader of the second dispatch, with overrides for the numbers of the tiling.

    A workgroup adds up `PIECE` elements of a tile.  `JOIN_ROWS` lanes share the slots of the
    same four elements, and join their totals through workgroup memory:

        for (var part = first + (lane >> 6u); part < last + 1u; part += 4u) {
            total += parts[...];
        }
        totals[lane] = total;
        workgroupBarrier();
        if (lane >= 64u) {
            return;
        }
        total += totals[lane + 64u];
        total += totals[lane + 128u];
        total += totals[lane + 192u];
    """
    reduce, (found, _) = reduction_of(task), product_of(task)
    names = {task.scratch_name("parts")}
    if wide:
        names |= vector_tensors(task.stage, task.values, found.column)
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    numbers: dict[host.Size, t.Expr] = {
        host.Symbol(f"tiling.{name}"): shader.override(name, 0) for name in NAMES
    }
    # Which tile, which of its elements, and in which slots they are.
    shares, body = TermShares(task, *numbers), list[t.Stmt]()
    tiles = ProductTiles(shader, body, shares, dict(numbers))
    m, n, *_ = numbers.values()
    pieces = tiles.let("pieces", m * n // PIECE)
    place = _find_slots(tiles, pieces)
    lane = shader.lane % JOIN_COLUMNS
    piece = place.number % pieces * JOIN_COLUMNS + lane
    element = tiles.let("element", piece * LANES)
    total = t.Ident(shader.fresh("total"))
    body += [
        t.Var(total.name, identity(shader, reduce.kind, reduce.type, LANES)),
        _add_slots(shader, place, total, (m * n, element)),
        *_joined_rows(shader, reduce, total),
    ]
    # Where the elements are in the result, and the stage's steps for each.
    at, tile_row, tile_column = tiles.place(place.tile)
    row = tiles.let("result_row", tile_row + element // n)
    first = element % n // LANES if spread else element % n
    column = tiles.let("result_column", tile_column + first)
    if wide:
        body.append(leave_outside(shader, row, column))
        body += _finished(shader, at, (row, column), Value(total, wide=True))
    else:
        stride = n // LANES if spread else t.ONE
        body.append(_finished_each(shader, at, (row, column), stride, total))
    return shader.finish(
        body,
        groups=host.ZERO,
        workgroup_size=JOIN_COLUMNS * JOIN_ROWS,
        summary="second of two dispatches: the slots of tiles that have several.",
        variant="finish" if wide else "finish.edge",
    )


def _finished_each(
    shader: ShaderBuilder,
    at: dict[Index, t.Expr],
    place: tuple[t.Expr, t.Expr],
    stride: t.Expr,
    total: t.Ident,
) -> t.Stmt:
    """Return a loop that does the stage's steps for each component of a vector of totals.

    Components that follow one another belong to columns that are `stride` apart.
    """
    number = t.Ident(shader.fresh("number"))
    here = place[0], place[1] + number * stride
    steps = _finished(shader, at, here, Value(total[number]))
    inside = t.If(is_inside(shader, *here), (*steps,))
    return t.count_up(number.name, 0, t.u32(LANES), 1, inside)


def _finished(
    shader: ShaderBuilder,
    batch: Mapping[Index, t.Expr],
    place: tuple[t.Expr, t.Expr],
    total: Value,
) -> list[t.Stmt]:
    """Return the steps of the stage for the total at a row and column, or for four totals.

    `batch` has the indices that no tile covers, `place` the position on each side.
    """
    body: list[t.Stmt] = []
    at = {**batch}
    for side, position in zip(sides_of(shader.task), place, strict=True):
        at |= side_places(shader, body, side, position)
    vector = product_of(shader.task)[0].column if total.wide else None
    label = reduction_label(shader.task)
    lowerer = Lowerer(shader, at, body, vector=vector, label=label)
    lowerer.reduced[reduction_of(shader.task)] = total
    write_steps(lowerer, shader.task.stage)
    return body


@final
@dataclass(frozen=True, slots=True)
class ShareSlots:
    """The slots that a workgroup of the second dispatch adds up: those of a piece of a tile.

    - `number`: the number of the workgroup
    - `tile`: the tile that it handles a piece of
    - `first`, `last`: the workgroups of the first dispatch that have the tile's first and
      last turn; these and those between them have a slot for the tile
    """

    number: t.Expr
    tile: t.Expr
    first: t.Expr
    last: t.Expr


def _find_slots(tiles: ProductTiles, pieces: t.Expr) -> ShareSlots:
    """Write which tile a workgroup has a piece of, and return its slots.

    With shares shorter than a tile, every tile has its pieces.  With longer ones, pieces are
    numbered by share, and a workgroup has the tile in which share `which` ends.  It returns
    at once where nothing is to be added: where one share has all of the tile, another one
    began it, or there is no such tile.
    """
    shares = tiles.shares
    number = tiles.let("number", linear_group(tiles.shader))
    tiles.name_shares()
    turns, share = tiles[shares.turns], tiles[shares.share]
    which = tiles.let("which", number // pieces)
    by_tile = tiles.let("by_tile", share < turns)
    end = t.call("min", which * share + share, tiles[shares.all_turns])
    begun_last = t.Binary("-", end, t.ONE) // turns
    tile = tiles.let("tile", t.call("select", begun_last, which, by_tile))
    first_turn = tiles.let("first_turn", tile * turns)
    first = tiles.let("first", first_turn // share)
    last = tiles.let("last", t.Binary("-", first_turn + turns, t.ONE) // share)
    elsewhere = t.all_of(t.Unary("!", by_tile), t.Binary("!=", first, which))
    beyond = first_turn >= tiles[shares.all_turns]
    nothing = t.any_of(first.equals(last), elsewhere, beyond)
    tiles.body.append(t.If(nothing, (t.Return(),)))
    return ShareSlots(number, tile, first, last)


def _add_slots(
    shader: ShaderBuilder,
    slots: ShareSlots,
    total: t.Ident,
    at: tuple[t.Expr, t.Expr],
) -> t.Stmt:
    """Return the loop in which a lane adds four elements of every fourth slot."""
    reduce, (size, element) = reduction_of(shader.task), at
    part = t.Ident(shader.fresh("part"))
    kept = shader.scratch("parts", reduce.type, written=False)
    slot = slot_of(part, begun=part.equals(slots.first))
    value = kept.load((slot * size + element) // LANES)
    start = slots.first + shader.lane // JOIN_COLUMNS
    take = accumulate(reduce.kind, total, value)
    return t.count_up(part.name, start, slots.last + 1, JOIN_ROWS, take)


def _joined_rows(shader: ShaderBuilder, reduce: Reduce, total: t.Ident) -> list[t.Stmt]:
    """Join the totals of a workgroup's 4 rows of lanes; only those of row 0 go on."""
    type_ = wgsl_type(reduce.type, LANES)
    size = JOIN_COLUMNS * JOIN_ROWS
    width = value_bytes(reduce.type) * LANES
    shared = shader.workgroup_array("totals", f"array<{type_}, {size}>", size * width)
    return [
        t.Assign(shared[shader.lane], total),
        t.BARRIER,
        t.If(shader.lane >= JOIN_COLUMNS, (t.Return(),)),
        *(
            accumulate(reduce.kind, total, shared[shader.lane + row * JOIN_COLUMNS])
            for row in range(1, JOIN_ROWS)
        ),
    ]


def leave_outside(
    shader: ShaderBuilder,
    row: t.Expr,
    column: t.Expr,
    columns: tuple[Index, ...] | None = None,
) -> t.Stmt:
    """Return the statement that ends an invocation beyond the last row or column.

    `columns` are the indices of the columns, where they are not those of the stage.
    """
    sides = sides_of(shader.task)
    beyond = row >= shader.size(sides[0]), column >= shader.size(columns or sides[1])
    return t.If(t.any_of(*beyond), (t.Return(),))


def is_inside(shader: ShaderBuilder, row: t.Expr, column: t.Expr) -> t.Expr:
    """Return the condition that an element lies within the rows and the columns."""
    rows, columns = map(shader.size, sides_of(shader.task))
    return t.all_of(row < rows, column < columns)


def side_places(
    shader: ShaderBuilder, body: list[t.Stmt], side: tuple[Index, ...], at: t.Expr
) -> dict[Index, t.Expr]:
    """Return the values of the indices `side`, of rows or of columns, at place `at` among them.

    The place is their row-major number; `let`s of the values are appended to `body`.
    """
    if len(side) == 1:
        return {side[0]: at}
    if not isinstance(at, t.Ident):
        named = shader.let(body, "place", at)
        at = named
    return unravel(shader, body, side, at)
