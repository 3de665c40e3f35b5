"""Write the shader of a row plan, for one shape: a way to lay rows on lanes.

A row that fits into registers is read once, into variables of its lanes, and every pass
works on those.  For softmax, where each lane holds two vectors:

    let j0 = lane * 4u;
    let j1 = lane * 4u + 1024u;
    var x0: vec4f;
    if (j0 < u.n) { x0 = x[(i * u.n + j0) >> 2u]; }
    ...                                                         // x1
    if (j0 < u.n) { top_max_part = max(top_max_part, x0); }     // pass 1
    ...
    let top = row_max(...);
    if (j0 < u.n) { total_part += exp(x0 - top); }              // pass 2
    ...

A longer row is read again by each pass, in a loop over blocks: a lane reads all its values
of a block before it works on any of them.

Lanes past the end of a row, and those of rows past the last one, skip their work by such
conditions and do not return, as all lanes of a workgroup must reach its barriers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never, final

from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.analysis.reads import loads
from kerngen.ir.nodes import Index, LocalValue, Tensor
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.argmax import partial_type, term_of, whole_of
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import own_total
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, across, identity
from kerngen.schedule.lowering.joining import Joiner, Rungs
from kerngen.schedule.lowering.positions import (
    linear_group,
    places,
    position_name,
    unravel,
)
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.lowering.steps import store_at
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.rows.online import RunningSum
from kerngen.schedule.rows.plan import (
    Action,
    Compute,
    Fold,
    Pass,
    RowPlan,
    ScaledSum,
    Store,
)
from kerngen.schedule.rows.shape import Ladder, RowShape
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class _Span:
    """An element or vector that a lane takes of a row, or of each block of a row.

    - `number`: its number among the lane's, as a suffix of names: `x0`, `x1`
    - `indices`: its column indices, as the names that the statements `places` declare
    - `inside`: the condition that it is not past the end of the row, if any
    """

    number: str
    indices: dict[Index, t.Expr]
    places: tuple[t.Stmt, ...]
    inside: t.Expr | None


@final
class RowWriter:
    """Emits the body of the shader of a row plan, for one shape or for a ladder of shapes.

    - `_place`, `_length`: the lane's number in its row, and how long the row is; 0 for
      lanes whose row is past the last one
    - `_block`: the loop's variable where rows are read block by block, else None
    - `_spans`: the elements or vectors that the lane takes
    - `_lasting`: the locals that are needed outside of the block that computes them
    - `_writes_row`: the conditions of the lane that stores the values of the row
    """

    def __init__(
        self,
        shader: ShaderBuilder,
        plan: RowPlan,
        shape: RowShape,
        stored: frozenset[Tensor],
        *,
        subgroups: bool,
        ladder: Ladder | None = None,
    ) -> None:
        """Write the row's and the lane's places; `stored` are the tensors to be stored."""
        self._shader = shader
        self._plan = plan
        self._shape = shape
        self._stored = stored
        self._locals: dict[str, Value] = {}
        self._kept: dict[str, dict[str, Value]] = {}
        self._lasting = {*plan.carried, *plan.read_first()}
        self._ladder = ladder
        self._lanes: t.Operand = shape.lanes
        self.workgroup_name = ""
        rungs = self._rungs(ladder) if ladder else None
        self._joiner = Joiner(
            shader, shape.lanes, shape.workgroup, subgroups=subgroups, rungs=rungs
        )
        self._body: list[t.Stmt] = []
        self._place_rows()
        self._block = self._name_block()
        taken = ladder.chunks if ladder else shape.taken
        self._spans = tuple(map(self._span, range(taken)))
        if self._block is None:
            self._body += self._places()

    def write(self) -> list[t.Stmt]:
        """Emit all passes and the stores of row values, and return the body; call it once."""
        for pass_ in self._plan.passes:
            self._write_pass(pass_)
        self._store_row_values()
        return self._body

    def _rungs(self, ladder: Ladder) -> Rungs:
        """Declare the pipeline's constants, and return those that the joining needs."""
        constants = ladder.constants(self._shape).items()
        given = (self._shader.override(name, value) for name, value in constants)
        lanes, workgroup, last, *chunks = given
        self._lanes, self.workgroup_name = lanes, workgroup.name
        if chunks:
            (self._chunks,) = chunks
        return Rungs(lanes, workgroup, last, ladder.lanes)

    # Places

    def _place_rows(self) -> None:
        """Write the number of the lane's row, and the lane's place in it.

        A row has a workgroup of its own, or a lane of its own, or some lanes beside others.
        """
        shader, shape = self._shader, self._shape
        rows = self._plan.rows
        total = shader.size(rows)
        self._length = shader.size(self._plan.columns)
        self._place: t.Expr = shader.lane
        self._writes_row: tuple[t.Expr, ...] = (shader.lane.equals(0),)
        row = t.Ident(position_name(shader, rows, "row"))
        # A workgroup for each row, a lane for each row, or several lanes for each row.
        if shape.rows == 1 and self._ladder is None:
            self._let(row, linear_group(shader))
            self._body.append(t.If(row >= total, (t.Return(),)))
        elif shape.lanes == 1:
            self._let(row, linear_group(shader) * shape.rows + shader.lane)
            self._body.append(t.If(row >= total, (t.Return(),)))
            self._place, self._writes_row = t.ZERO, ()
        else:
            self._place_several(row, total)
        self._at = unravel(shader, self._body, rows, row)
        self._begin: t.Expr = t.ZERO
        self._place_terms()

    def _place_terms(self) -> None:
        """Write where the row's loop begins and ends, if one condition bounds all passes.

        So `sum[j when j <= i] x[i, j]` reads `i + 1` elements.  All reductions must have
        the same condition, and no pass may store elements.
        """
        columns, shape = self._plan.columns, self._shape
        each = [action for pass_ in self._plan.passes for action in pass_.each]
        folds = [action.value for action in each if isinstance(action, Fold)]
        alike = len({conditional(reduce).condition for reduce in folds}) == 1
        stores = any(isinstance(action, Store) for action in each)
        if stores or not alike or len(columns) != 1:
            return
        to = Lowerer(self._shader, dict(self._at), self._body)
        along = terms_along(to, folds[0], columns[0], shape.width)
        if not along.is_whole:
            self._begin = along.begin
            length = t.Ident(self._shader.fresh("row_end"))
            self._let(length, t.call("min", self._length, along.end))
            self._length = length

    def _place_several(self, row: t.Ident, total: t.Expr) -> None:
        """Write the places of lanes where several rows share a workgroup.

        In WGSL:

            let own = first + lane / LANES;
            let place = lane % LANES;
            let i = min(own, u.m - 1u);                 // past the last row: the last one,
            let row_length = select(0u, u.n, own < u.m);    // with no elements
        """
        shader = self._shader
        names = ("first", "own", "place", "row_length")
        first, own, place, length = (t.Ident(shader.fresh(name)) for name in names)
        self._let(first, linear_group(shader) * self._rows_at_once())
        self._body.append(t.If(first >= total, (t.Return(),)))
        self._let(own, self._own_row(first))
        self._let(place, shader.lane % self._lanes)
        self._let(row, t.call("min", own, t.Binary("-", total, t.ONE)))
        self._let(length, t.call("select", t.ZERO, self._length, own < total))
        self._place, self._length = place, length
        self._writes_row = (place.equals(0), own < total)

    def _rows_at_once(self) -> t.Operand:
        """Return how many rows a workgroup takes: a number, or by the pipeline's constants."""
        if self._ladder is None:
            return self._shape.rows
        return t.Ident(self.workgroup_name) // self._lanes

    def _own_row(self, first: t.Ident) -> t.Expr:
        """Return the number of the lane's row.

        Where all lanes share one row, it is `first`, of which drivers see that it is the same
        for all lanes: `select(first + lane / LANES, first, LANES == WORKGROUP)`.
        """
        own = first + self._shader.lane // self._lanes
        if self._ladder is None:
            return own
        is_shared = t.lift(self._lanes).equals(t.Ident(self.workgroup_name))
        return t.call("select", own, first, is_shared)

    def _let(self, name: t.Ident, value: t.Expr) -> None:
        self._body.append(t.Let(name.name, value))

    def _name_block(self) -> t.Ident | None:
        """Return the variable of the loop over blocks, or None if lanes hold their row."""
        if self._shape.chunks:
            return None
        columns = self._plan.columns
        return t.Ident(position_name(self._shader, columns, "element"))

    def _span(self, number: int) -> _Span:
        """Return one of the elements or vectors that a lane takes of a row or block."""
        shader, columns, shape = self._shader, self._plan.columns, self._shape
        shown = str(number) if self._ladder or shape.taken > 1 else ""
        # The first of a block lies at the loop's variable, which is inside of the row.
        in_front = self._block if number == 0 else None
        wanted = columns[0].name if len(columns) == 1 else "element"
        at = in_front or t.Ident(shader.fresh(f"{wanted}{shown}"))
        start = self._block or self._begin + self._place * shape.width
        named_places: list[t.Stmt] = []
        if in_front is None:
            further = t.lift(self._lanes) * (number * shape.width)
            named_places.append(t.Let(at.name, start + further))
        # With several column indices, `at` is the number of the element in its row.
        indices: dict[Index, t.Expr] = {columns[0]: at}
        if len(columns) > 1:
            found = places(shader, columns, at)
            named = {x: t.Ident(shader.fresh(f"{x.name}{shown}")) for x in columns}
            named_places += (t.Let(named[x].name, found[x]) for x in columns)
            indices = dict(named)
        inside = self._inside(number, at) if in_front is None else None
        return _Span(str(number), indices, tuple(named_places), inside)

    def _inside(self, number: int, at: t.Expr) -> t.Expr:
        """Return the condition that a span is inside of the row, and one that the shape has."""
        inside = at < self._length
        if self._ladder is None or number < self._ladder.least:
            return inside
        return t.Binary("&", self._chunks > number, inside)

    def _places(self) -> Iterator[t.Stmt]:
        """Yield the statements that name the indices of all spans."""
        return (place for span in self._spans for place in span.places)

    # Passes

    def _write_pass(self, pass_: Pass) -> None:
        """Write a pass: a total for each reduction, the elements, and the row's values."""
        width = self._shape.width
        totals: dict[Fold, t.Ident] = {}
        # var top_max_part = ...;
        for action in pass_.each:
            if isinstance(action, Fold):
                name = self._shader.fresh(f"{action.local.name}_part")
                totals[action] = t.Ident(name)
                reduce = action.value
                start = identity(self._shader, reduce.kind, reduce.type, width)
                self._body.append(t.Var(name, start))
        sums = [
            RunningSum.named(self._shader, action, width)
            for action in pass_.each
            if isinstance(action, ScaledSum)
        ]
        for running in sums:
            self._body += running.declare()
        if pass_.each:
            self._write_elements(pass_, totals, sums)
        # let top_max = row_max(max(top_max_part.x, ...), lane);
        for fold, total in totals.items():
            reduce = fold.value
            own = own_total(reduce, total, width)
            if self._shape.lanes > 1:
                own = self._joiner.joined(reduce.kind, partial_type(reduce), own)
            self._name(fold.local, whole_of(reduce, Value(own)).expr)
        # let top = ...;
        for local, value in pass_.after:
            self._name(local, self._row_lowerer(local, self._body).lower(value).expr)
            for running in sums:
                if running.action.top == local:
                    self._join_scaled(running)

    def _join_scaled(self, running: RunningSum) -> None:
        """Write the `let` of a sum that is relative to the row's largest value."""
        action, start = running.action, self._begin + self._place * self._shape.width
        top = self._locals[action.top.name].expr
        scaled = t.Ident(self._shader.fresh(f"{action.local.name}_scaled"))
        self._let(scaled, running.scaled(top, start < self._length))
        own = across("sum", scaled) if self._shape.width > 1 else scaled
        self._name(action.local, self._joiner.joined("sum", action.local.type, own))

    def _write_elements(
        self, pass_: Pass, totals: dict[Fold, t.Ident], sums: list[RunningSum]
    ) -> None:
        """Write the reads and actions of all spans, in a loop if there are blocks."""
        shape, outer = self._shape, self._body
        self._body = [*self._places()] if self._block is not None else []
        # First the reads of all spans, then the actions of all spans.
        for actions in (pass_.reads, pass_.each):
            for span in self._spans if actions else ():
                self._write_span(actions, span, totals)
        # Then sums that are scaled to the largest of all these values.
        largest = {fold.local: total for fold, total in totals.items()}
        for running in sums:
            self._body += running.rescale(largest[running.action.largest])
            for span in self._spans:
                to = self._element_lowerer(span)
                running.add(to)
                self._add_block(to, span)
        inner, self._body = self._body, outer
        if self._block is not None:
            start = self._begin + self._place * shape.width
            step = shape.step * shape.taken
            name, length = self._block.name, self._length
            inner = [t.count_up(name, start, length, step, *inner)]
        outer += inner

    def _write_span(
        self, actions: Iterable[Action], span: _Span, totals: dict[Fold, t.Ident]
    ) -> None:
        """Write some actions for the elements of a span, under its condition."""
        to = self._element_lowerer(span)
        for action in actions:
            match action:
                case Compute():
                    self._compute(to, span, action)
                case Fold(local, reduce):
                    named = replace(to, label=local.name)
                    term = term_of(named, reduce, wide=self._shape.width > 1)
                    to.block.append(accumulate(reduce.kind, totals[action], term))
                case Store():
                    self._store(to, action)
                case ScaledSum():
                    pass  # Behind all elements of the block: `_write_elements`.
                case _:
                    assert_never(action)
        self._add_block(to, span)

    def _add_block(self, to: Lowerer, span: _Span) -> None:
        """Write statements for the elements of a span, under its condition."""
        if span.inside is None:
            self._body += to.block
        else:
            self._body.append(t.If(span.inside, tuple(to.block)))

    def _compute(self, to: Lowerer, span: _Span, action: Compute) -> None:
        """Write a value's `let`; or a `var` before the block if it is needed outside of it."""
        local = action.local
        if local not in self._lasting:
            to.define(local, action.value)
            return
        value = replace(to, label=local.name).lower(action.value)
        name = t.Ident(self._shader.name(f"{local.name}{span.number}", "held"))
        if span.inside is None:
            to.block.append(t.Let(name.name, value.expr))
        else:
            type_ = wgsl_type(local.type, value.lanes)
            self._body.append(t.Var(name.name, type=type_))
            to.block.append(t.Assign(name, value.expr))
        to.locals[local.name] = Value(name, value.wide)
        self._kept.setdefault(span.number, {})[local.name] = Value(name, value.wide)

    def _store(self, to: Lowerer, action: Store) -> None:
        """Write the store of an element or vector, unless nothing reads the tensor later."""
        tensor = action.tensor
        if tensor not in self._stored:
            return
        buffer = self._shader.buffer(tensor)
        value = to.locals[action.value.name]
        if action.places:
            store_at(to, tensor, action.places, value)
            return
        at = [to.at[index] for index in self._plan.element]
        address = row_major(self._shader, tensor.extents, at)
        if self._shape.width == 1:
            to.block.append(buffer.store(address, value.expr))
            return
        wide = to.widen(value, tensor.element)
        to.block.append(buffer.store(address // LANES, wide))

    def _element_lowerer(self, span: _Span) -> Lowerer:
        vector = self._plan.columns[-1] if self._shape.width > 1 else None
        locals_ = {**self._locals, **self._kept.get(span.number, {})}
        at = {**self._at, **span.indices}
        return Lowerer(self._shader, at, [], vector=vector, locals=locals_)

    def _row_lowerer(self, local: LocalValue, block: list[t.Stmt]) -> Lowerer:
        at, locals_ = dict(self._at), dict(self._locals)
        return Lowerer(self._shader, at, block, locals=locals_, label=local.name)

    # Values of a row

    def _name(self, local: LocalValue, value: t.Expr) -> None:
        """Write the `let` of a row's value, which later passes read."""
        name = t.Ident(self._shader.name(local.name))
        self._let(name, value)
        self._locals[local.name] = Value(name)

    def _store_row_values(self) -> None:
        """Write the stores of the row's values, last, as lanes may read the old ones."""
        kept = {x: v for x, v in self._plan.row_values.items() if x in self._stored}
        if not kept:
            return
        # If the run reads one of these tensors, all lanes must have read before one stores.
        values = (*self._plan.per_element(), *self._plan.per_row())
        again = any(load.tensor in kept for value in values for load in loads(value))
        if again and self._writes_row:
            self._body.append(t.Evaluate(t.Call("storageBarrier", ())))
        stores: list[t.Stmt] = []
        for tensor, local in kept.items():
            if tensor in self._plan.row_places:
                to = self._row_lowerer(local, stores)
                places = self._plan.row_places[tensor]
                store_at(to, tensor, places, to.locals[local.name])
                continue
            at = [self._at[index] for index in self._plan.rows]
            address = row_major(self._shader, tensor.extents, at)
            buffer = self._shader.buffer(tensor)
            stores.append(buffer.store(address, self._locals[local.name].expr))
        if self._writes_row:
            stores = [t.If(t.all_of(*self._writes_row), tuple(stores))]
        self._body += stores
