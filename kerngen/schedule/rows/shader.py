"""Write the shader of a row plan for one way to lay rows on the lanes of a workgroup.

A row that fits is read once, into named variables of its lanes; every pass then works on
those.  A longer one is read again by each pass, a block at a time: all that a lane takes
of a block is read before the lane works on any of it.  Lanes beyond the end of a row, and
those of rows beyond the last, are switched off one by one, never by leaving: all of them
must come to the barriers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.analysis.reads import loads
from kerngen.ir.nodes import Index, LocalValue, Tensor
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.argmax import partial_type, term_of, whole_of
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import own_total
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, identity
from kerngen.schedule.lowering.joining import Joiner, Rungs, left_to_join
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.lowering.steps import store_at
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.per_element import (
    linear_group,
    places,
    position_name,
    unravel,
)
from kerngen.schedule.rows.plan import Action, Compute, Fold, Pass, RowPlan, Store
from kerngen.shader import tree as t

INVOCATIONS: Final = 256

SHORT: Final = 16
"""Up to how many elements a lane does well to have a row of its own."""

ALONE: Final = 64
"""From how many lanes on a row does well to have a workgroup of its own."""

BLOCK: Final = {1: 8, LANES: 4}
"""How many values, or vectors, a lane takes of a long row at once, by their width."""


@final
@dataclass(frozen=True, slots=True)
class RowShape:
    """How the rows lie on the lanes of a workgroup.

    - `lanes`: how many lanes share a row; with 1, no partial results are combined
    - `chunks`: how many values each lane holds of it, or vectors where `width` is 4; with
      0, it strides over the row again in each pass
    """

    lanes: int
    chunks: int
    width: int

    @property
    def workgroup(self) -> int:
        """The number of lanes of a workgroup."""
        return self.lanes if self.lanes >= ALONE else INVOCATIONS

    @property
    def rows(self) -> int:
        """The number of rows that a workgroup handles."""
        return self.workgroup // self.lanes

    @property
    def taken(self) -> int:
        """The number of values, or vectors, that a lane reads at once."""
        return self.chunks or (1 if self.lanes == 1 else BLOCK[self.width])

    @property
    def step(self) -> int:
        """The number of elements of a row that its lanes read at once."""
        return self.lanes * self.width

    @property
    def most(self) -> int | None:
        """The greatest length of a row, or None if there is no limit."""
        return SHORT if self.lanes == 1 else self.step * self.chunks or None


@final
@dataclass(frozen=True, slots=True)
class Ladder:
    """Shapes that share one shader: the pipeline sets how many lanes share a row.

    The text has `lanes` share a row at most, and a lane hold `chunks` values or vectors; some
    shapes hold only `least` of them.  What the pipeline's constants switch off costs nothing:
    it is gone when the driver has compiled the shader.
    """

    least: int
    chunks: int
    lanes: int

    @classmethod
    def of(cls, shapes: Sequence[RowShape]) -> Ladder:
        """Return the ladder that covers some shapes."""
        chunks = [shape.chunks for shape in shapes]
        return cls(min(chunks), max(chunks), max(shape.lanes for shape in shapes))

    def constants(self, shape: RowShape) -> dict[str, int]:
        """Return the pipeline's constants for a shape, by what they are called."""
        constants = {
            "LANES": shape.lanes,
            "WORKGROUP": shape.workgroup,
            "LAST": left_to_join(shape.lanes),
        }
        if self.least < self.chunks:
            constants["CHUNKS"] = shape.chunks
        return constants


@final
@dataclass(frozen=True, slots=True)
class _Span:
    """A value or vector that a lane takes of a row, or of each block of it.

    It lies at those `indices`, which `places` name.  Where `inside` does not hold, it
    lies beyond the end of the row.
    """

    number: str
    indices: dict[Index, t.Expr]
    places: tuple[t.Stmt, ...]
    inside: t.Expr | None


