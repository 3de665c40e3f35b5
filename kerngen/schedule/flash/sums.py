"""The shaders for gradients of attention: row statistics,
then sums of recomputed tiles.

The first dispatch goes over the keys of each row, and stores a few numbers of it: the largest
score, the total of the weights, and sums of weights times factors.  Each of the others makes
tiles of weights again, out of products and those numbers, and multiplies them with values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, final

from kerngen.ir.nodes import (
    Affine,
    Constant,
    Expr,
    Index,
    IndexValue,
)
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.plan.size import ZERO, add, ceil_div
from kerngen.schedule.contraction import Contraction
from kerngen.schedule.flash.attention import SUM
from kerngen.schedule.flash.attention_sums import (
    AttentionSums,
    Statistics,
    Tiles,
    TileSum,
    product,
    weighted_sum,
)
from kerngen.schedule.flash.key_bounds import KeyBounds, mask_of
from kerngen.schedule.flash.online import OnlineRows
from kerngen.schedule.flash.scale import row_values, share, sum_values
from kerngen.schedule.flash.tile_pass import (
    KeyPass,
    Product,
    Weights,
    in_vectors,
    values_in_vectors,
    weighted_values,
)
from kerngen.schedule.flash.tiling import FlashTiling
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.identities import infinity
from kerngen.schedule.lowering.steps import tensors_in_runs
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import Shader
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

_BEYOND: Final = "beyond the last key there is none."


def wide_in_numbers(found: Statistics) -> set[str]:
    """Return the tensors that the pass for row statistics reads as vectors."""
    tiles = found.tiles
    names = in_vectors(tiles.products, tiles.row, tiles.key)
    return names | tensors_in_runs((found.score, *found.factors), tiles.key)


def wide_in_sum(found: TileSum) -> set[str]:
    """Return the tensors that the pass for a sum reads or writes as vectors."""
    tiles = found.tiles
    return (
        in_vectors(tiles.products, tiles.row, tiles.key)
        | values_in_vectors(found.value, tiles.key, found.column, found.finish)
        | tensors_in_runs((found.weight,), tiles.key)
    )


class _Remade(KeyPass):
    """A pass that makes tiles again, by several products."""

    def __init__(
        self,
        task: Task,
        tiles: Tiles,
        tiling: FlashTiling,
        wide: set[str],
        *,
        whole: bool,
    ) -> None:
        """Declare the products."""
        ends = tiles.row, tiles.key
        super().__init__(task, tiling, ends, tiles.batch, wide, whole=whole)
        self.products = [self._product(found) for found in tiles.products]

    def _product(self, found: Contraction) -> Product:
        query, keys = self.operands(found)
        sums = RegisterTile(self.builder, self.rows, found, query, keys, "product")
        return Product(found, query, keys, sums)

    def function(self, wanted: str, value: Expr, beyond: t.Expr, about: str) -> str:
        """Declare a function of all products of a row with a key, or with four."""
        names = {product(n): f"product_{n}" for n in range(len(self.products))}
        return self.declare_function(wanted, value, names, beyond, about)

    def put(self) -> list[t.Stmt]:
        """Name this invocation's place, which all register tiles have."""
        column, row = self.products[0].sums.own_place()
        for each in self.products:
            each.sums.put(self.column, self.row)
        return [t.Let(self.column.name, column), t.Let(self.row.name, row)]

    def declare_rows(self) -> list[t.Stmt]:
        """Find the rows of each product in memory."""
        body = list[t.Stmt]()
        for each in self.products:
            each.rows.origin = self.tile_row
            body += [*each.rows.place(self.at), *each.rows.declare()]
        return body

    def multiplied(self) -> list[t.Stmt]:
        """Make the products of the rows with the keys of this turn."""
        body = list[t.Stmt]()
        for each in self.products:
            each.keys.origin = self.first
            body += [*each.keys.place(self.at), *each.keys.declare()]
            body += [*each.sums.declare(in_loop=True), *self.multiply(each), t.Blank()]
        return body

    def tile_rows(self) -> list[list[t.Ident]]:
        """Return the sums of the first product, in rows."""
        sums = self.products[0].sums
        return [sums.row_of(r) for r in range(self.rows.micro_m)]

    def applied_to_all(
        self, first: str, others: list[str]
    ) -> tuple[list[t.Stmt], list[list[list[t.Ident]]]]:
        """Apply functions to the products of every row and key.

        The value of the first takes the place of the first product; return what has those
        of the others.
        """
        body = list[t.Stmt]()
        values = [[list[t.Ident]() for _ in self.tile_rows()] for _ in others]
        across = len(self.tile_rows()[0])
        for number, each in enumerate(zip(*self._results(), strict=True)):
            r, v = divmod(number, across)
            i, columns, total = each[0]
            products = [found for _, _, found in each]
            for rows, name in zip(values, others, strict=True):
                value = t.Ident(self.builder.fresh(f"{name}_{r}_{v}"))
                applied = self.applied(name, i, columns, products)
                body.append(t.Let(value.name, applied))
                rows[r].append(value)
            body.append(t.Assign(total, self.applied(first, i, columns, products)))
        return body, values

    def _results(self) -> Iterator[Iterator[tuple[t.Expr, list[t.Expr], t.Ident]]]:
        return (each.sums.results() for each in self.products)

    def over_keys(self, body: list[t.Stmt]) -> t.Stmt:
        """Return the loop over the keys."""
        keys = self.tiling.keys
        return t.count_up(self.first.name, self.begin, self.end, keys, *body)

    def finished_shader(
        self, column: Index | None, variant: str, summary: str
    ) -> Shader:
        """Return the whole shader."""
        t_ = self.tiling
        terms = [domain_size(each.found.over) for each in self.products]
        turns = (ceil_div(each, t_.terms) for each in terms)
        inner = add(*turns) + (t_.keys // t_.weights + 1)
        over = ceil_div(extent_size(self.key_index.extent), t_.keys)
        several = [
            size
            for size, each in zip(terms, self.products, strict=True)
            if len(each.found.over) > 1
        ]
        names = (variant, "" if self.whole else "edge")
        return self.builder.finish(
            self.body,
            groups=self.tile_count(column),
            workgroup_size=self.rows.invocations,
            summary=summary,
            variant=".".join(name for name in names if name),
            terms=add(*several) if several else ZERO,
            trips=domain_size(self.outer) * (over * inner + 1),
        )


@final
class NumbersShader(_Remade):
    """Writes the shader that computes the row statistics."""

    def __init__(
        self, task: Task, found: AttentionSums, tiling: FlashTiling, *, whole: bool
    ) -> None:
        """Declare the tiles."""
        self.found = found.statistics
        self.numbers = found.numbers
        wide = wide_in_numbers(self.found)
        super().__init__(task, self.found.tiles, tiling, wide, whole=whole)
        s = self.builder
        s.scratch(self.numbers.name, Scalar.F32, written=True)
        self.weights = Weights(s, self.rows, tiling.weights, self.key_index)
        self.online = OnlineRows(self, self.weights, len(self.found.factors))
        self.name_places()

    def shader(self) -> Shader:
        """Return the whole shader."""
        s, found, t_ = self.builder, self.found, self.tiling
        self.place(None, KeyBounds.of(found.score, self.row_index, self.key_index))
        part = self.let("share", share(s, self.key_index.extent))
        self.body += [t.Blank(), *self.put(), *self.declare_rows()]
        self.body += self.online.declare()
        lowest = infinity(s, negative=True)
        score = self.function("score", found.score, lowest, f"A score; {_BEYOND}")
        about = f"What a weight is multiplied with; {_BEYOND}"
        others = [
            self.function("factor", each, t.Literal("0.0"), about)
            for each in found.factors
        ]
        applied, factors = self.applied_to_all(score, others)
        taken = self.online.take(self.tile_rows(), part, factors=factors)
        turn = [*self.multiplied(), *applied, t.Blank(), *taken]
        self.body += [t.Blank(), self.over_keys(turn), t.Blank()]
        self.body += [*self.online.join(), t.Blank(), self._stored()]
        summary = f"one workgroup per {t_.queries} rows, {t_.keys} keys at a time."
        return self.finished_shader(None, "", summary)

    def _stored(self) -> t.Stmt:
        """Store the numbers of each row, by one invocation of it."""
        name, body = self._declare_store(), list[t.Stmt]()
        for r in range(self.rows.micro_m):
            row = self.tile_row + self.products[0].sums.tile_row(r)
            at = {**self.at, self.row_index: row}
            places = (at[index] for index in self.found.domain)
            body.append(t.Evaluate(t.call(name, *places, *self.online.of_row(r))))
        return t.If(self.column.equals(0), tuple(body))

    def _declare_store(self) -> str:
        found = self.found
        own = tuple(map(IndexValue, found.domain))
        steps = [Write(tensor, value) for tensor, value in found.stored]
        for number, value in enumerate(found.numbers):
            place = Affine(Constant(number, Scalar.I32))
            steps.append(Write(self.numbers, StoreAt(value, (place, *own))))
        totals = range(len(self.online.totals))
        return self.declare_steps(
            "keep",
            Stage(self.numbers.name, found.domain, tuple(steps)),
            (self.row_index,),
            "Stores the numbers of a row.",
            {"row_top": "f32", **{f"row_total_{n}": "f32" for n in totals}},
            self._numbers,
        )

    def _numbers(self, given: tuple[t.Ident, ...]) -> Mapping[str, Value]:
        """Return the local values of a row, from its largest score and totals."""
        top, total, *sums = given
        s, keys = self.builder, self.key_index.extent
        found = row_values(s, keys, (top, total))
        for number, each in enumerate(sums):
            values = sum_values(s, keys, Value(each), total)
            names = (local.name for local in weighted_sum(number))
            found |= dict(zip(names, values.values(), strict=True))
        return found


@final
class SumShader(_Remade):
    """Writes the shader of one gradient sum."""

    def __init__(
        self, task: Task, found: TileSum, tiling: FlashTiling, *, whole: bool
    ) -> None:
        """Declare the tiles."""
        self.found = found
        wide = wide_in_sum(found)
        super().__init__(task, found.tiles, tiling, wide, whole=whole)
        self.outer = found.outer
        s, values = self.builder, tiling.values
        key, column = self.key_index, found.column
        sums = weighted_values(found.value, key, column, self.row_index)
        self.values = self.operand("v", found.value, column, sums.over, values)
        self.weights = Weights(s, self.rows, tiling.weights, key)
        self.sums = RegisterTile(s, values, sums, self.weights, self.values, "acc")
        self.name_places()

    def shader(self) -> Shader:
        """Return the whole shader."""
        found, t_ = self.found, self.tiling
        self.place(found.column, self._bounds())
        self.values.origin = self.tile_column
        self.body += [t.Blank(), *self.put()]
        self.sums.put(self.column, self.row)
        self.body += [*self.sums.declare(), t.Blank(), *self._loops(), t.Blank()]
        self.body += self._finish()
        summary = (
            f"one workgroup per {t_.queries} rows and {t_.columns} columns, "
            f"{t_.keys} keys at a time."
        )
        return self.finished_shader(found.column, found.finish.name, summary)

    def _bounds(self) -> KeyBounds:
        """Return which keys have weights: those of a mask, or its rows where it is turned."""
        mask = mask_of(self.found.weight)
        return KeyBounds.of_mask(
            mask, self.row_index, self.key_index, is_turned=self.found.is_turned
        )

    def _loops(self) -> list[t.Stmt]:
        """Write the loops over the outer indices, and in them that over the keys."""
        s, found = self.builder, self.found
        counters = {index: t.Ident(s.name(index.name)) for index in self.outer}
        self.at |= counters
        weight = self.function(
            "weight", found.weight, t.Literal("0.0"), f"A weight; {_BEYOND}"
        )
        places = [*self.declare_rows(), *self.values.place(self.at)]
        applied, _ = self.applied_to_all(weight, [])
        turn = [
            *self.multiplied(),
            *self.values.fetch(self.first),
            *applied,
            t.Blank(),
            *self.add_values(self.tile_rows(), self.weights, self.values, self.sums),
        ]
        body: list[t.Stmt] = [
            *places,
            *self.values.declare(),
            t.Blank(),
            self.over_keys(turn),
        ]
        for index, counter in reversed(counters.items()):
            body = [t.count_up(counter.name, 0, s.extent(index.extent), 1, *body)]
        return body

    def _finish(self) -> list[t.Stmt]:
        """Do the stage's steps with every sum."""
        finish, column = self.found.finish, self.found.column
        wide = self.whole and finish.domain[-1] == column

        def sums(given: tuple[t.Ident, ...]) -> Mapping[str, Value]:
            return {SUM.name: Value(given[0], wide=wide)}

        name = self.declare_steps(
            "finish",
            finish,
            (self.row_index, column),
            "What becomes of a sum, or of four neighbouring ones.",
            {"weighted": wgsl_type(Scalar.F32, LANES if wide else 1)},
            sums,
            column if wide else None,
        )
        return self.finished(name, finish.domain, column, self.sums)
