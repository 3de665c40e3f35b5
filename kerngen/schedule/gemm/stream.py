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
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.nodes import Index, Reduce
from kerngen.plan import size as host
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.shares import TermShares, batch_of, tile_numbers
from kerngen.schedule.gemm.tiling import Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import (
    reduction_label,
    reduction_of,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.steps import vector_tensors, write_steps
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import loop_trips, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

JOIN_COLUMNS: Final = 64
JOIN_ROWS: Final = 4
"""The shape of a workgroup of the second dispatch: 64 lanes side by side, in 4 rows.

Lanes side by side have four neighbouring elements of a tile each; the 4 rows have the same
elements, and share their slots.
"""

PIECE: Final = JOIN_COLUMNS * LANES
"""How many elements of a tile a workgroup of the second dispatch adds up: 256."""

NAMES: Final = ("TILE_M", "TILE_N", "TILE_K", "STREAM", "SLICES")
"""The overrides of the second dispatch: `tile_numbers`."""


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
        """Append a variable for each pair of a wanted name and a size that is no literal."""
        for wanted, size in sizes:
            if not isinstance(size, host.Literal):
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
            let own_tiles = (tile_rows * tile_columns + 131u) / 132u;
            let waves = max((turns * 6u + 9u) / 10u, (turns * own_tiles + 2u) / 3u);
            let share = select(turns, even_share, ...);
        """
        of = self.shares
        self.name_axes()
        self.name(("turns", of.turns), ("all_turns", of.all_turns))
        self.name(("least", of.least), ("even_share", of.even_share))
        self.name(("at_once", of.at_once), ("own_tiles", of.own_tiles))
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
        constants=tuple(zip(names, tile_numbers(tiling), strict=True)),
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