@final
class RowWriter:
    """Writes the body of a row plan's shader."""

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
        """Write with `shader`; `stored` are the tensors that must reach memory."""
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
        """Return all statements of the body."""
        for pass_ in self._plan.passes:
            self._write_pass(pass_)
        self._store_row_values()
        return self._body

    def _rungs(self, ladder: Ladder) -> Rungs:
        """Declare what the pipeline's constants are."""
        constants = ladder.constants(self._shape).items()
        given = (self._shader.override(name, value) for name, value in constants)
        lanes, workgroup, last, *chunks = given
        self._lanes, self.workgroup_name = lanes, workgroup.name
        if chunks:
            (self._chunks,) = chunks
        return Rungs(lanes, workgroup, last, ladder.lanes)

    # Places

    def _place_rows(self) -> None:
        """Name the lane's row and its place there."""
        shader, shape = self._shader, self._shape
        rows = self._plan.rows
        total = shader.size(rows)
        self._length = shader.size(self._plan.columns)
        self._place: t.Expr = shader.lane
        self._writes_row: tuple[t.Expr, ...] = (shader.lane.equals(0),)
        row = t.Ident(position_name(shader, rows, "row"))
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
        """Leave out the ends of a row, where a condition does so in all that is done."""
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
        """Let lanes of rows beyond the last see an empty one instead."""
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
        """Return how many rows a workgroup does."""
        if self._ladder is None:
            return self._shape.rows
        return t.Ident(self.workgroup_name) // self._lanes

    def _own_row(self, first: t.Ident) -> t.Expr:
        """Return the lane's row.

        Where all lanes share one, drivers are to see that it is the same for all of them.
        """
        own = first + self._shader.lane // self._lanes
        if self._ladder is None:
            return own
        is_shared = t.lift(self._lanes).equals(t.Ident(self.workgroup_name))
        return t.call("select", own, first, is_shared)

    def _let(self, name: t.Ident, value: t.Expr) -> None:
        self._body.append(t.Let(name.name, value))

    def _name_block(self) -> t.Ident | None:
        """Return the variable for a lane's place in its row; None where no loop moves it."""
        if self._shape.chunks:
            return None
        columns = self._plan.columns
        return t.Ident(position_name(self._shader, columns, "element"))

    def _span(self, number: int) -> _Span:
        """Return the value or vector, of the row or of a block, that a lane reads at once."""
        shader, columns, shape = self._shader, self._plan.columns, self._shape
        shown = str(number) if self._ladder or shape.taken > 1 else ""
        in_front = self._block if number == 0 else None
        wanted = columns[0].name if len(columns) == 1 else "element"
        at = in_front or t.Ident(shader.fresh(f"{wanted}{shown}"))
        start = self._block or self._begin + self._place * shape.width
        named_places: list[t.Stmt] = []
        if in_front is None:
            further = t.lift(self._lanes) * (number * shape.width)
            named_places.append(t.Let(at.name, start + further))
        indices: dict[Index, t.Expr] = {columns[0]: at}
        if len(columns) > 1:
            found = places(shader, columns, at)
            named = {x: t.Ident(shader.fresh(f"{x.name}{shown}")) for x in columns}
            named_places += (t.Let(named[x].name, found[x]) for x in columns)
            indices = dict(named)
        inside = self._inside(number, at) if in_front is None else None
        return _Span(str(number), indices, tuple(named_places), inside)

    def _inside(self, number: int, at: t.Expr) -> t.Expr:
        """Return that a span lies within the row, and is one that the pipeline has."""
        inside = at < self._length
        if self._ladder is None or number < self._ladder.least:
            return inside
        return t.Binary("&", self._chunks > number, inside)

    def _places(self) -> Iterator[t.Stmt]:
        """Yield where the spans lie."""
        return (place for span in self._spans for place in span.places)

    # Passes

    def _write_pass(self, pass_: Pass) -> None:
        """Write what a pass does, join what its lanes found, name what follows."""
        width = self._shape.width
        totals: dict[Fold, t.Ident] = {}
        for action in pass_.each:
            if isinstance(action, Fold):
                name = self._shader.fresh(f"{action.local.name}_part")
                totals[action] = t.Ident(name)
                reduce = action.value
                start = identity(self._shader, reduce.kind, reduce.type, width)
                self._body.append(t.Var(name, start))
        if pass_.each:
            self._write_elements(pass_, totals)
        for fold, total in totals.items():
            reduce = fold.value
            own = own_total(reduce, total, width)
            if self._shape.lanes > 1:
                own = self._joiner.joined(reduce.kind, partial_type(reduce), own)
            self._name(fold.local, whole_of(reduce, Value(own)).expr)
        for local, value in pass_.after:
            self._name(local, self._row_lowerer(local, self._body).lower(value).expr)

    def _write_elements(self, pass_: Pass, totals: dict[Fold, t.Ident]) -> None:
        """Write what is done for every element, in a loop where there are blocks."""
        shape, outer = self._shape, self._body
        self._body = [*self._places()] if self._block is not None else []
        for actions in (pass_.reads, pass_.each):
            for span in self._spans if actions else ():
                self._write_span(actions, span, totals)
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
        """Write what is done for every element of a span."""
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
                case _:
                    assert_never(action)
        if span.inside is None:
            self._body += to.block
        else:
            self._body.append(t.If(span.inside, tuple(to.block)))

    def _compute(self, to: Lowerer, span: _Span, action: Compute) -> None:
        """Name a value in its block, or before it if it is needed beyond it."""
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

    # What belongs to a row

    def _name(self, local: LocalValue, value: t.Expr) -> None:
        name = t.Ident(self._shader.name(local.name))
        self._let(name, value)
        self._locals[local.name] = Value(name)

    def _store_row_values(self) -> None:
        """Store last, when no lane needs the old values any more."""
        kept = {x: v for x, v in self._plan.row_values.items() if x in self._stored}
        if not kept:
            return
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
