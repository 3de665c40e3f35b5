"""Strategy `flash` for few queries, as when decoding: many workgroups share the keys.

A workgroup has four rows, and some of the keys: a part.  In each turn its 128 lanes take 64
keys of it, in four steps with a barrier between:

    products    8 lanes share a key, and read 128 bytes of it together   dot_0 += ...
    scores      64 lanes have a key each: its scores of the four rows    scores[own_key] = ...
    weights     the same lanes: its weights, exp(score - largest)        weights[own_key] = ...
    values      a lane has four columns, and the keys of its slice       sum_0 += ...

The values of a turn are read before its first step, so that no lane waits for them later.  A
slice is the lanes that add the same keys, each for its own columns.  Each slice has its own
largest scores: no maximum over all keys of a turn is needed, and slices are joined at the end.

A vector has one component for each of the four rows.  The rows may be of several heads, if those
share their keys.  Each part stores the largest score, the total and the sums of its rows; a
second dispatch joins the parts (`parts_join.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Final, final

from kerngen.ir.nodes import Expr, Index
from kerngen.ir.types import F32_MAX, Scalar
from kerngen.plan.size import ceil_div
from kerngen.plan.tree import Scratch
from kerngen.schedule.contraction import LEFT, RIGHT
from kerngen.schedule.flash.attention import DOT, Attention
from kerngen.schedule.flash.key_split import KEYS, SIZE, KeySplit
from kerngen.schedule.flash.part_place import PartPlace
from kerngen.schedule.flash.parts_join import ENDS, SUMS
from kerngen.schedule.flash.scale import share
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import across, in_pairs, infinity
from kerngen.schedule.lowering.steps import tensors_in_runs
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

RUN: Final = 8
"""How many lanes read a key together: with vectors of four, 128 bytes of it.

With 8 lanes, what is read of the rows serves four keys of each.  With 4, it serves two, which takes
4 to 7 % longer on an H200; 16 need more workgroup memory than WebGPU promises.
"""

OWN: Final = KEYS * RUN // SIZE
"""How many keys a lane reads its part of."""

PITCH: Final = KEYS + 8 // RUN
"""The distance between partial products of a key in workgroup memory, as vectors of four.

Eight lanes side by side write those of `8 // RUN` keys, and read one of eight keys.  With this
pitch neither has bank conflicts: eight vectors have all banks of 4 bytes once.
"""

TURNS: Final = 2
"""How many runs of a key are read before any is added.

