"""The common parts of the shaders of strategy `flash`: passes over keys, in tiles.

A workgroup has a tile of rows, and goes over the keys.  Each turn computes the products of
its rows with some keys in registers, as `gemm` does, and makes weights of them.  The weights
go through workgroup memory to be multiplied with values, as each invocation needs those of
its rows for all keys:

    for (var first_key = 0u; first_key < u.t; first_key += 64u) {
        for (var first = 0u; first < u.d; first += 16u) { ... }    // products: `multiply`
        score_0_0 = score(n, g, i, j, score_0_0);                  // a function of them
        ...                                                        // weights: `OnlineRows`
        for (var turn = 0u; turn < 2u; turn += 1u) { ... }         // times values: `add_values`
    }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, final

from kerngen.ir.nodes import Binary, Expr, Index, LocalValue
from kerngen.ir.staging.stages import Stage
from kerngen.ir.types import Scalar
from kerngen.plan.size import Size, ceil_div, lift, maximum
from kerngen.schedule.contraction import LEFT, RIGHT, Contraction, tile_axis
from kerngen.schedule.flash.chunk_place import ChunkPlace
from kerngen.schedule.flash.key_bounds import KeyBounds
from kerngen.schedule.flash.tile_functions import TileFunctions
from kerngen.schedule.flash.tiling import FlashTiling
from kerngen.schedule.flash.weights import Weights
from kerngen.schedule.gemm.operand import Operand
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.gemm.tiling import VECTOR, Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.linear_bounds import later_rows_have_more
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.steps import tensors_in_runs, vector_tensors, write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.sizes import domain_size, extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

Rows: TypeAlias = Sequence[Sequence[t.Ident]]
"""An invocation's part of a tile: for each of its rows, the vectors of four keys."""


def weighted_values(value: Expr, key: Index, column: Index, row: Index) -> Contraction:
    """Return the contraction of weights, which are in no tensor, and values over the keys."""
    left, right = LocalValue(LEFT, Scalar.F32), LocalValue(RIGHT, Scalar.F32)
    term = Binary("*", left, right, Scalar.F32)
    return Contraction("sum", (key,), left, value, term, column, row)


def in_vectors(products: Sequence[Contraction], row: Index, key: Index) -> set[str]:
    """Return the names of the tensors that the factors of products read as vectors of four."""
    names: set[str] = set()
    for each in products:
        for factor, own in ((each.left, row), (each.right, key)):
            names |= tensors_in_runs((factor,), tile_axis(factor, each.last, own))
    return names


def keys_in_vectors(
    products: Sequence[Contraction],
    values: Sequence[tuple[Expr, Index]],
    key: Index,
) -> bool:
    """Return whether keys are read in vectors of four, so that there must be whole vectors.

    `values` have their columns.  As a rule memory runs along the terms and the columns:

        k[j, p], v[j, c]    vectors of terms and of columns: any number of keys
        k[p, j]             vectors of four keys
    """
    of_products = (tile_axis(each.right, each.last, key) for each in products)
    of_values = (tile_axis(value, key, column) for value, column in values)
    return key in {*of_products, *of_values}


def values_in_vectors(
    value: Expr, key: Index, column: Index, finish: Stage
) -> set[str]:
    """Return the names of the tensors that value and last stage access in vectors of four."""
    names = tensors_in_runs((value,), tile_axis(value, key, column))
    ends = tuple(step.value for step in finish.steps)
    return names | vector_tensors(finish, ends, column)


@final
@dataclass(frozen=True, slots=True)
class TileProduct:
    """A product of the rows and keys of a tile: its operands, and the sums in registers."""

    found: Contraction
    rows: Operand
    keys: Operand
    sums: RegisterTile


