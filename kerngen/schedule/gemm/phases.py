"""Gradients of strided convolutions, by phases: places that leave the same remainder.

The gradient by an image of a convolution with stride 2 reads

    dy[n, f, (i + edge - u) / 2, (j + edge - v) / 2]   where 2 divides both, else 0

so that three of four terms are 0.  Places i with the same remainder by the stride, a phase,
have the same terms that are not 0:

    i      0  1  2  3  4  5         phase 0: i = 2 i'        u = 1, 3, ...  (edge 1)
    phase  0  1  0  1  0  1         phase 1: i = 2 i' + 1    u = 0, 2, ...

Each tile has the results of one phase along every axis, and adds these terms alone.  With `i =
stride i' + phase` and `u = first + step u'` no division is left in the places:

    (i + edge - u * skip) / stride    =    start + i' + u' * shift

On an H200, the gradient of 16 images of 128 x 28 x 28 by 256 kernels of 3 x 3 with stride 2
takes 112 us, and 341 with all terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, as_literal
from kerngen.ir.sizes import SizeMaker
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.plan import size as host
from kerngen.schedule.contraction import product_of, sides_of
from kerngen.schedule.gemm.window_read import WindowAxis, WindowRead, window_read
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.subscripts import lower_fixed
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.sizes import extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

_ONE: Final = ir.Constant(1, Scalar.I32)

_OF_PLACES: Final = ("phase", "start")
_OF_TERMS: Final = ("first", "step", "shift")
"""The numbers of a phase: those of an index of the result, and those of the reduction's."""


@final
@dataclass(frozen=True, slots=True)
class PhasedAxis:
    """An axis of the result whose places are taken by phase.

    - `read`: the divided axis that the factor reads; in its place, `outer` has the factor 1
    - `outer`, `inner`: the index of the result, and that of the reduction
    - `stride`: the divisor, as a size
    """

    read: WindowAxis
    outer: ir.Index
    inner: ir.Index
    stride: host.Size

    @property
    def place(self) -> ir.Index:
        """The index of the places of a phase, i'."""
        return ir.Index(self.outer.name, f"{self.outer.extent} by phase")

    @property
    def term(self) -> ir.Index:
        """The index of the terms of a phase, u'."""
        return ir.Index(self.inner.name, f"{self.inner.extent} of a phase")

    @property
    def divisor(self) -> ir.Expr:
        """The divisor, as an expression of the call."""
        assert self.read.divisor is not None
        return self.read.divisor

    @property
    def phases(self) -> host.Size:
        """How many phases have a place on the axis."""
        return host.minimum(self.stride, extent_size(self.outer.extent))

    @property
    def length(self) -> host.Size:
        """How many places the phase with the most of them has."""
        return host.ceil_div(extent_size(self.outer.extent), self.stride)

    def local(self, what: str) -> ir.LocalValue:
        """Return one of the numbers that the shader computes for a tile's phase."""
        index = self.outer if what in _OF_PLACES else self.inner
        return ir.LocalValue(f"{index.name}_{what}", Scalar.I32)


@final
@dataclass(frozen=True, slots=True)
class Phases:
    """The axes of a product's columns that have phases."""

    columns: tuple[ir.Index, ...]
    over: tuple[ir.Index, ...]
    axes: tuple[PhasedAxis, ...]

    @property
    def is_one(self) -> host.Guard:
        """The condition that there is one phase, with all places."""
        return host.all_of(*(host.compare("==", x.stride, 1) for x in self.axes))

    @property
    def is_any(self) -> host.Guard:
        """The condition that places can be taken by phase: all divisors are positive."""
        return host.all_of(*(host.compare(">=", x.stride, 1) for x in self.axes))

    @property
    def count(self) -> host.Size:
        """The number of phases."""
        return host.product_of(axis.phases for axis in self.axes)

    @property
    def columns_of_each(self) -> host.Size:
        """How many columns the phase with the most of them has."""
        own = {axis.outer: axis.length for axis in self.axes}
        return host.product_of(
            own.get(index, extent_size(index.extent)) for index in self.columns
        )

    @property
    def places(self) -> tuple[ir.Index, ...]:
        """The columns' indices, with those of a phase's places."""
        own = {axis.outer: axis.place for axis in self.axes}
        return tuple(own.get(index, index) for index in self.columns)

    @property
    def terms(self) -> tuple[ir.Index, ...]:
        """The reduction's indices, with those of a phase's terms."""
        own = {axis.inner: axis.term for axis in self.axes}
        return tuple(own.get(index, index) for index in self.over)

    def read(self, read: WindowRead) -> WindowRead:
        """Return a factor's read by the indices of a phase."""
        return replace(read, axes=tuple(map(self._axis, read.axes)))

    def _axis(self, axis: WindowAxis) -> WindowAxis:
        own = next((x for x in self.axes if x.read == axis), None)
        if own is not None:
            terms: dict[ir.Index, ir.Expr] = {own.place: _ONE}
            terms[own.term] = own.local("shift")
            place = AffineForm(own.local("start"), terms)
            return replace(axis, place=place, divisor=None)
        place = axis.place
        for phased in self.axes:
            steps = phased.local("step"), phased.local("first")
            place = _replaced(place, phased.inner, phased.term, *steps)
        return replace(axis, place=place)