When a token is decoded, few workgroups run: waiting for one read at a time takes most of the
time.
"""


@final
@dataclass
class FlashRows:
    """Builds the first shader for few queries; a `whole` variant reads vectors of four.

    `columns` is how many columns of values a workgroup has.  Each of `slices` slices is
    `vectors` lanes, which have four columns each, and takes `slice_keys` keys of a turn.
    """

    task: Task
    found: Attention
    columns: int
    whole: bool
    body: list[t.Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.split = KeySplit(self.found, self.columns)
        lanes = dict.fromkeys(self.wide(), LANES) if self.whole else {}
        self.builder = s = ShaderBuilder(self.task, lanes)
        self.vectors = self.columns // VECTOR
        self.slices = SIZE // self.vectors
        self.slice_keys = KEYS // self.slices
        # Of each key the partial products of `RUN` lanes, at the end the sums of each lane's
        # four rows; of each key its scores and weights; of each slice its largest scores and
        # its totals.
        names = ("products", "scores", "weights", "tops", "totals")
        most = max(PITCH * RUN, VECTOR * SIZE)
        sizes = (most, KEYS, KEYS, self.slices, self.slices)
        self.products, self.scores, self.weights, self.tops, self.totals = (
            s.workgroup_array(name, f"array<vec4f, {size}>", 16 * size)
            for name, size in zip(names, sizes, strict=True)
        )

    def wide(self) -> set[str]:
        """Return the names of the tensors that are bound as vectors."""
        product, found = self.found.product, self.found
        names = tensors_in_runs((product.left,), product.last)
        names |= tensors_in_runs((product.right,), product.last)
        return names | tensors_in_runs((found.value,), found.column)

    def scratch(self) -> tuple[Scratch, ...]:
        """Return the scratch buffers: each part's sums; its largest score and total per row."""
        found = self.found
        rows = domain_size((*found.batch, found.row)) * self.split.parts
        return (
            Scratch(self._sums, rows * extent_size(found.column.extent)),
            Scratch(self._ends, rows * 2),
        )

    @property
    def _sums(self) -> str:
        return self.task.scratch_name(SUMS)

    @property
    def _ends(self) -> str:
        return self.task.scratch_name(ENDS)

    def shader(self) -> DispatchShader:
        """Return the first dispatch, in which each workgroup handles one part of the keys."""
        s = self.builder
        first = t.Ident(s.fresh("first_key"))
        self.place = place = PartPlace(s, self.found, self.split, self.body)
        self.body += self._declare()
        turn = t.Binary("*", t.u32(KEYS), place.parts)
        # Parts take turns: part n has every turn number n, n + parts, ... of the keys.
        start = place.begin + place.part * KEYS
        inner = self._turn(first)
        self.body.append(t.Blank())
        self.body.append(t.count_up(first.name, start, place.end, turn, *inner))
        self.body.append(t.Blank())
        self._leave()
        keys = extent_size(self.found.key.extent)
        over = domain_size(self.found.product.over)
        turns = ceil_div(keys, self.split.parts * KEYS)
        return s.finish(
            self.body,
            groups=self.split.tiles * self.split.parts,
            workgroup_size=SIZE,
            summary="first of two dispatches: four rows and some of the keys.",
            variant="" if self.whole else "edge",
            trips=turns * (ceil_div(over, 4) + 1),
        )

    def _declare(self) -> list[t.Stmt]:
        s = self.builder
        self.share = self.place.let("share", share(s, self.found.key.extent))
        self.top, self.total = (t.Ident(s.fresh(n)) for n in ("top", "total"))
        self.sums = [t.Ident(s.fresh(f"sum_{n}")) for n in range(VECTOR)]
        return [
            t.Var(self.top.name, t.call("vec4f", t.Literal(repr(-F32_MAX)))),
            t.Var(self.total.name, None, "vec4f"),
            *(t.Var(x.name, None, "vec4f") for x in self.sums),
        ]

    # The pass over the keys

    def _turn(self, first: t.Ident) -> list[t.Stmt]:
        """Return a turn of the loop over the keys, which takes `KEYS` of them.

        There is a barrier behind each store to workgroup memory:

            let v_0 = v[...];                                   // `_read_values`
            products[...] = dot_0;                              // `_multiply`
            if (has_key) { scores[own_key] = score; }           // `_score`
            var raised = max(top, scores[...]);                 // of the slice's keys
            let scale = exp(top - raised);
            if (has_key) { weights[own_key] = exp(score - raised) * share; }
            sum_0 *= scale.x;
            total += row_weights;                               // `_add_values`
            sum_0 += row_weights.x * v_0;
        """
        s = self.builder
        raised, scale, own = (t.Ident(s.fresh(n)) for n in ("raised", "scale", "score"))
        read, values = self._read_values(first)
        body = [*read, *self._multiply(first), t.BARRIER, *self._score(first, own)]
        body += [self._store_of_key(self.scores, own), t.BARRIER]
        # The largest scores of the slice's keys, of this turn and of those so far.
        body.append(t.Var(raised.name, self.top))
        body += [
            t.Assign(
                raised, t.call("max", raised, self.scores[self._slice_start() + n])
            )
            for n in range(self.slice_keys)
        ]
        weight = t.call("exp", t.Binary("-", own, raised)) * self.share
        body += [
            t.Let(scale.name, t.call("exp", t.Binary("-", self.top, raised))),
            t.Assign(self.top, raised),
            self._store_of_key(self.weights, weight),
            t.BARRIER,
            t.Assign(self.total, scale, "*="),
        ]
        body += [
            t.Assign(total, t.Member(scale, c), "*=")
            for total, c in zip(self.sums, COMPONENTS, strict=True)
        ]
        return [*body, *self._add_values(values)]

    def _multiply(self, first: t.Expr) -> list[t.Stmt]:
        """Multiply 64 keys with the rows: eight lanes share a key, and have four keys each.

        With vectors of four terms:

            for (var p = (lane & 7u) * 4u; p < u.d; p += 32u) {
                let q_0 = q[...];                               // of four rows
                let k_0 = k[...];                               // of four keys
                dot_0 += vec4f(dot(q_0, k_0), dot(q_1, k_0), dot(q_2, k_0), dot(q_3, k_0));
            }
            products[(lane & 7u) * 65u + (lane >> 3u)] = dot_0;
        """
        s, found = self.builder, self.found
        over = found.product.last
        width = LANES if self.whole else 1
        keys = [t.Ident(s.fresh(f"key_{n}")) for n in range(OWN)]
        dots = [t.Ident(s.fresh(f"dot_{n}")) for n in range(OWN)]
        last = s.extent(found.key.extent) - t.ONE
        body: list[t.Stmt] = []
        for n, (key, dot) in enumerate(zip(keys, dots, strict=True)):
            place = first + (s.lane // RUN + n * (SIZE // RUN))
            body.append(t.Let(key.name, t.call("min", place, last)))
            body.append(t.Var(dot.name, t.call("vec4f", t.Literal("0.0"))))
        term = t.Ident(s.name(over.name))
        inner: list[t.Stmt] = []
        adding: list[t.Stmt] = []
        extent, step = s.extent(over.extent), RUN * width
        for turn in range(TURNS):
            place, inside = term, None
            if turn:
                # Beyond the end the terms of turn 0 are read again, and not added.
                inside = term + turn * step < extent
                place = t.Ident(s.fresh(term.name))
                again = t.call("select", term, term + turn * step, inside)
                inner.append(t.Let(place.name, again))
            adding += self._dots(inner, dots, keys, place, inside)
        start = s.lane % RUN * width
        body.append(t.count_up(term.name, start, extent, TURNS * step, *inner, *adding))
        for n, dot in enumerate(dots):
            place = s.lane % RUN * PITCH + (s.lane // RUN + n * (SIZE // RUN))
            body.append(t.Assign(self.products[place], dot))
        return body

    def _dots(
        self,
        body: list[t.Stmt],
        dots: list[t.Ident],
        keys: list[t.Ident],
        place: t.Expr,
        inside: t.Expr | None,
    ) -> list[t.Stmt]:
        """Read a run of each row and key; return what adds their products to the dots."""
        product, over = self.found.product, self.found.product.last
        lefts = [
            self._named(body, f"q_{n}", product.left, {**row, over: place}, over)
            for n, row in enumerate(self.place.rows)
        ]
        rights = [
            self._named(
                body,
                f"k_{n}",
                product.right,
                {**self.place.shared, self.found.key: key, over: place},
                over,
            )
            for n, key in enumerate(keys)
        ]
        # All reads are written before any addition, so that they are under way together.
        adding: list[t.Stmt] = []
        for dot, right in zip(dots, rights, strict=True):
            parts = tuple(self._term(left, right, adding) for left in lefts)
            term: t.Expr = t.Call("vec4f", parts)
            if inside is not None:
                none = t.call("vec4f", t.Literal("0.0"))
                term = t.call("select", none, term, inside)
            adding.append(t.Assign(dot, term, "+="))
        return adding

    def _named(
        self,
        body: list[t.Stmt],
        name: str,
        factor: Expr,
        at: dict[Index, t.Expr],
        along: Index,
    ) -> t.Ident:
        """Name the value of a factor, or with whole vectors of four neighbours `along`."""
        vector = along if self.whole else None
        lowerer = Lowerer(self.builder, at, body, vector=vector, label=name)
        value = lowerer.lower(factor)
        found = lowerer.widen(value, Scalar.F32) if self.whole else value.expr
        return self.builder.let(body, name, found)

    def _term(self, left: t.Expr, right: t.Expr, body: list[t.Stmt]) -> t.Expr:
        """Return the product of one row's factor and a key's."""
        product = self.found.product
        if self.whole and product.is_product:
            return t.call("dot", left, right)
        lowerer = Lowerer(self.builder, {}, body, label="term")
        lowerer.locals[LEFT] = Value(left, wide=self.whole)
        lowerer.locals[RIGHT] = Value(right, wide=self.whole)
        value = lowerer.lower(product.term)
        if not self.whole:
            return value.expr
        named = self.builder.let(body, "terms", lowerer.widen(value, Scalar.F32))
        return across("sum", named)

    def _score(self, first: t.Expr, own: t.Ident) -> list[t.Stmt]:
        """Name the scores of the lane's own key, a vector of four rows: -inf for no key."""
        s, found = self.builder, self.found
        key, whole = (t.Ident(s.fresh(n)) for n in ("key", "product"))
        extent = s.extent(found.key.extent)
        body: list[t.Stmt] = []
        # The first lanes of a slice have its keys; the others have none.
        number = s.lane % self.vectors
        self.has_key = s.let(body, "has_key", number < t.u32(self.slice_keys))
        number = t.call("min", number, t.u32(self.slice_keys - 1))
        self.own_key = s.let(body, "own_key", self._slice_start() + number)
        places = [self.products[self.own_key + n * PITCH] for n in range(RUN)]
        body += [
            t.Let(key.name, t.call("min", first + self.own_key, extent - t.ONE)),
            t.Let(whole.name, in_pairs("sum", places)),
        ]
        scores: list[t.Expr] = []
        for row, component in zip(self.place.rows, COMPONENTS, strict=True):
            at = {**row, found.key: key}
            lowerer = Lowerer(s, at, body, label="score")
            lowerer.locals[DOT.name] = Value(t.Member(whole, component))
            scores.append(lowerer.lower(found.score).expr)
        none = t.call("vec4f", infinity(s, negative=True))
        inside = t.all_of(self.has_key, first + self.own_key < extent)
        chosen = t.call("select", none, t.Call("vec4f", tuple(scores)), inside)
        return [*body, t.Let(own.name, chosen)]

    def _read_values(self, first: t.Expr) -> tuple[list[t.Stmt], list[t.Ident]]:
        """Return the reads of a lane's values: of four columns, and the keys of its slice."""
        s, found = self.builder, self.found
        # Behind the last key is 0: its weight is 0, and 0 times infinity is no number.
        last, none = self.place.end - t.ONE, t.call("vec4f", t.Literal("0.0"))
        body: list[t.Stmt] = []
        values: list[t.Ident] = []
        for n in range(self.slice_keys):
            key = t.Ident(s.fresh("value_key"))
            place = first + (self._slice_start() + n)
            body.append(t.Let(key.name, t.call("min", place, last)))
            value = self._value(body, {**self.place.shared, found.key: key})
            if not found.differs:  # Else `_weighted` leaves out what has no weight.
                own = t.Ident(s.fresh("own_v"))
                chosen = t.call("select", none, value, place < self.place.end)
                body.append(t.Let(own.name, chosen))
                value = own
            values.append(value)
        return body, values

    def _slice_start(self) -> t.Expr:
        """Return the first key of the lane's slice, counted from the first one of the turn."""
        return self.builder.lane // self.vectors * self.slice_keys

    def _add_values(self, values: list[t.Ident]) -> list[t.Stmt]:
        """Add weights times values."""
        s = self.builder
        body: list[t.Stmt] = []
        for n, value in enumerate(values):
            weight = s.let(body, "row_weights", self.weights[self._slice_start() + n])
            body.append(t.Assign(self.total, weight, "+="))
            body += [
                t.Assign(total, self._weighted(t.Member(weight, c), value), "+=")
                for total, c in zip(self.sums, COMPONENTS, strict=True)
            ]
        return body

    def _weighted(self, weight: t.Expr, value: t.Expr) -> t.Expr:
        """Return a row's weight times values, or 0 where the weight is 0.

        A value that a row leaves out may be NaN, and 0 times NaN is NaN.  The `select` costs
        little, as reading takes longer than all arithmetic.
        """
        term = weight * value
        if not self.found.differs:
            return term
        counts = t.Binary("!=", weight, t.Literal("0.0"))
        return t.call("select", t.call("vec4f", t.Literal("0.0")), term, counts)

    def _value(self, body: list[t.Stmt], at: dict[Index, t.Expr]) -> t.Ident:
        """Name the values of the lane's four columns; past the last one, that is read."""
        s, column = self.builder, self.found.column
        extent = s.extent(column.extent)
        first = self.place.first_column + self._own_column()
        if self.whole:
            near = t.call("min", first, extent - t.u32(VECTOR))
            return self._named(
                body, "v", self.found.value, {**at, column: near}, column
            )
        parts: list[t.Expr] = []
        for n in range(VECTOR):
            near = t.call("min", first + n, extent - t.ONE)
            lowerer = Lowerer(s, {**at, column: near}, body, label="v")
            parts.append(lowerer.lower(self.found.value).expr)
        return s.let(body, "v", t.Call("vec4f", tuple(parts)))

    def _own_column(self) -> t.Expr:
        return self.builder.lane % self.vectors * VECTOR

    # The results of a part

    def _leave(self) -> None:
        """Join the totals and sums of the slices, and store them in the scratch buffers.

        After the barrier, lanes 0 to `vectors` - 1 have row 0, the next ones row 1.
        """
        s = self.builder
        slice_, is_first = s.lane // self.vectors, (s.lane % self.vectors).equals(0)
        of_slice = (
            t.Assign(self.tops[slice_], self.top),
            t.Assign(self.totals[slice_], self.total),
        )
        self.body += [
            *(
                t.Assign(self.products[s.lane + n * SIZE], total)
                for n, total in enumerate(self.sums)
            ),
            t.If(is_first, of_slice),
            t.BARRIER,
        ]
        own_row = slice_
        if self.slices > VECTOR:  # Of narrow columns, some lanes have no row to store.
            own_row = t.call("min", own_row, VECTOR - 1)
        number = self.place.let("own_row", own_row)
        row, inside = self.place.row(number)
        top, total, sums = self._joined(number)
        self._store(row, inside, is_first, (top, total, sums))

    def _joined(self, row: t.Expr) -> tuple[t.Expr, t.Expr, t.Expr]:
        """Return a row's largest score, its total, and the sums of the lane's four columns."""
        s, let = self.builder, self.place.let
        tops = [self.tops[n][row] for n in range(self.slices)]
        top = let("row_top", reduce(lambda one, other: t.call("max", one, other), tops))
        scales = [
            let("slice_scale", t.call("exp", t.Binary("-", each, top))) for each in tops
        ]
        first = row * SIZE + s.lane % self.vectors
        sums = (self.products[first + n * self.vectors] for n in range(self.slices))
        totals = (self.totals[n][row] for n in range(self.slices))
        return (
            top,
            let("row_total", reduce(t.add, map(t.Expr.__mul__, scales, totals))),
            let("joined", reduce(t.add, map(t.Expr.__mul__, scales, sums))),
        )

    def _store(
        self,
        row: dict[Index, t.Expr],
        inside: t.Expr,
        is_first: t.Expr,
        found: tuple[t.Expr, t.Expr, t.Expr],
    ) -> None:
        """Store what a part has of a row: its largest score, its total and its sums."""
        s, (top, total, sums) = self.builder, found
        ends = s.scratch(self._ends, Scalar.F32, written=True)
        kept = s.scratch(self._sums, Scalar.F32, written=True)
        place = self.place.let("place", self.place.number(row))
        first = self.place.first_column + self._own_column()
        extent = s.extent(self.found.column.extent)
        stores: list[t.Stmt] = []
        for c, component in enumerate(COMPONENTS):
            store = kept.store(place * extent + (first + c), t.Member(sums, component))
            stores.append(t.If(first + c < extent, (store,)))
        once = t.all_of(is_first, self.place.first_column.equals(0))
        of_row = (ends.store(place * 2, top), ends.store(place * 2 + 1, total))
        own = t.all_of(s.lane < t.u32(VECTOR * self.vectors), inside)
        self.body.append(t.If(own, (*stores, t.If(once, of_row))))

    def _store_of_key(self, array: t.Expr, value: t.Expr) -> t.Stmt:
        """Return the store of a vector for the lane's key, if it has one."""
        return t.If(self.has_key, (t.Assign(array[self.own_key], value),))
