"""The shader of strategy `flash`.

A workgroup has a tile of queries, and goes over the keys.  Each turn computes the scores
of some keys in registers, as `gemm` does; raises the largest score of each row, and scales
the totals so far to it; then adds the weights times the values.  The weights go through
workgroup memory, as each invocation needs those of its rows for all keys.

`tile_pass.py` writes the products, `online.py` the running maxima and totals; this module
puts them together.  The registers of an invocation with 8 x 8 scores: `score_0_0` to
`score_7_1`, the sums `acc_0` to `acc_7`, and of its rows `top_0`, `top_1`, `total_0` and
`total_1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from kerngen.ir.staging.stages import Stage
from kerngen.ir.types import Scalar
from kerngen.plan.size import ceil_div, product_of
from kerngen.schedule.flash.attention import DOT, Attention
from kerngen.schedule.flash.key_bounds import KeyBounds
from kerngen.schedule.flash.online import OnlineRows
from kerngen.schedule.flash.scale import row_values, share, sum_values
from kerngen.schedule.flash.tile_pass import (
    KeyPass,
    TileProduct,
    in_vectors,
    keys_in_vectors,
    values_in_vectors,
    weighted_values,
)
from kerngen.schedule.flash.tiling import FlashTiling
from kerngen.schedule.flash.weights import Weights
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.identities import infinity
from kerngen.schedule.lowering.steps import tensors_in_runs
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

_OF_ROW: Final = {"row_top": "f32", "row_total": "f32"}
"""The numbers of a row that the last stage's function takes, with their types."""


def needs_whole_keys(found: Attention) -> bool:
    """Return whether attention in whole vectors needs whole vectors of keys, too."""
    return keys_in_vectors((found.product,), ((found.value, found.column),), found.key)


def wide_tensors(found: Attention) -> set[str]:
    """Return the names of the tensors that are read or written as vectors of four."""
    names = in_vectors((found.product,), found.row, found.key)
    names |= values_in_vectors(found.value, found.key, found.column, found.finish)
    if needs_whole_keys(found):
        names |= tensors_in_runs((found.score,), found.key)
    return names


