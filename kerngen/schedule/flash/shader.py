"""The shader of strategy `flash`.

A workgroup has a tile of queries, and goes over the keys.  Each turn computes the scores
of some keys in registers, as `gemm` does; raises the largest score of each row, and scales
what is there to it; then adds the weights times the values.  The weights go through
workgroup memory, as each invocation needs those of its rows for all keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

from kerngen.ir.nodes import Binary, Expr, Index, LocalValue
from kerngen.ir.staging.stages import Stage
from kerngen.ir.types import F32_MAX, Scalar
from kerngen.plan.size import Size, ceil_div, product_of
from kerngen.schedule.contraction import LEFT, RIGHT, Contraction, tile_axis
from kerngen.schedule.flash.attention import DOT, Attention
from kerngen.schedule.flash.key_bounds import KeyBounds
from kerngen.schedule.flash.scale import row_values, share, sum_values
from kerngen.schedule.flash.tiling import FlashTiling
from kerngen.schedule.gemm.operand import BANKS, Operand
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.gemm.tiling import VECTOR, Tiling
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import infinity
from kerngen.schedule.lowering.steps import tensors_in_runs, vector_tensors, write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.per_element import linear_group, unravel
from kerngen.schedule.program import Shader
from kerngen.schedule.sizes import domain_size, extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

_BYTES = 16


def weighted_values(found: Attention) -> Contraction:
    """Return the product of weights, which no tensor has, and values."""
    left, right = LocalValue(LEFT, Scalar.F32), LocalValue(RIGHT, Scalar.F32)
    term = Binary("*", left, right, Scalar.F32)
    over = (found.key,)
    return Contraction("sum", over, left, found.value, term, found.column, found.row)


def wide_tensors(found: Attention) -> set[str]:
    """Return the tensors that are read or written in vectors."""
    product, over = found.product, found.product.last
    names: set[str] = set()
    for factor, own, last in (
        (product.left, found.row, over),
        (product.right, found.key, over),
        (found.value, found.column, found.key),
    ):
        names |= tensors_in_runs((factor,), tile_axis(factor, last, own))
    names |= tensors_in_runs((found.score,), found.key)
    values = tuple(step.value for step in found.finish.steps)
    return names | vector_tensors(found.finish, values, found.column)


@final
@dataclass
class Weights:
    """The tile of weights in workgroup memory: for each key, vectors of four rows."""

    builder: ShaderBuilder
    tiling: Tiling
    lines: int
    key: Index
    name: str = "w"

    def __post_init__(self) -> None:
        """Declare the tile."""
        self.blocks = self.tiling.micro_m // VECTOR
        self.across = self.tiling.rows
        length = self.blocks * self.across
        type_ = f"array<array<vec4f, {length}>, {self.lines}>"
        size = _BYTES * length * self.lines
        self._tile = self.builder.workgroup_array("weight_tile", type_, size)

    @property
    def counter(self) -> str:
        """What counts the keys."""
        return self.key.name

    def tile(self, buffer: t.Expr | None) -> t.Expr:
        """Return the tile."""
        del buffer
        return self._tile

    def vector_of(self, line: t.Expr, block: int, at: t.Expr, term: int) -> t.Expr:
        """Return the weights of four rows, of a line of the tile."""
        return self.place(line, block, at, t.u32(term // VECTOR % self._turn))

    def place(self, line: t.Expr, block: int, at: t.Expr, turn: t.Expr) -> t.Expr:
        """Return the place of a vector in a line.

        Neighbouring lanes store to lines below each other: without an exchange of places
        they would meet in few banks of workgroup memory.
        """
        if turn != t.ZERO:
            at = t.Binary("^", at, turn)
        return line[at + block * self.across]

    @property
    def _turn(self) -> int:
        return min(self.across, BANKS)

    def own(self, line: t.Expr, column: t.Expr, row: t.Expr, block: int) -> t.Expr:
        """Return where an invocation puts a vector of what its column has."""
        return self.place(self._tile[line], block, row, column % self._turn)


@final
@dataclass
class FlashShader:
    """Writes one shader; what is `whole` needs no care at the ends of vectors.

    `task` is of all stages together.
    """

    task: Task
    found: Attention
    tiling: FlashTiling
    whole: bool
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        found, self.rows = self.found, self.tiling.scores
        self.wide = self.whole and found.finish.domain[-1] == found.column
        lanes = dict.fromkeys(wide_tensors(found), LANES) if self.whole else {}
        self.builder = s = ShaderBuilder(self.task, lanes)
        product, scores, values = found.product, self.rows, self.tiling.values
        self.query = self._operand("q", product.left, found.row, product.over, scores)
        self.keys = self._operand("k", product.right, found.key, product.over, scores)
        sums = weighted_values(found)
        self.values = self._operand("v", found.value, found.column, sums.over, values)
        self.weights = Weights(s, scores, self.tiling.weights, found.key)
        self.scores = RegisterTile(s, scores, product, self.query, self.keys, "score")
        self.sums = RegisterTile(s, values, sums, self.weights, self.values, "acc")
        blocks = range(scores.micro_m // VECTOR)
        self.top = [t.Ident(s.fresh(f"top_{b}")) for b in blocks]
        self.total = [t.Ident(s.fresh(f"total_{b}")) for b in blocks]
        self.column, self.row = (t.Ident(s.fresh(n)) for n in ("column", "row"))
        self.first = t.Ident(s.fresh("first_key"))
        self.at: dict[Index, t.Expr] = {}

    def _operand(
        self,
        name: str,
        factor: Expr,
        own: Index,
        over: tuple[Index, ...],
        tiling: Tiling,
    ) -> Operand:
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
        )

    def shader(self) -> Shader:
        """Return the whole shader."""
        t_, key = self.tiling, extent_size(self.found.key.extent)
        self._place()
        self.body += [t.Blank(), *self._declare()]
        self.body += [t.Blank(), self._loop()]
        self.body += [t.Blank(), *self._join_totals()]
        self.body += [t.Blank(), *self._finish()]
        over = domain_size(self.found.product.over)
        inner = ceil_div(over, t_.terms) + (t_.keys // t_.weights + 1)
        return self.builder.finish(
            self.body,
            groups=self._tiles(),
            workgroup_size=self.rows.invocations,
            summary=(
                f"one workgroup per {t_.queries} rows and {t_.columns} columns, "
                f"{t_.keys} keys at a time."
            ),
            variant="" if self.whole else "edge",
            terms=over if len(self.found.product.over) > 1 else product_of(()) * 0,
            trips=ceil_div(key, t_.keys) * inner,
        )

    def _tiles(self) -> Size:
        rows, columns = self._tiled_axes()
        return domain_size(self.found.batch) * rows * columns

    def _tiled_axes(self) -> tuple[Size, Size]:
        t_, found = self.tiling, self.found
        return (
            ceil_div(extent_size(found.row.extent), t_.queries),
            ceil_div(extent_size(found.column.extent), t_.columns),
        )

    # Where this workgroup works

    def _let(self, wanted: str, value: t.Expr) -> t.Ident:
        name = t.Ident(self.builder.fresh(wanted))
        self.body.append(t.Let(name.name, value))
        return name

    def _place(self) -> None:
        """Name the batch indices, the tile's first row and column, and its keys."""
        s, found = self.builder, self.found
        group = self._let("group", linear_group(s))
        tile_rows, tile_columns = self._tiled_axes()
        rows = self._let("tile_rows", to_wgsl(tile_rows, s))
        columns = self._let("tile_columns", to_wgsl(tile_columns, s))
        tiles = s.size(found.batch) * rows * columns
        self.body.append(t.If(group >= tiles, (t.Return(),)))
        self.at = unravel(s, self.body, found.batch, group // columns // rows)
        # The last rows first: under a causal mask they have the most keys.
        number = t.Binary("-", t.Binary("-", rows, t.ONE), group // columns % rows)
        self.query.origin = self._let("tile_row", number * self.tiling.queries)
        self.values.origin = self._let(
            "tile_column", group % columns * self.tiling.columns
        )
        bounds = KeyBounds.of(found.score, found.row, found.key)
        self.bounded = bool(bounds.bounds)
        last = t.call(
            "min",
            self.query.origin + self.tiling.queries,
            s.extent(found.row.extent),
        )
        ends = self.query.origin, t.Binary("-", last, t.ONE)
        self.begin, self.end = bounds.write(s, self.body, ends, self.tiling.keys)

    def _declare(self) -> list[t.Stmt]:
        column, row = self.scores.own_place()
        self.share = self._let("share", share(self.builder, self.found.key.extent))
        body: list[t.Stmt] = [
            t.Let(self.column.name, column),
            t.Let(self.row.name, row),
        ]
        self.scores.put(self.column, self.row)
        self.sums.put(self.column, self.row)
        body += [*self.query.place(self.at), *self.values.place(self.at)]
        body += [*self.query.declare(), *self.values.declare()]
        body += [t.Blank(), *self.sums.declare()]
        lowest = t.call("vec4f", t.Literal(repr(-F32_MAX)))
        for top, total in zip(self.top, self.total, strict=True):
            body += [t.Var(top.name, lowest), t.Var(total.name, None, "vec4f")]
        return body

    # The pass over the keys

    def _loop(self) -> t.Stmt:
        self.keys.origin = self.first
        body = [
            *self.keys.place(self.at),
            *self.keys.declare(),
            *self.scores.declare(in_loop=True),
            *self._products(),
            t.Blank(),
            *self.values.fetch(self.first),
            *self._score(),
            t.Blank(),
            *self._rescale(),
            t.Blank(),
            *self._add_values(),
        ]
        return t.count_up(
            self.first.name, self.begin, self.end, self.tiling.keys, *body
        )

    def _products(self) -> list[t.Stmt]:
        """Write the loop over the terms of the scores, as that of `gemm`."""
        s, operands = self.builder, (self.query, self.keys)
        first, following = (t.Ident(s.fresh(n)) for n in ("first", "following"))
        end, terms = s.size(self.found.product.over), self.tiling.terms
        next_: t.Expr = first + terms
        if self.whole:
            next_ = t.call("min", next_, t.Binary("-", end, t.u32(terms)))
        is_product = self.found.product.is_product
        left = None if self.whole or is_product else t.Binary("-", end, first)
        clears = is_product and not self.whole
        turn = [
            *self._staged(operands, first, end, terms, clears=clears),
            t.BARRIER,
            t.Let(following.name, next_),
            *(stmt for x in operands for stmt in x.fetch(following)),
            *(self.scores.accumulate(p, None, left) for p in range(terms)),
            t.BARRIER,
        ]
        begin = [stmt for x in operands for stmt in x.fetch(t.ZERO)]
        if not self.whole:
            begin = [t.If(t.Binary(">", end, t.ZERO), (*begin,))]
        return [*begin, t.count_up(first.name, 0, end, terms, *turn)]

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

    def _score(self) -> list[t.Stmt]:
        """Turn products into scores, each by the function `score`."""
        name = self._declare_score()
        body: list[t.Stmt] = []
        batch = [self.at[index] for index in self.found.batch]
        for i, columns, product in self.scores.results():
            row = self.query.origin + i
            places = [self.first + j for j in columns]
            if self.whole:
                value = t.call(name, *batch, row, places[0], product)
            else:
                parts = zip(places, COMPONENTS, strict=True)
                value = t.Call(
                    "vec4f",
                    tuple(
                        t.call(name, *batch, row, j, t.Member(product, c))
                        for j, c in parts
                    ),
                )
            body.append(t.Assign(product, value))
        return body

    def _declare_score(self) -> str:
        s, found = self.builder, self.found
        lanes = LANES if self.whole else 1
        type_ = wgsl_type(Scalar.F32, lanes)
        name, product = s.fresh("score"), t.Ident(s.fresh("product"))
        indices = (*found.batch, found.row, found.key)
        named = {index: t.Ident(s.name(index.name)) for index in indices}
        lowest = infinity(s, negative=True)
        if self.whole:
            lowest = t.call(type_, lowest)
        key, row = named[found.key], t.Ident(s.fresh("nearest_row"))
        last = t.Binary("-", s.extent(found.row.extent), t.ONE)
        body: list[t.Stmt] = [
            t.If(key >= s.extent(found.key.extent), (t.Return(lowest),)),
            t.Let(row.name, t.call("min", named[found.row], last)),
        ]
        at: dict[Index, t.Expr] = {**named, found.row: row}
        vector = found.key if self.whole else None
        lowerer = Lowerer(s, at, body, vector=vector, label=name)
        lowerer.locals[DOT.name] = Value(product, wide=self.whole)
        value = lowerer.lower(found.score)
        result = lowerer.widen(value, Scalar.F32) if self.whole else value.expr
        body.append(t.Return(result))
        inputs = (*((x.name, "u32") for x in named.values()), (product.name, type_))
        many = "four neighbouring keys" if self.whole else "a key"
        about = (
            f"The score of {many}, by its product; beyond the last key there is none."
        )
        function = wgsl.Function(name, inputs, type_, tuple(body), about)
        s.declare(f"function {name}", function)
        return name

    def _rescale(self) -> list[t.Stmt]:
        """Raise the largest score of each row, and turn scores into weights."""
        s = self.builder
        new = [t.Ident(s.fresh(f"new_{b}")) for b in range(len(self.top))]
        own = [t.Ident(s.fresh(f"own_{b}")) for b in range(len(self.top))]
        body: list[t.Stmt] = []
        for b, name in enumerate(own):
            parts = tuple(self._across("max", self.scores.row_of(r)) for r in _of(b))
            body.append(t.Let(name.name, t.Call("vec4f", parts)))
        body += self._shared(own, new, "max")
        for b, (top, total) in enumerate(zip(self.top, self.total, strict=True)):
            raised = t.call("max", top, new[b])
            scale = t.Ident(s.fresh(f"scale_{b}"))
            fall = t.call("exp", t.Binary("-", top, new[b]))
            body += [t.Assign(new[b], raised), t.Let(scale.name, fall)]
            body.append(t.Assign(top, new[b]))
            for r in _of(b):
                component = COMPONENTS[r % VECTOR]
                for v in self.scores.row_of(r):
                    less = t.Binary("-", v, t.Member(top, component))
                    weight = t.call("exp", less) * self.share
                    body.append(t.Assign(v, weight))
                for v in self.sums.row_of(r):
                    body.append(t.Assign(v, t.Member(scale, component), "*="))
            parts = tuple(self._across("sum", self.scores.row_of(r)) for r in _of(b))
            added = t.Binary("+", total * scale, t.Call("vec4f", parts))
            body.append(t.Assign(total, added))
        return body

    def _across(self, kind: str, vectors: list[t.Ident]) -> t.Expr:
        """Return the largest component of vectors, or the sum of all."""
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

    def _shared(
        self, own: list[t.Ident], joined: list[t.Ident], kind: str
    ) -> list[t.Stmt]:
        """Join what the invocations of a row have, in a fixed order."""
        weights, body = self.weights, list[t.Stmt]()
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

    def _add_values(self) -> list[t.Stmt]:
        """Add the weights times the values, some keys at a time."""
        s, turns = self.builder, self.tiling.turns
        body: list[t.Stmt] = []
        for block in range(self.rows.micro_n // VECTOR):
            turn = t.Ident(s.fresh("turn"))
            start = block * turns
            inner = self._add_some(block, turn, start)
            keys = self.first + turn * self.tiling.weights
            condition = t.all_of(turn < t.u32(start + turns), keys < self.end)
            step = t.Assign(turn, t.ONE, "+=")
            body.append(t.For(turn.name, t.u32(start), condition, step, tuple(inner)))
        return body

    def _add_some(self, block: int, turn: t.Ident, start: int) -> list[t.Stmt]:
        s, count = self.builder, self.tiling.weights
        key, following = (t.Ident(s.fresh(n)) for n in ("key", "next_key"))
        extent = s.extent(self.found.key.extent)
        next_: t.Expr = key + count
        if self.whole:
            next_ = t.call("min", next_, t.Binary("-", extent, t.u32(count)))
        # Behind the last key that counts may be anything: it has no weight.
        clears = self.bounded if self.whole else True
        clears = clears and not self.values.turns_over
        owner = (self.column // (count // VECTOR)).equals(_less(turn, start))
        return [
            t.Let(key.name, self.first + turn * count),
            t.If(owner, tuple(self._keep(block))),
            *self._staged((self.values,), key, self.end, count, clears=clears),
            t.BARRIER,
            t.Let(following.name, next_),
            *self.values.fetch(following),
            *(self.sums.accumulate(p, None, None) for p in range(count)),
            t.BARRIER,
        ]

    def _keep(self, block: int) -> list[t.Stmt]:
        """Store the weights of a block of keys to workgroup memory."""
        weights, body = self.weights, list[t.Stmt]()
        column = self.column % (self.tiling.weights // VECTOR)
        for n, component in enumerate(COMPONENTS):
            for b in range(len(self.top)):
                of_rows = (self.scores.row_of(r)[block] for r in _of(b))
                parts = tuple(t.Member(v, component) for v in of_rows)
                line = column * VECTOR + n
                place = weights.own(line, column, self.row, b)
                body.append(t.Assign(place, t.Call("vec4f", parts)))
        return body

    # The result

    def _join_totals(self) -> list[t.Stmt]:
        """Add the totals of all invocations of a row."""
        s = self.builder
        self.joined = [t.Ident(s.fresh(f"whole_{b}")) for b in range(len(self.total))]
        return self._shared(self.total, self.joined, "sum")

    def _finish(self) -> list[t.Stmt]:
        """Hand every sum to the function that does the last stage's steps."""
        found, body = self.found, list[t.Stmt]()
        finish = self._declare_finish()
        number = -1
        for i, columns, total in self.sums.results():
            number += 1
            r = number // len(self.sums.row_of(0))
            b, component = divmod(r, VECTOR)
            row = (
                t.Member(self.top[b], COMPONENTS[component]),
                t.Member(self.joined[b], COMPONENTS[component]),
            )
            lanes: list[tuple[t.Expr, t.Expr]] = [(columns[0], total)]
            if not self.wide:
                parts = zip(columns, COMPONENTS, strict=True)
                lanes = [(j, t.Member(total, c)) for j, c in parts]
            for j, value in lanes:
                at = {
                    **self.at,
                    found.row: self.query.origin + i,
                    found.column: self.values.origin + j,
                }
                places = (at[index] for index in found.finish.domain)
                call = t.call(finish, *places, *row, value)
                body.append(t.Evaluate(call))
        return [*body, *self._finish_rows()]

    def _declare_finish(self) -> str:
        found = self.found
        many = "four neighbouring sums of a row" if self.wide else "one sum"
        about = f"What becomes of {many}."
        ends = (found.row, found.column)
        return self._declare_steps("finish", found.finish, ends, about, sums=True)

    def _finish_rows(self) -> list[t.Stmt]:
        """Store what is kept of each row, by one invocation of it."""
        found, body = self.found, list[t.Stmt]()
        for domain, write in found.beside:
            stage = Stage(write.tensor.name, domain, (write,))
            about = f"Stores {write.tensor.name} of a row."
            name = self._declare_steps(
                f"keep_{write.tensor.name}", stage, (found.row,), about, sums=False
            )
            for r in range(self.rows.micro_m):
                b, component = divmod(r, VECTOR)
                row = self.query.origin + self.scores.tile_row(r)
                at = {**self.at, found.row: row}
                of_row = (
                    t.Member(self.top[b], COMPONENTS[component]),
                    t.Member(self.joined[b], COMPONENTS[component]),
                )
                call = t.call(name, *(at[index] for index in domain), *of_row)
                body.append(t.Evaluate(call))
        if not body:
            return []
        first = t.all_of(self.column.equals(0), self.values.origin.equals(0))
        return [t.If(first, tuple(body))]

    def _declare_steps(
        self,
        wanted: str,
        stage: Stage,
        ends: tuple[Index, ...],
        about: str,
        *,
        sums: bool,
    ) -> str:
        """Declare the function that does steps for one element, or for four."""
        s = self.builder
        wide = self.wide and sums
        name = s.fresh(wanted)
        at = {index: t.Ident(s.name(index.name)) for index in stage.domain}
        outside = (at[index] >= s.extent(index.extent) for index in ends)
        body: list[t.Stmt] = [t.If(t.any_of(*outside), (t.Return(),))]
        inputs = [(x.name, "u32") for x in at.values()]
        lowerer = Lowerer(s, {**at}, body, vector=self.found.column if wide else None)
        top, whole = (t.Ident(s.fresh(n)) for n in ("row_top", "row_total"))
        inputs += [(top.name, "f32"), (whole.name, "f32")]
        keys = self.found.key.extent
        lowerer.locals.update(row_values(s, keys, (top, whole)))
        if sums:
            value = t.Ident(s.fresh("weighted"))
            inputs.append((value.name, wgsl_type(Scalar.F32, LANES if wide else 1)))
            weighted = Value(value, wide=wide)
            lowerer.locals.update(sum_values(s, keys, weighted, whole))
        write_steps(replace(lowerer, label=stage.name), stage)
        function = wgsl.Function(name, tuple(inputs), "", tuple(body), about)
        s.declare(f"function {name}", function)
        return name


def _of(block: int) -> range:
    """Return the rows of a block of four."""
    return range(block * VECTOR, (block + 1) * VECTOR)


def _less(value: t.Expr, by: int) -> t.Expr:
    return t.Binary("-", value, t.u32(by)) if by else value