class KeyPass:
    """Builds a shader that passes over the keys; with `whole` it reads vectors of four only.

    - `task`: has the steps of all stages that the pass runs
    - `row_index`, `key_index`: the indices of a tile of products
    - `batch`: the other indices of the result; each of their values has keys of its own
    - `outer`: indices that are summed over, in loops around the loop over the keys
    - `whole_keys`: whether keys are read in vectors of four too, and come in whole turns of
      `add_values`; else there may be any number of them
    - `summed`: the index that weights times values are summed over: that of the keys
    - `begin`, `end`: the range of keys of the workgroup; `bounded`: whether a mask bounds it
    - `chunks`: the place in a chunk, where gradients of scores are stored in chunks
    - `result_row`, `first_row`: the index of the result's rows, and the tile's first row
    """

    def __init__(
        self,
        task: Task,
        tiling: FlashTiling,
        ends: tuple[Index, Index],
        batch: tuple[Index, ...],
        wide: set[str],
        *,
        whole: bool,
        whole_keys: bool,
        summed: Index | None = None,
    ) -> None:
        """Begin a shader of a row and a key index; `wide` are bound as vectors.

        Weights times values are summed over the key index, or over `summed`.
        """
        self.task = task
        self.tiling = tiling
        self.row_index, self.key_index = ends
        self.batch = batch
        self.outer: tuple[Index, ...] = ()
        self.whole = whole
        self.whole_keys = whole and whole_keys
        self.summed = summed or self.key_index
        self.rows = tiling.scores
        self.builder = ShaderBuilder(task, dict.fromkeys(wide, LANES) if whole else {})
        self.body: list[t.Stmt] = []
        self.at: dict[Index, t.Expr] = {}
        self.tile_row: t.Expr = t.ZERO
        self.tile_column: t.Expr = t.ZERO
        self.begin: t.Expr = t.ZERO
        self.end: t.Expr = t.ZERO
        self.bounded = False
        self.chunks: ChunkPlace | None = None
        self.result_row = self.row_index
        self.first_row: t.Expr = t.ZERO
        self.functions = TileFunctions(self)
        self._shared_tiles: dict[tuple[str, str], t.Expr] = {}

    def name_places(self) -> None:
        """Choose names for an invocation's column and row, and for a turn's first key."""
        s = self.builder
        self.column, self.row = (t.Ident(s.fresh(n)) for n in ("column", "row"))
        self.first = t.Ident(s.fresh("first_key"))

    def operand(
        self,
        name: str,
        factor: Expr,
        own: Index,
        over: tuple[Index, ...],
        tiling: Tiling,
    ) -> Operand:
        """Return the builder of the WGSL that loads `factor` into workgroup memory.

        Operands of the same name and tile type share the array, as they are used one after
        the other.
        """
        is_left = name == "q"
        micro = tiling.micro_m if is_left else tiling.micro_n
        across = tiling.rows if is_left else tiling.columns
        return Operand(
            self.builder,
            factor,
            own,
            over,
            name,
            micro // VECTOR,
            across,
            tiling,
            self.whole,
            tiles=self._shared_tiles,
            clamps=self.whole and not self.whole_keys and over == (self.summed,),
        )

    def operands(self, found: Contraction) -> tuple[Operand, Operand]:
        """Return the operands of a product of rows and keys, in this order."""
        return (
            self.operand("q", found.left, self.row_index, found.over, self.rows),
            self.operand("k", found.right, self.key_index, found.over, self.rows),
        )

    # The tile of this workgroup

    def let(self, wanted: str, value: t.Expr) -> t.Ident:
        """Append a `let` of `value` to the body, named like `wanted`; return its identifier."""
        return self.builder.let(self.body, wanted, value)

    @property
    def row_count(self) -> Size:
        """How many rows all tiles have together."""
        return extent_size(self.row_index.extent)

    def tiled_axes(self, columns: Sequence[Index]) -> tuple[Size, Size]:
        """Return how many tiles there are along rows, and along the widest columns."""
        sizes = [extent_size(column.extent) for column in columns] or [lift(1)]
        return (
            ceil_div(self.row_count, self.tiling.queries),
            ceil_div(reduce(maximum, sizes), self.tiling.columns),
        )

    def tile_count(self, columns: Sequence[Index]) -> Size:
        """Return how many tiles there are, and so workgroups."""
        rows, across = self.tiled_axes(columns)
        return self._head_count * rows * across

    @property
    def _head_count(self) -> Size:
        """How many heads a dispatch has: those of a chunk, or all."""
        return self.chunks.heads if self.chunks else domain_size(self.batch)

    def place_tile(self, columns: Sequence[Index], bounds: KeyBounds) -> None:
        """Emit code that computes a workgroup's tile: batch indices, first row and column.

        Under a mask that gives rows unlike numbers of keys, the tiles of all heads with the most
        keys come first: where one ends, a device begins the next, so that the short ones fill
        up what is left at the end.  Of 32
        heads with 32 tiles each, on 132 multiprocessors, the last end 1 % after an even
        division would, and 14 % where one head came after another.
        """
        s = self.builder
        group = self.let("group", linear_group(s))
        tile_rows, tile_columns = self.tiled_axes(columns)
        rows = self.let("tile_rows", to_wgsl(tile_rows, s))
        across = self.let("tile_columns", to_wgsl(tile_columns, s))
        heads = self.let("tile_heads", to_wgsl(self._head_count, s))
        self.body.append(t.If(group >= heads * rows * across, (t.Return(),)))
        number = group // across
        head, row = number // rows, number % rows
        if any(bound.slope for bound in bounds.bounds):
            head, row = number % heads, number // heads
            if later_rows_have_more(bounds.bounds):
                row = t.Binary("-", t.Binary("-", rows, t.ONE), row)
        if self.chunks:
            head = self.chunks.place(s, self.body, head, heads)
        self.at = unravel(s, self.body, self.batch, head)
        self.tile_row = self.let("tile_row", row * self.tiling.queries)
        self.tile_column = self.let("tile_column", group % across * self.tiling.columns)
        self.first_row = self.tile_row

    def place(self, columns: Sequence[Index], bounds: KeyBounds) -> None:
        """Emit code that computes the workgroup's tile, and the range of keys that it needs.

        `columns` are the columns of all sums; `bounds` bound the keys of the tile's rows.
        """
        s = self.builder
        self.place_tile(columns, bounds)
        self.bounded = bool(bounds.bounds)
        last = t.call(
            "min", self.tile_row + self.tiling.queries, s.extent(self.row_index.extent)
        )
        ends = self.tile_row, t.Binary("-", last, t.ONE)
        self.begin, self.end = bounds.write(s, self.body, ends, self.tiling.keys)

    # Products

    def multiply(
        self, product: TileProduct, begin: t.Expr = t.ZERO, end: t.Expr | None = None
    ) -> list[t.Stmt]:
        """Return the loop over a product's terms, as in `gemm`, from `begin` to `end`.

        By default it goes over all terms.  `gemm/shader.py` shows the WGSL of a turn.
        """
        s, operands = self.builder, (product.rows, product.keys)
        first, following = (t.Ident(s.fresh(n)) for n in ("first", "following"))
        last, terms = s.size(product.found.over), self.tiling.terms
        end = end or last
        next_: t.Expr = first + terms
        clamps = any(operand.clamps for operand in operands)
        if self.whole and not clamps:
            # The last turn loads its own terms again, which nothing uses: a load inside of
            # an `if` is slower (docs/decisions/0011).
            next_ = t.call("min", next_, t.Binary("-", last, t.u32(terms)))
        is_product = product.found.is_product
        left = None if self.whole or is_product else t.Binary("-", end, first)
        clears = is_product and (clamps or not self.whole)
        turn = [
            *self._staged(operands, first, end, terms, clears=clears),
            t.BARRIER,
            t.Let(following.name, next_),
            *(stmt for x in operands for stmt in x.fetch(following)),
            *(product.sums.accumulate(p, None, left) for p in range(terms)),
            t.BARRIER,
        ]
        loaded = [stmt for x in operands for stmt in x.fetch(begin)]
        if not self.whole or begin != t.ZERO:
            # Of a mask's range nothing may be left, behind the last term.
            loaded = [t.If(t.Binary(">", end, begin), (*loaded,))]
        return [*loaded, t.count_up(first.name, begin, end, terms, *turn)]

    def _staged(
        self,
        operands: tuple[Operand, ...],
        first: t.Expr,
        end: t.Expr,
        terms: int,
        *,
        clears: bool,
    ) -> list[t.Stmt]:
        """Store the terms from `first` on to the tiles; terms beyond the end are 0."""
        stores = [stmt for operand in operands for stmt in operand.stage(None)]
        if not clears:
            return stores
        left = t.Ident(self.builder.fresh("left"))
        cleared = [stmt for operand in operands for stmt in operand.clear(left)]
        named = t.Let(left.name, t.Binary("-", end, first))
        return [t.If(first + terms > end, (named, *cleared)), *stores]

    # Rows

    def across(self, kind: str, vectors: Sequence[t.Ident]) -> t.Expr:
        """Return the sum of all components of the vectors ("sum"), or the largest one."""
        if kind == "sum":
            one: t.Expr = vectors[0]
            for vector in vectors[1:]:
                one = one + vector
            return t.call("dot", one, t.call("vec4f", t.Literal("1.0")))
        joined: t.Expr = vectors[0]
        for vector in vectors[1:]:
            joined = t.call("max", joined, vector)
        first, second = (t.Member(joined, c) for c in ("xy", "zw"))
        pair = t.call("max", first, second)
        return t.call("max", t.Member(pair, "x"), t.Member(pair, "y"))

    def shared(
        self,
        weights: Weights,
        own: Sequence[t.Ident],
        joined: Sequence[t.Ident],
        kind: str,
    ) -> list[t.Stmt]:
        """Return statements that join a number of each row over the row's invocations.

        Each stores its vectors of four rows (`own`) to its line of the tile of weights.  After
        a barrier it reads those of all, in a fixed order, into `joined`: their sum or "max".
        """
        body = list[t.Stmt]()
        for b, value in enumerate(own):
            place = weights.own(self.column, self.column, self.row, b)
            body.append(t.Assign(place, value))
        body.append(t.BARRIER)
        for b, name in enumerate(joined):
            for c in range(self.rows.columns):
                found = weights.own(t.u32(c), t.u32(c), self.row, b)
                if c == 0:
                    body.append(t.Var(name.name, found))
                elif kind == "max":
                    body.append(t.Assign(name, t.call("max", name, found)))
                else:
                    body.append(t.Assign(name, found, "+="))
        body.append(t.BARRIER)
        return body

    # Weights times values

    def add_values(
        self, rows: Rows, weights: Weights, values: Operand, sums: RegisterTile
    ) -> list[t.Stmt]:
        """Return loops that add weights times values to `sums`, some keys at a time.

        In each turn, the invocations that have the weights of its keys (`rows`) store them:

            for (var turn = 0u; turn < 2u && first_key + turn * 16u < u.t; turn += 1u) {
                if ((column >> 2u) == turn) { weight_tile[...][...] = vec4f(score_0_0.x, ...); }
                ...                             // v_tile, a barrier, load of the next values
                { acc_0 += w_0.x * v_0; ... }
            }
        """
        s, turns = self.builder, self.tiling.turns
        body: list[t.Stmt] = []
        for block in range(self.rows.micro_n // VECTOR):
            turn = t.Ident(s.fresh("turn"))
            start = block * turns
            count = self.tiling.weights
            key, following = (t.Ident(s.fresh(n)) for n in ("key", "next_key"))
            owner = (self.column // (count // VECTOR)).equals(_less(turn, start))
            inner = [
                t.Let(key.name, self.first + turn * count),
                t.If(owner, tuple(self._keep(rows, weights, block))),
                *self._add_some(key, following, values, sums),
            ]
            keys = self.first + turn * count
            condition = t.all_of(turn < t.u32(start + turns), keys < self.end)
            step = t.Assign(turn, t.ONE, "+=")
            body.append(t.For(turn.name, t.u32(start), condition, step, tuple(inner)))
        return body

    def _add_some(
        self, key: t.Ident, following: t.Ident, values: Operand, sums: RegisterTile
    ) -> list[t.Stmt]:
        s, count = self.builder, self.tiling.weights
        extent = s.extent(self.key_index.extent)
        next_: t.Expr = key + count
        if self.whole_keys:
            next_ = t.call("min", next_, t.Binary("-", extent, t.u32(count)))
        # Keys without weight are cleared, as 0 times infinity is NaN: those that a mask leaves
        # out, and with any number of keys the last one, which is read in their place.
        clears = self.bounded if self.whole_keys else True
        clears = clears and not values.turns_over
        return [
            *self._staged((values,), key, self.end, count, clears=clears),
            t.BARRIER,
            t.Let(following.name, next_),
            *values.fetch(following),
            *(sums.accumulate(p, None, None) for p in range(count)),
            t.BARRIER,
        ]

    def _keep(self, rows: Rows, weights: Weights, block: int) -> list[t.Stmt]:
        """Store the weights of a block of keys to workgroup memory, as vectors of rows."""
        body = list[t.Stmt]()
        column = self.column % (self.tiling.weights // VECTOR)
        for n, component in enumerate(COMPONENTS):
            for b in range(self.rows.micro_m // VECTOR):
                of_rows = (rows[r][block] for r in rows_of(b))
                parts = tuple(t.Member(v, component) for v in of_rows)
                line = column * VECTOR + n
                place = weights.own(line, column, self.row, b)
                body.append(t.Assign(place, t.Call("vec4f", parts)))
        return body

    # The result

    def declare_steps(
        self,
        wanted: str,
        stage: Stage,
        ends: tuple[Index, ...],
        about: str,
        given: Mapping[str, str],
        locals_: Callable[[tuple[t.Ident, ...]], Mapping[str, Value]],
        vector: Index | None = None,
    ) -> str:
        """Declare a WGSL function of a stage's steps for one element or four; return its name.

        It does nothing where one of the indices `ends` is past its axis.  `given` are further
        parameters, with types; `locals_` returns from them the local values that steps use.
        """
        s = self.builder
        name = s.fresh(wanted)
        at = {index: t.Ident(s.name(index.name)) for index in stage.domain}
        outside = (at[index] >= s.extent(index.extent) for index in ends)
        body: list[t.Stmt] = [t.If(t.any_of(*outside), (t.Return(),))]
        lowerer = Lowerer(s, {**at}, body, vector=vector, label=stage.name)
        arguments = tuple(t.Ident(s.fresh(each)) for each in given)
        types = zip(arguments, given.values(), strict=True)
        inputs = [(x.name, "u32") for x in at.values()]
        inputs += [(x.name, type_) for x, type_ in types]
        lowerer.locals.update(locals_(arguments))
        write_steps(lowerer, stage)
        function = wgsl.Function(name, tuple(inputs), "", tuple(body), about)
        s.declare(f"function {name}", function)
        return name

    def finished(
        self,
        finish: str,
        domain: tuple[Index, ...],
        column: Index,
        sums: RegisterTile,
        beside: Callable[[int], tuple[t.Expr, ...]] = lambda _: (),
    ) -> list[t.Stmt]:
        """Return calls of the WGSL function `finish`, which does the last stage's steps.

        There is one for each sum, or for four along `column` if these are stored as a vector.
        `beside` returns further arguments for a row of the invocation.
        """
        body = list[t.Stmt]()
        wide = self.whole and domain[-1] == column
        for number, (i, columns, total) in enumerate(sums.results()):
            r = number // len(sums.row_of(0))
            lanes: list[tuple[t.Expr, t.Expr]] = [(columns[0], total)]
            if not wide:
                parts = zip(columns, COMPONENTS, strict=True)
                lanes = [(j, t.Member(total, c)) for j, c in parts]
            for j, value in lanes:
                at = {
                    **self.at,
                    self.result_row: self.first_row + i,
                    column: self.tile_column + j,
                }
                places = (at[index] for index in domain)
                body.append(t.Evaluate(t.call(finish, *places, *beside(r), value)))
        return body


def rows_of(block: int) -> range:
    """Return the numbers of an invocation's rows in block `block` of four rows."""
    return range(block * VECTOR, (block + 1) * VECTOR)


def _less(value: t.Expr, by: int) -> t.Expr:
    return t.Binary("-", value, t.u32(by)) if by else value
