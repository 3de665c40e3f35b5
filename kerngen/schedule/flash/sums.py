"""The shaders for gradients of attention: row statistics, then sums of tiles.

The first dispatch goes over the keys of each row, and stores the row's statistics: the
largest score, the total of the weights, and sums of weights times factors.  Each other
dispatch computes tiles of weights again, out of products and those numbers, and multiplies
them with values.  The pass for dk and dv has keys as its rows, and goes over the queries:

    for (var first_key = 0u; first_key < u.s; first_key += 64u) {
        ...  product_0 += q_0.x * k_0;                     // the product of q and k
        ...  product_0_ += q_0.x * k_0;                    // the product of dy and v
        let weight_2_0_0 = weight_2(n, g, j, i, product_0, product_0_);
        product_0 = weight(n, g, j, i, product_0, product_0_);
        ...  acc_0 += w_0.x * v_0;                         // dk: weights times q
        ...  acc_0_ += w_0.x * v_0;                        // dv: weights times dy
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import Expr, Index, Tensor
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.plan.size import ZERO, add, ceil_div
from kerngen.schedule.contraction import Contraction
from kerngen.schedule.flash.attention import SUM
from kerngen.schedule.flash.attention_sums import (
    AttentionTiles,
    Statistics,
    SumPass,
    TileSum,
    product,
)
from kerngen.schedule.flash.chunk_place import ChunkPlace
from kerngen.schedule.flash.chunks import IS_FIRST, Chunks, added
from kerngen.schedule.flash.key_bounds import KeyBounds, mask_of
from kerngen.schedule.flash.online import OnlineRows
from kerngen.schedule.flash.row_numbers import stores, weighted_sum
from kerngen.schedule.flash.scale import row_values, share, sum_values
from kerngen.schedule.flash.tile_functions import TileFunction
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
from kerngen.schedule.gemm.operand import Operand
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.identities import infinity
from kerngen.schedule.lowering.steps import tensors_in_runs
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

_ZERO: Final = t.Literal("0.0")


def sums_need_whole_keys(tiles: AttentionTiles, sums: Sequence[TileSum] = ()) -> bool:
    """Return whether a pass in whole vectors needs whole vectors of keys, too."""
    values = [(each.value, each.column) for each in sums]
    return keys_in_vectors(tiles.products, values, tiles.key)


def wide_in_numbers(found: Statistics) -> set[str]:
    """Return the names of the tensors that the pass for statistics reads in vectors."""
    tiles = found.tiles
    names = in_vectors(tiles.products, tiles.row, tiles.key)
    if sums_need_whole_keys(tiles):
        names |= tensors_in_runs((found.score, *found.factors), tiles.key)
    return names


def wide_in_pass(found: SumPass) -> set[str]:
    """Return the names of the tensors that a pass of sums accesses as vectors of four."""
    tiles = found.tiles
    names = in_vectors(tiles.products, tiles.row, tiles.key)
    whole_keys = sums_need_whole_keys(tiles, found.sums)
    for each in found.sums:
        names |= values_in_vectors(each.value, tiles.key, each.column, each.finish)
        if whole_keys:
            names |= tensors_in_runs((each.weight,), tiles.key)
    return names


class _Remade(KeyPass):
    """A pass that computes tiles of weights again, as a function of several products."""

    def __init__(
        self,
        task: Task,
        tiles: AttentionTiles,
        tiling: FlashTiling,
        wide: set[str],
        *,
        whole: bool,
        whole_keys: bool,
    ) -> None:
        """Declare the products."""
        super().__init__(
            task,
            tiling,
            (tiles.row, tiles.key),
            tiles.batch,
            wide,
            whole=whole,
            whole_keys=whole_keys,
        )
        self.products = [self._product(found) for found in tiles.products]

    def _product(self, found: Contraction) -> TileProduct:
        query, keys = self.operands(found)
        sums = RegisterTile(self.builder, self.rows, found, query, keys, "product")
        return TileProduct(found, query, keys, sums)

    def function(self, wanted: str, value: Expr, about: str) -> TileFunction:
        """Declare a WGSL function of a row's products with four keys."""
        names = {product(n): f"product_{n}" for n in range(len(self.products))}
        return self.functions.declare(wanted, value, names, about)

    def put(self) -> list[t.Stmt]:
        """Return `let`s of this invocation's column and row, which all register tiles share."""
        column, row = self.products[0].sums.own_place()
        for each in self.products:
            each.sums.put(self.column, self.row)
        return [t.Let(self.column.name, column), t.Let(self.row.name, row)]

    def declare_rows(self) -> list[t.Stmt]:
        """Return statements that name addresses of rows, for before the loop over the keys."""
        body = list[t.Stmt]()
        for each in self.products:
            each.rows.origin = self.tile_row
            body += [*each.rows.place(self.at), *each.rows.declare()]
        return body

    def multiplied(self) -> list[t.Stmt]:
        """Return statements that compute the products of the rows with a turn's keys."""
        body = list[t.Stmt]()
        for number, each in enumerate(self.products):
            each.keys.origin = self.first
            body += [*each.keys.place(self.at), *each.keys.declare()]
            body += each.sums.declare(in_loop=True)
            body += [*_where(self.needed(number), self.multiply(each)), t.Blank()]
        return body

    def needed(self, number: int) -> t.Expr | None:
        """Return the condition that a workgroup needs product `number`; None if all need it."""
        del number
        return None

    def tile_rows(self) -> list[list[t.Ident]]:
        """Return the variables of the first product, a list for each row of the invocation."""
        sums = self.products[0].sums
        return [sums.row_of(r) for r in range(self.rows.micro_m)]

    def applied_to_all(
        self, first: TileFunction, others: list[TileFunction], beyond: t.Expr = _ZERO
    ) -> tuple[list[t.Stmt], list[list[list[t.Ident]]]]:
        """Return statements that apply WGSL functions to the products of every row and key.

        The value of the function `first` overwrites the first product, so that it takes no
        further registers; for keys past the last one it is `beyond`.  The second result has for
        each of the `others` the variables of its values; for those keys they are 0.
        """
        functions, tile = self.functions, self.products[0].sums
        body = list[t.Stmt]()
        values = [[list[t.Ident]() for _ in self.tile_rows()] for _ in others]
        totals = (each.sums.results() for each in self.products)
        for number, each in enumerate(zip(*totals, strict=True)):
            r, v = divmod(number, tile.vectors)
            products = [found for _, _, found in each]
            for rows, other in zip(values, others, strict=True):
                value = t.Ident(self.builder.fresh(f"{other.name}_{r}_{v}"))
                applied = functions.apply(other, tile, number, products)
                body.append(t.Var(value.name, applied))
                rows[r].append(value)
            applied = functions.apply(first, tile, number, products)
            body.append(t.Assign(products[0], applied))
        masked = [(self.tile_rows(), beyond), *((rows, _ZERO) for rows in values)]
        return [*functions.loads, *body, functions.masked(tile, masked)], values

    def over_keys(self, body: list[t.Stmt]) -> t.Stmt:
        """Return the loop over the workgroup's keys around `body`."""
        keys = self.tiling.keys
        return t.count_up(self.first.name, self.begin, self.end, keys, *body)

    def finished_shader(
        self, columns: Sequence[Index], variant: str, summary: str
    ) -> DispatchShader:
        """Return the finished shader, with `columns` as those of the sums."""
        t_ = self.tiling
        terms = [domain_size(each.found.over) for each in self.products]
        turns = (ceil_div(each, t_.terms) for each in terms)
        inner = add(*turns) + (t_.keys // t_.weights + 1) * max(len(columns), 1)
        over = ceil_div(extent_size(self.key_index.extent), t_.keys)
        several = [
            size
            for size, each in zip(terms, self.products, strict=True)
            if len(each.found.over) > 1
        ]
        names = (variant, "" if self.whole else "edge")
        return self.builder.finish(
            self.body,
            groups=self.tile_count(columns),
            workgroup_size=self.rows.invocations,
            summary=summary,
            variant=".".join(name for name in names if name),
            terms=add(*several) if several else ZERO,
            trips=domain_size(self.outer) * (over * inner + 1),
        )


def _where(condition: t.Expr | None, body: list[t.Stmt]) -> list[t.Stmt]:
    return body if condition is None else [t.If(condition, tuple(body))]


@final
class NumbersShader(_Remade):
    """Builds the shader that computes the row statistics."""

    def __init__(
        self,
        task: Task,
        found: Statistics,
        numbers: Tensor,
        tiling: FlashTiling,
        *,
        whole: bool,
    ) -> None:
        """Declare the tiles."""
        self.found = found
        self.numbers = numbers
        keys, tiles = sums_need_whole_keys(found.tiles), found.tiles
        wide = wide_in_numbers(found)
        super().__init__(task, tiles, tiling, wide, whole=whole, whole_keys=keys)
        s = self.builder
        s.scratch(self.numbers.name, Scalar.F32, written=True)
        self.weights = Weights(s, self.rows, tiling.weights, self.key_index)
        self.online = OnlineRows(self, self.weights, len(self.found.factors))
        self.name_places()

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        s, found, t_ = self.builder, self.found, self.tiling
        self.place((), KeyBounds.of(found.score, self.row_index, self.key_index))
        part = self.let("share", share(s, self.key_index.extent))
        self.body += [t.Blank(), *self.put(), *self.declare_rows()]
        self.body += self.online.declare()
        score = self.function("score", found.score, "A score.")
        others = [
            self.function("factor", each, "What a weight is multiplied with.")
            for each in found.factors
        ]
        lowest = infinity(s, negative=True)
        applied, factors = self.applied_to_all(score, others, lowest)
        taken = self.online.take(self.tile_rows(), part, factors=factors)
        turn = [*self.multiplied(), *applied, t.Blank(), *taken]
        self.body += [t.Blank(), self.over_keys(turn), t.Blank()]
        self.body += [*self.online.join(), t.Blank(), self._stored()]
        summary = f"one workgroup per {t_.queries} rows, {t_.keys} keys at a time."
        return self.finished_shader((), "", summary)

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
        steps = [Write(tensor, value) for tensor, value in found.stored]
        steps += stores(found.domain, found.numbers, self.numbers)
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
@dataclass(frozen=True, slots=True)
class _Part:
    """A sum of a pass: its values in workgroup memory, and its totals in registers."""

    found: TileSum
    values: Operand
    totals: RegisterTile


@final
class SumShader(_Remade):
    """Builds the shader of a pass of sums, which share the tiles of products."""

    def __init__(
        self,
        task: Task,
        found: SumPass,
        tiling: FlashTiling,
        chunks: Chunks | None = None,
        *,
        whole: bool,
    ) -> None:
        """Declare the tiles; with chunks, the pass stores them."""
        self.found = found
        tiles = found.tiles
        keys = sums_need_whole_keys(tiles, found.sums)
        wide = wide_in_pass(found)
        if chunks:
            wide.add(chunks.name)
        super().__init__(task, tiles, tiling, wide, whole=whole, whole_keys=keys)
        if chunks:
            self.chunks = ChunkPlace.of(self.builder, chunks, written=True)
        self.outer = found.outer
        self.weights = Weights(self.builder, self.rows, tiling.weights, self.key_index)
        self.parts = [self._part(each) for each in found.sums]
        self.name_places()

    def _part(self, found: TileSum) -> _Part:
        tiling, column = self.tiling.values, found.column
        sums = weighted_values(found.value, self.key_index, column, self.row_index)
        values = self.operand("v", found.value, column, sums.over, tiling)
        totals = RegisterTile(self.builder, tiling, sums, self.weights, values, "acc")
        return _Part(found, values, totals)

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        t_, columns = self.tiling, [each.found.column for each in self.parts]
        self.place(columns, self._bounds())
        if self.chunks:
            self.begin, self.end = self.chunks.part_of(
                self.builder, self.body, (self.begin, self.end)
            )
        self.body += [t.Blank(), *self.put()]
        for each in self.parts:
            each.values.origin = self.tile_column
            each.totals.put(self.column, self.row)
            self.body += each.totals.declare()
        self.body += [t.Blank(), *self._loops(), t.Blank()]
        for each in self.parts:
            self.body += self._finish(each)
        summary = (
            f"one workgroup per {t_.queries} rows and {t_.columns} columns, "
            f"{t_.keys} keys at a time."
        )
        name = "_".join(each.found.finish.name for each in self.parts)
        return self.finished_shader(columns, name, summary)

    def _bounds(self) -> KeyBounds:
        """Return the bounds that the sums' mask sets to the keys of a row.

        All sums of a pass have one mask.  Of these, one with finite masked scores is taken, if
        there is one: it skips less (`KeyBounds.needs_keys`).
        """
        masks = [mask_of(each.weight) for each in self.found.sums]
        mask = next((each for each in masks if each and each[-1]), masks[0])
        return KeyBounds.of_mask(
            mask, self.row_index, self.key_index, is_turned=self.found.is_turned
        )

    def _loops(self) -> list[t.Stmt]:
        """Write the loops over the outer indices, and in them that over the keys."""
        s = self.builder
        counters = {index: t.Ident(s.name(index.name)) for index in self.outer}
        self.at |= counters
        first, *others = (
            self.function("weight", each.found.weight, "A weight.")
            for each in self.parts
        )
        body: list[t.Stmt] = self.declare_rows()
        for each in self.parts:
            body += [*each.values.place(self.at), *each.values.declare()]
        body += [t.Blank(), self.over_keys(self._turn(first, others))]
        # The loops over the outer indices, such as heads that share keys, are around that.
        for index, counter in reversed(counters.items()):
            body = [t.count_up(counter.name, 0, s.extent(index.extent), 1, *body)]
        return body

    def _turn(self, first: TileFunction, others: list[TileFunction]) -> list[t.Stmt]:
        """Compute the tiles of some keys, and add their weights times the values.

        The sums take the tile of weights in workgroup memory one after the other.
        """
        applied, weights = self.applied_to_all(first, others)
        # The first sum's values are loaded while weights are computed: where vectors are whole
        # no tensor is empty, and a load inside of an `if` is slower.
        first_part = self.parts[0]
        fetched = first_part.values.fetch(self.first)
        if not self.whole:
            fetched = _where(self._reaches((first_part,)), fetched)
        body = [*self.multiplied(), *fetched, *applied]
        rows = [self.tile_rows(), *weights]
        if self.chunks:
            body += [t.Blank(), *self._stores(self.chunks, rows)]
        for each, own in zip(self.parts, rows, strict=True):
            added = [] if each is self.parts[0] else each.values.fetch(self.first)
            added += self.add_values(own, self.weights, each.values, each.totals)
            body += [t.Blank(), *_where(self._reaches((each,)), added)]
        return body

    def _stores(
        self, chunks: ChunkPlace, rows: Sequence[Sequence[Sequence[t.Ident]]]
    ) -> list[t.Stmt]:
        """Store the weights of one of the sums, which are the gradients of the scores.

        Workgroups of the same rows have the same weights, and different columns of values:
        that of the first columns stores them.
        """
        s, body, stored = self.builder, list[t.Stmt](), rows[chunks.chunks.number]
        vectors = (v for row in stored for v in row)
        places = self.products[0].sums.results()
        for value, (i, columns, _) in zip(vectors, places, strict=True):
            body += chunks.store(s, self.tile_row + i, self.first + columns[0], value)
        return [t.If(self.tile_column.equals(0), (*body,))]

    def needed(self, number: int) -> t.Expr | None:
        """Return the condition that a workgroup needs product `number`; None if all need it.

        It does if it has columns of a sum whose weights use the product.
        """
        used = product(number)
        return self._reaches([x for x in self.parts if used in walk(x.found.weight)])

    def _reaches(self, parts: Sequence[_Part]) -> t.Expr | None:
        """Return the condition that some sums have columns in this workgroup; None if always.

        Workgroups are as many as the widest sum has tiles of columns; narrower sums have none
        in the last of them.
        """
        extents = dict.fromkeys(each.found.column.extent for each in self.parts)
        own = dict.fromkeys(each.found.column.extent for each in parts)
        if len(own) == len(extents):
            return None
        ends = (self.tile_column < self.builder.extent(extent) for extent in own)
        return t.any_of(*ends)

    def _finish(self, part: _Part) -> list[t.Stmt]:
        """Do a stage's steps with every sum."""
        finish, column, chunks = part.found.finish, part.found.column, self.chunks
        wide = self.whole and finish.domain[-1] == column
        first = {"is_first": "bool"} if chunks else {}

        def sums(given: tuple[t.Ident, ...]) -> Mapping[str, Value]:
            *others, total = given
            names = [IS_FIRST.name for _ in others] + [SUM.name]
            values = [*map(Value, others), Value(total, wide=wide)]
            return dict(zip(names, values, strict=True))

        name = self.declare_steps(
            "finish",
            added(finish) if chunks else finish,
            (self.row_index, column),
            "What becomes of a sum, or of four neighbouring ones.",
            {**first, "weighted": wgsl_type(Scalar.F32, LANES if wide else 1)},
            sums,
            column if wide else None,
        )
        beside = (chunks.is_first,) if chunks else ()
        return self.finished(name, finish.domain, column, part.totals, lambda _: beside)