def _replaced(
    form: AffineForm, old: ir.Index, new: ir.Index, step: ir.Expr, first: ir.Expr
) -> AffineForm:
    """Return a form in which an index is `first + step * new`."""
    if old not in form.terms:
        return form
    by = form.terms[old]
    terms = {index: x for index, x in form.terms.items() if index != old}
    terms[new] = _times(by, step)
    return AffineForm(_sum(_times(by, first), form.offset), terms)


def _sum(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return left if as_literal(right) == 0 else ir.Binary("+", left, right, Scalar.I32)


def _times(by: ir.Expr, value: ir.Expr) -> ir.Expr:
    return value if as_literal(by) == 1 else ir.Binary("*", by, value, Scalar.I32)


def phases_of(task: Task) -> Phases | None:
    """Return the phases of a product's columns, or None if it has none.

    Its right factor must divide places by integers of the call, or by literals, and each such
    place must have one index of the columns, with the factor 1, and one of the reduction.
    """
    found, _ = product_of(task)
    rows, columns = sides_of(task)
    if not found.is_product or found.is_bounded:
        return None
    # Of two matrices no factor is read in windows; nor are there batches of convolutions.
    if len(rows) == len(columns) == 1 or len(rows + columns) < len(task.domain):
        return None
    function = task.functions.__getitem__
    left, right = (window_read(x, function) for x in (found.left, found.right))
    if left is None or left.divisors or right is None or not right.divisors:
        return None
    axes = tuple(_phased_axes(task, right, columns, found.over))
    indices = [index for axis in axes for index in (axis.outer, axis.inner)]
    divided = [axis for axis in right.axes if axis.divisor is not None]
    if len(axes) < len(divided) or len(set(indices)) < len(indices):
        return None
    others = [axis for axis in right.axes if axis.divisor is None]
    if any(index in axis.place.terms for axis in others for index in indices):
        return None
    return Phases(columns, found.over, axes)


def _phased_axes(
    task: Task,
    read: WindowRead,
    columns: tuple[ir.Index, ...],
    over: tuple[ir.Index, ...],
) -> Iterator[PhasedAxis]:
    maker = SizeMaker({x.name: x.value for x in task.kernel.hosts}, str)
    for axis in read.axes:
        if axis.divisor is None:
            continue
        outer = [index for index in axis.place.terms if index in columns]
        inner = [index for index in axis.place.terms if index in over]
        stride = maker.size(axis.divisor)
        # A divisor that only the generated module can compute is no size.
        known = not maker.computed
        if (
            known
            and len(outer) == len(inner) == 1
            and axis.place.coefficient(outer[0]) == 1
        ):
            yield PhasedAxis(axis, outer[0], inner[0], stride)


# The shader


def set_lengths(s: ShaderBuilder, phases: Phases) -> None:
    """Give the indices of a phase their lengths, which are variables of the shader."""
    for axis in phases.axes:
        for index in (axis.place, axis.term):
            s.set_length(str(index.extent), _named(s, f"{index.name}_count"))


def name_lengths(s: ShaderBuilder, phases: Phases) -> list[t.Stmt]:
    """Return `let`s of how many places the longest phase of each axis has.

    That is `let i_count = (u.h + u.stride - 1u) / u.stride`.
    """
    strides = of_strides(s, phases)
    return [
        t.Let(_name_of(s.extent(x.place.extent)), to_wgsl(x.length, s, strides))
        for x in phases.axes
    ]


def of_strides(s: ShaderBuilder, phases: Phases) -> dict[host.Size, t.Expr]:
    """Return the strides in the shader, in u32."""
    lower = Lowerer(s, {}, []).lower
    return {x.stride: t.call("u32", lower(x.divisor).expr) for x in phases.axes}


def phase_names(s: ShaderBuilder, phases: Phases) -> list[t.Ident]:
    """Return the names of a tile's phase, along each axis."""
    return [_named(s, axis.local("phase").name) for axis in phases.axes]


def locals_of(s: ShaderBuilder, phases: Phases) -> dict[str, Value]:
    """Return the values of the numbers of a phase, which `write_phase` names."""
    names = (*_OF_PLACES, *_OF_TERMS)
    own = [axis.local(name).name for axis in phases.axes for name in names]
    return {name: Value(_named(s, name)) for name in own}


def write_phase(s: ShaderBuilder, phases: Phases, number: t.Expr) -> Iterator[t.Stmt]:
    """Yield `let`s of the numbers of phase `number`, axis by axis, the last one first.

    let i_phase = i32(phase % min(u.stride, u.h));
    let u_first = i32(first_multiple(i_phase + u.edge, -u.skip, u.stride, u.r));
    let u_step = i32(first_multiple(-u.skip, -u.skip, u.stride, u.r) + 1u);
    let u_shift = -u.skip * u_step / u.stride;
    let u_count = (u.r - u32(u_first) + u32(u_step) - 1u) / u32(u_step);
    let i_start = (i_phase + u.edge + -u.skip * u_first) / u.stride;
    """
    values, strides = locals_of(s, phases), of_strides(s, phases)
    for place, axis in reversed([*enumerate(phases.axes)]):
        many = to_wgsl(axis.phases, s, strides)
        own = number % many if place else number
        number = number // many
        yield from _write_axis(s, axis, values, t.call("i32", own))


def _write_axis(
    s: ShaderBuilder, axis: PhasedAxis, values: dict[str, Value], phase: t.Expr
) -> Iterator[t.Stmt]:
    lowerer = Lowerer(s, {}, [], locals=values)
    divisor, length = lowerer.lower(axis.divisor).expr, s.extent(axis.inner.extent)
    own_phase, first, step = (
        values[axis.local(x).name].expr for x in ("phase", "first", "step")
    )
    offset = own_phase
    if as_literal(axis.read.place.offset) != 0:
        offset = t.Binary("+", own_phase, _as_i32(lowerer, axis.read.place.offset))
    by = _as_i32(lowerer, axis.read.place.terms[axis.inner])
    search = _first_multiple(s)

    def let(what: str, value: t.Expr) -> t.Stmt:
        return t.Let(_name_of(values[axis.local(what).name].expr), value)

    yield let("phase", phase)
    found = t.call(search, offset, by, divisor, length)
    yield let("first", t.call("i32", found))
    following = t.call(search, by, by, divisor, length) + 1
    yield let("step", t.call("i32", following))
    yield let("shift", t.Binary("/", t.Binary("*", by, step), divisor))
    left = t.Binary("-", length, t.call("u32", first)) + t.call("u32", step)
    count = t.Binary("-", left, t.ONE) // t.call("u32", step)
    yield t.Let(_name_of(s.extent(axis.term.extent)), count)
    start = t.Binary("+", offset, t.Binary("*", by, first))
    yield let("start", t.Binary("/", start, divisor))


def _as_i32(lowerer: Lowerer, expr: ir.Expr) -> t.Expr:
    """Return a number of a place, in which i32 and u32 may be mixed, as an i32."""
    if all(node.type is Scalar.I32 for node in walk(expr)):
        return lowerer.lower(expr).expr
    return t.call("i32", lower_fixed(lowerer, expr))


def _first_multiple(s: ShaderBuilder) -> str:
    """Declare the function that finds the first number of a series that a divisor divides."""
    name = s.name("first_multiple", "helper")
    first, by, divisor, length, place, number = map(
        t.Ident, ("first", "by", "divisor", "length_", "place", "number")
    )
    value = t.Binary("+", first, t.Binary("*", t.call("i32", place), by))
    rounded = t.Binary("*", t.Binary("/", number, divisor), divisor)
    found = t.If(t.Binary("==", rounded, number), (t.Return(place),))
    loop = t.count_up(place.name, 0, length, 1, t.Let(number.name, value), found)
    parameters = (
        *((x.name, "i32") for x in (first, by, divisor)),
        (length.name, "u32"),
    )
    about = (
        "The first place where `divisor` divides `first + place * by`, or `length_`."
    )
    function = wgsl.Function(name, parameters, "u32", (loop, t.Return(length)), about)
    s.declare(f"function {name}", function)
    return name


def leave_phase(
    s: ShaderBuilder, phases: Phases, body: list[t.Stmt], at: Mapping[ir.Index, t.Expr]
) -> dict[ir.Index, t.Expr]:
    """Return the indices of the result at the places of a phase; leave if they are beyond it.

    Their `let`s, and the return, are appended to `body`.
    """
    found: dict[ir.Index, t.Expr] = {i: x for i, x in at.items() if i in phases.columns}
    beyond, strides = list[t.Expr](), of_strides(s, phases)
    for axis, phase in zip(phases.axes, phase_names(s, phases), strict=True):
        value = at[axis.place] * strides[axis.stride] + t.call("u32", phase)
        found[axis.outer] = s.let(body, f"{axis.outer.name}_place", value)
        beyond.append(found[axis.outer] >= s.extent(axis.outer.extent))
    body.append(t.If(t.any_of(*beyond), (t.Return(),)))
    return found


def _named(s: ShaderBuilder, wanted: str) -> t.Ident:
    """Return the variable for a number of a phase, the same at each call."""
    return t.Ident(s.name(wanted, "phase"))


def _name_of(variable: t.Expr) -> str:
    assert isinstance(variable, t.Ident)
    return variable.name
