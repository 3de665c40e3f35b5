"""Write the shader of a row plan for one way to lay rows on the lanes of a workgroup.

A row that fits is read once, into named variables of its lanes; every pass then works on
those.  A longer one is read again by each pass.  Lanes beyond the end of a row, and those
of rows beyond the last, are switched off one by one, never by leaving: all of them must
come to the barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kerngen.ir.nodes import LocalValue, ReduceKind, Tensor
from kerngen.ir.reads import loads
from kerngen.ir.types import Scalar, scalar_of
from kerngen.schedule.addresses import row_major
from kerngen.schedule.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.cooperation import BYTES
from kerngen.schedule.identities import accumulate, across, combine, identity
from kerngen.schedule.lowering import Lowerer
from kerngen.schedule.per_element import linear_group, position_name, unravel
from kerngen.schedule.rows_plan import Compute, Fold, Pass, RowPlan, Store
from kerngen.schedule.values import LANES, Value
from kerngen.shader import tree as t

INVOCATIONS: Final = 256

SHORT: Final = 16
"""Up to how many elements a lane does well to have a row of its own."""

JOINED: Final = 4
"""How many values a lane joins between two barriers."""


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """How rows lie on a workgroup.

    `lanes` share a row.  Each holds `chunks` values of it, or vectors where `width` is
    4; with no chunks it strides over the row again in each pass.  A lane that has a row
    to itself joins with no other.
    """

    lanes: int
    chunks: int
    width: int

    @property
    def rows(self) -> int:
        """How many rows a workgroup does."""
        return INVOCATIONS // self.lanes

    @property
    def step(self) -> int:
        """How many elements of a row its lanes take at once."""
        return self.lanes * self.width

    @property
    def most(self) -> int | None:
        """How long a row may be at most."""
        return SHORT if self.lanes == 1 else self.step * self.chunks or None


@final
@dataclass(frozen=True, slots=True)
class _Span:
    """A lane's elements: where the first lies, and what surrounds their statements."""

    at: t.Ident
    number: str
    wrap: Callable[[list[t.Stmt]], t.Stmt]