@final
class FlashShader(KeyPass):
    """Builds the shader of attention."""

    def __init__(
        self, task: Task, found: Attention, tiling: FlashTiling, *, whole: bool
    ) -> None:
        """Declare the tiles, and name the running numbers of each row."""
        ends = found.row, found.key
        super().__init__(
            task,
            tiling,
            ends,
            found.batch,
            wide_tensors(found),
            whole=whole,
            whole_keys=needs_whole_keys(found),
        )
        self.found = found
        self.wide = whole and found.finish.domain[-1] == found.column
        s, scores, values = self.builder, self.rows, tiling.values
        query, keys = self.operands(found.product)
        sums = weighted_values(found.value, found.key, found.column, found.row)
        self.values = self.operand("v", found.value, found.column, sums.over, values)
        self.weights = Weights(s, scores, tiling.weights, found.key)
        self.scores = RegisterTile(s, scores, found.product, query, keys, "score")
        self.product = TileProduct(found.product, query, keys, self.scores)
        self.sums = RegisterTile(s, values, sums, self.weights, self.values, "acc")
        self.online = OnlineRows(self, self.weights)
        self.name_places()

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        t_, found = self.tiling, self.found
        self.place((found.column,), KeyBounds.of(found.score, found.row, found.key))
        self.product.rows.origin = self.tile_row
        self.values.origin = self.tile_column
        self.body += [t.Blank(), *self._declare()]
        self.body += [t.Blank(), self._loop()]
        self.body += [t.Blank(), *self.online.join()]
        self.body += [t.Blank(), *self._finish()]
        # The trips of the loops over terms and over weights, for each tile of keys.
        key, over = extent_size(found.key.extent), domain_size(found.product.over)
        inner = ceil_div(over, t_.terms) + (t_.keys // t_.weights + 1)
        return self.builder.finish(
            self.body,
            groups=self.tile_count((found.column,)),
            workgroup_size=self.rows.invocations,
            summary=(
                f"one workgroup per {t_.queries} rows and {t_.columns} columns, "
                f"{t_.keys} keys at a time."
            ),
            variant="" if self.whole else "edge",
            terms=over if len(found.product.over) > 1 else product_of(()) * 0,
            trips=ceil_div(key, t_.keys) * inner,
        )

    def _declare(self) -> list[t.Stmt]:
        column, row = self.scores.own_place()
        self.share = self.let("share", share(self.builder, self.found.key.extent))
        body: list[t.Stmt] = [
            t.Let(self.column.name, column),
            t.Let(self.row.name, row),
        ]
        self.scores.put(self.column, self.row)
        self.sums.put(self.column, self.row)
        query = self.product.rows
        body += [*query.place(self.at), *self.values.place(self.at)]
        body += [*query.declare(), *self.values.declare()]
        return [*body, t.Blank(), *self.sums.declare(), *self.online.declare()]

    # The pass over the keys

    def _loop(self) -> t.Stmt:
        """Return the loop over the keys, a tile of them in each turn."""
        keys = self.product.keys
        keys.origin = self.first
        rows = [self.scores.row_of(r) for r in range(self.rows.micro_m)]
        body = [
            *keys.place(self.at),
            *keys.declare(),
            *self.scores.declare(in_loop=True),
            *self.multiply(self.product),
            t.Blank(),
            # The first values are loaded while scores are computed.
            *self.values.fetch(self.first),
            *self._score(),
            t.Blank(),
            *self.online.take(rows, self.share, self.sums.row_of),
            t.Blank(),
            *self.add_values(rows, self.weights, self.values, self.sums),
        ]
        return t.count_up(
            self.first.name, self.begin, self.end, self.tiling.keys, *body
        )

    def _score(self) -> list[t.Stmt]:
        """Turn products into scores, each by the function `score`."""
        functions, tile = self.functions, self.scores
        score = functions.declare(
            "score",
            self.found.score,
            {DOT: "product"},
            "The score of a key, or of four neighbouring ones, by its product.",
        )
        scored = [
            t.Assign(product, functions.apply(score, tile, number, (product,)))
            for number, (_, _, product) in enumerate(tile.results())
        ]
        rows = [tile.row_of(r) for r in range(self.rows.micro_m)]
        beyond = infinity(self.builder, negative=True)
        return [*functions.loads, *scored, functions.masked(tile, [(rows, beyond)])]

    # The result

    def _finish(self) -> list[t.Stmt]:
        """Do the last stage's steps with every sum, and store the numbers of rows."""
        found = self.found
        many = "four neighbouring sums of a row" if self.wide else "one sum"
        type_ = wgsl_type(Scalar.F32, LANES if self.wide else 1)

        # The last stage's local values, from the parameters of `finish`.
        def sums(given: tuple[t.Ident, ...]) -> Mapping[str, Value]:
            *row, total = given
            value = Value(total, wide=self.wide)
            keys = found.key.extent
            return self._numbers((*row,)) | sum_values(
                self.builder, keys, value, row[1]
            )

        finish = self.declare_steps(
            "finish",
            found.finish,
            (found.row, found.column),
            f"What becomes of {many}.",
            {**_OF_ROW, "weighted": type_},
            sums,
            found.column if self.wide else None,
        )
        domain = found.finish.domain
        stored = self.finished(
            finish, domain, found.column, self.sums, self.online.of_row
        )
        return [*stored, *self._finish_rows()]

    def _numbers(self, given: tuple[t.Ident, ...]) -> dict[str, Value]:
        top, total = given
        return row_values(self.builder, self.found.key.extent, (top, total))

    def _finish_rows(self) -> list[t.Stmt]:
        """Store the largest scores and totals that are written, by one invocation of a row."""
        found, body = self.found, list[t.Stmt]()
        for domain, write in found.beside:
            stage = Stage(write.tensor.name, domain, (write,))
            name = self.declare_steps(
                f"keep_{write.tensor.name}",
                stage,
                (found.row,),
                f"Stores {write.tensor.name} of a row.",
                _OF_ROW,
                self._numbers,
            )
            for r in range(self.rows.micro_m):
                row = self.tile_row + self.scores.tile_row(r)
                at = {**self.at, found.row: row}
                places = (at[index] for index in domain)
                body.append(t.Evaluate(t.call(name, *places, *self.online.of_row(r))))
        if not body:
            return []
        first = t.all_of(self.column.equals(0), self.tile_column.equals(0))
        return [t.If(first, tuple(body))]