@final
class RowWriter:
    """Writes the body of one shader."""

    def __init__(
        self,
        shader: ShaderBuilder,
        plan: RowPlan,
        shape: Shape,
        stored: frozenset[Tensor],
    ) -> None:
        """Write with `shader`; `stored` are the tensors that must reach memory."""
        self._shader = shader
        self._plan = plan
        self._shape = shape
        self._stored = stored
        self._locals: dict[str, Value] = {}
        self._kept: dict[str, dict[str, Value]] = {}
        self._functions: dict[tuple[ReduceKind, Scalar], str] = {}
        self._arrays: dict[Scalar, t.Expr] = {}
        self._body: list[t.Stmt] = []
        self._place_rows()
        self._spans = tuple(self._make_spans())

    def write(self) -> list[t.Stmt]:
        """Return all statements."""
        for pass_ in self._plan.passes:
            self._write_pass(pass_)
        self._store_row_values()
        return self._body

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
        if shape.rows == 1:
            self._let(row, linear_group(shader))
            self._body.append(t.If(row >= total, (t.Return(),)))
        elif shape.lanes == 1:
            self._let(row, linear_group(shader) * shape.rows + shader.lane)
            self._body.append(t.If(row >= total, (t.Return(),)))
            self._place, self._writes_row = t.ZERO, ()
        else:
            self._place_several(row, total)
        self._at = unravel(shader, self._body, rows, row)

    def _place_several(self, row: t.Ident, total: t.Expr) -> None:
        """Let lanes of rows beyond the last see an empty one instead."""
        shader, shape = self._shader, self._shape
        names = ("first", "own", "place", "row_length")
        first, own, place, length = (t.Ident(shader.fresh(name)) for name in names)
        self._let(first, linear_group(shader) * shape.rows)
        self._body.append(t.If(first >= total, (t.Return(),)))
        self._let(own, first + shader.lane // shape.lanes)
        self._let(place, shader.lane % shape.lanes)
        self._let(row, t.call("min", own, t.Binary("-", total, t.ONE)))
        self._let(length, t.call("select", t.ZERO, self._length, own < total))
        self._place, self._length = place, length
        self._writes_row = (place.equals(0), own < total)

    def _let(self, name: t.Ident, value: t.Expr) -> None:
        self._body.append(t.Let(name.name, value))

    def _make_spans(self) -> Iterator[_Span]:
        """Yield what a lane does of its row, under conditions or as one loop."""
        shader, shape = self._shader, self._shape
        columns, length = self._plan.columns, self._length
        wanted = columns[0].name if len(columns) == 1 else "element"
        start = self._place * shape.width
        if not shape.chunks:
            name = position_name(shader, columns, wanted)
            at = t.Ident(name)
            step = shape.step

            def loop(block: list[t.Stmt]) -> t.Stmt:
                return t.count_up(name, start, length, step, *block)

            yield _Span(at, "", loop)
        for chunk in range(shape.chunks):
            number = str(chunk) if shape.chunks > 1 else ""
            name = shader.fresh(f"{wanted}{number}")
            at = t.Ident(name)
            self._let(at, start + chunk * shape.step)
            yield _Span(at, str(chunk), self._under(at < length))

    @staticmethod
    def _under(condition: t.Expr) -> Callable[[list[t.Stmt]], t.Stmt]:
        return lambda block: t.If(condition, tuple(block))

    # Passes

    def _write_pass(self, pass_: Pass) -> None:
        """Write the loops of a pass, join what its lanes found, name what follows."""
        width = self._shape.width
        totals: dict[Fold, t.Ident] = {}
        for action in pass_.each:
            if isinstance(action, Fold):
                name = self._shader.fresh(f"{action.local.name}_part")
                totals[action] = t.Ident(name)
                reduce = action.value
                start = identity(reduce.kind, reduce.type, width)
                self._body.append(t.Var(name, start))
        for span in self._spans if pass_.each else ():
            self._write_span(pass_, span, totals)
        for fold, total in totals.items():
            reduce = fold.value
            own = across(reduce.kind, total) if width > 1 else total
            if self._shape.lanes > 1:
                function = self._join(reduce.kind, scalar_of(reduce.type))
                own = t.call(function, own, self._shader.lane)
            self._name(fold.local, own)
        for local, value in pass_.after:
            self._name(local, self._row_lowerer(local, self._body).lower(value).expr)

    def _write_span(
        self, pass_: Pass, span: _Span, totals: dict[Fold, t.Ident]
    ) -> None:
        """Write what is done for every element of a span."""
        to = self._element_lowerer(span)
        for action in pass_.each:
            match action:
                case Compute():
                    self._compute(to, span, action)
                case Fold(local, reduce):
                    term = replace(to, label=local.name).lower(reduce.body)
                    wide = self._shape.width > 1
                    taken = to.widen(term, reduce.type) if wide else term.expr
                    to.block.append(accumulate(reduce.kind, totals[action], taken))
                case Store():
                    self._store(to, action)
                case _:
                    assert_never(action)
        self._body.append(span.wrap(to.block))

    def _compute(self, to: Lowerer, span: _Span, action: Compute) -> None:
        """Name a value in its block, or before it if later passes need it too."""
        local = action.local
        if local not in self._plan.carried:
            to.define(local, action.value)
            return
        value = replace(to, label=local.name).lower(action.value)
        name = t.Ident(self._shader.fresh(f"{local.name}{span.number}"))
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
        at = [to.at[index] for index in self._plan.element]
        address = row_major(self._shader, tensor.extents, at)
        value = to.locals[action.value.name]
        if self._shape.width == 1:
            to.block.append(buffer.store(address, value.expr))
            return
        wide = to.widen(value, tensor.element)
        to.block.append(buffer.store(address // LANES, wide))

    def _element_lowerer(self, span: _Span) -> Lowerer:
        columns, block = self._plan.columns, list[t.Stmt]()
        at = {**self._at, **unravel(self._shader, block, columns, span.at)}
        vector = columns[-1] if self._shape.width > 1 else None
        locals_ = {**self._locals, **self._kept.get(span.number, {})}
        return Lowerer(self._shader, at, block, vector=vector, locals=locals_)

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
            at = [self._at[index] for index in self._plan.rows]
            address = row_major(self._shader, tensor.extents, at)
            buffer = self._shader.buffer(tensor)
            stores.append(buffer.store(address, self._locals[local.name].expr))
        if self._writes_row:
            stores = [t.If(t.all_of(*self._writes_row), tuple(stores))]
        self._body += stores

    def _join(self, kind: ReduceKind, type_: Scalar) -> str:
        """Return the function that joins what the lanes of a row hold, declaring it."""
        if (kind, type_) not in self._functions:
            name = self._shader.fresh(f"row_{kind}")
            self._functions[kind, type_] = name
            self._shader.declare(f"function {name}", self._joining(name, kind, type_))
        return self._functions[kind, type_]

    def _joining(self, name: str, kind: ReduceKind, type_: Scalar) -> t.Function:
        shader, lanes = self._shader, self._shape.lanes
        if type_ not in self._arrays:
            array = f"array<{type_.value}, {INVOCATIONS}>"
            size = INVOCATIONS * BYTES
            self._arrays[type_] = shader.workgroup_array("partial", array, size)
        shared = self._arrays[type_]
        part, joined = (t.Ident(shader.name(n, "join")) for n in ("part", "joined"))
        place = shader.lane % lanes if lanes < INVOCATIONS else shader.lane
        start = t.Binary("-", shader.lane, place) if lanes < INVOCATIONS else t.ZERO
        body: list[t.Stmt] = [t.Assign(shared[shader.lane], part), t.BARRIER]
        count = lanes
        while count > JOINED:
            count //= JOINED
            of = [shared[shader.lane + number * count] for number in range(JOINED)]
            merged = t.Assign(shared[shader.lane], _tree(kind, of))
            body += [t.If(place < count, (merged,)), t.BARRIER]
        left = [shared[start + number] for number in range(count)]
        body.append(t.Let(joined.name, _tree(kind, left)))
        body += [t.BARRIER, t.Return(joined)]
        wgsl = type_.value
        parameters = ((part.name, wgsl), (self._lane_name(), "u32"))
        comment = (
            f"The {_SAID[kind]} over the {lanes} lanes of a row, in a fixed order."
        )
        return t.Function(name, parameters, wgsl, tuple(body), comment)

    def _lane_name(self) -> str:
        lane = self._shader.lane
        assert isinstance(lane, t.Ident)
        return lane.name


def _tree(kind: ReduceKind, values: list[t.Expr]) -> t.Expr:
    """Return values as one, combined in pairs of neighbours."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [combine(kind, left, right) for left, right in pairs]
    return values[0]


_SAID: Final[dict[ReduceKind, str]] = {
    "sum": "sum",
    "prod": "product",
    "max": "maximum",
    "min": "minimum",
}
