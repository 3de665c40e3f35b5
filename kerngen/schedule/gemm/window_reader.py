"""The WGSL that reads a factor of a convolution: four elements of a term, for a tile.

A factor that is a read in windows (`window_read.py`) has its places as sums.  The part of each
that the position in the result fixes is computed before the loop over terms, and the part
that the term fixes once for each term; a function adds nothing but the rest of the address:

    let b_0_h_0 = b_0_i_0 * u32(u.step) - u32(u.edge);           // before the loop
    ...
    let b_0_h = b_0_u * u32(u.skip);                             // in it
    b_load_0 = vec4f(b_element(b_0_from_0 + b_0_from, b_0_h_0 + b_0_h, b_0_w_0 + b_0_w), ...);

With all indices as parameters instead, whose places the function computes, the gradient of
32 images of 128 x 28 x 28 by 128 kernels of 3 x 3 takes 350 us on an H200, and 217 like this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.types import Scalar
from kerngen.schedule.gemm.phases import Phases, locals_of
from kerngen.schedule.gemm.window_read import WindowRead, window_read
from kerngen.schedule.lowering.addresses import row_major
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.subscripts import lower_affine
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

At: TypeAlias = Mapping[ir.Index, t.Expr]
Sums: TypeAlias = tuple[t.Expr, ...]
"""Parts of the parameters of a factor's function."""


@final
class WindowReader:
    """Builds the reads of a factor in windows: four calls of a WGSL function for one element.

    Where places are divided by integers of the call, a shader is for divisors of 1
    (`undivided`), or for tiles of one phase, whose places are not divided, or for any.  That
    for any has a second function:

        if (b_is_undivided) { b_load = vec4f(b_element(...), ...); }
        if (!b_is_undivided) { b_load = vec4f(b_element_(...), ...); }
    """

    def __init__(
        self,
        builder: ShaderBuilder,
        factor: ir.Expr,
        name: str,
        over: tuple[ir.Index, ...],
        phases: Phases | None = None,
        *,
        undivided: bool = False,
    ) -> None:
        """Find the factor's places; functions are declared when they are called."""
        self._builder = builder
        self._factor = factor
        self._name = name
        self._over = over
        self._read = window_read(factor, builder.function)
        self._locals: Mapping[str, Value] = {}
        if phases:
            assert self._read, "both factors are reads"
            self._over = phases.terms
            self._read = phases.read(self._read)
            self._locals = locals_of(builder, phases)
        if undivided and self._read:
            self._read = self._read.undivided
        self._declared: dict[bool, str] = {}
        # The parameters of a factor that is no read in windows: all its indices, those of the
        # result (False) and those of the reduction.
        self._indices: dict[bool, list[ir.Index]] = {False: [], True: []}
        self._is_undivided = t.Ident(builder.fresh(f"{name}_is_undivided"))

    def declare(self) -> Iterator[t.Stmt]:
        """Yield a variable for the condition that all divisors are 1.

        It is the same in all invocations and turns, so that it is tested before the loop.
        """
        if self._may_be_undivided:
            assert self._read
            lowerer = Lowerer(self._builder, {}, [])
            divisors = (lowerer.lower(x).expr for x in self._read.divisors)
            ones = (t.call("u32", divisor).equals(1) for divisor in divisors)
            yield t.Let(self._is_undivided.name, t.all_of(*ones))

    @property
    def _may_be_undivided(self) -> bool:
        divisors = self._read.divisors if self._read else ()
        named = all(isinstance(x, ir.UniformValue) for x in divisors)
        return bool(divisors) and named

    def cases(self) -> Iterator[tuple[bool, t.Expr | None]]:
        """Yield whether places are divided, with the condition of each case, None if it is one."""
        if self._may_be_undivided:
            yield False, self._is_undivided
            yield True, t.Unary("!", self._is_undivided)
        else:
            yield bool(self._read and self._read.divisors), None

    # The parameters of the function: an address, and the places that may lie beyond an axis.

    def name_sums(self, at: At, name: str, body: list[t.Stmt], after: str = "") -> Sums:
        """Append `let`s of the parts of the parameters that some indices fix; return them.

        The indices are those of the result, or those of the reduction.  Numbers that no index
        multiplies belong to the result's.
        """
        of_terms = all(index in self._over for index in at)
        if self._read is None:
            used = free_indices(self._factor)
            own = self._indices[of_terms] = [index for index in at if index in used]
            return tuple(at[index] for index in own)
        sums: list[t.Expr] = []
        for wanted, value in self._sums(self._read, at, of_terms):
            if isinstance(value, t.Ident | t.Literal):
                sums.append(value)
            else:
                shown = f"{name}_{wanted}{after}"
                sums.append(self._builder.let(body, shown, value))
        return tuple(sums)

    def _sums(
        self, read: WindowRead, at: At, of_terms: bool
    ) -> Iterator[tuple[str, t.Expr]]:
        to = Lowerer(self._builder, dict(at), [], locals={**self._locals})

        def fixed(place: AffineForm) -> t.Expr:
            own = {
                i: x for i, x in place.terms.items() if (i in self._over) == of_terms
            }
            offset = ir.Constant(0, Scalar.I32) if of_terms else place.offset
            return lower_affine(to, AffineForm(offset, own)).expr

        extents = tuple(axis.extent for axis in read.axes)
        own = [t.ZERO if axis.guarded else fixed(axis.place) for axis in read.axes]
        yield "from", row_major(self._builder, extents, own)
        for name, axis in zip(_axis_names(read), read.axes, strict=True):
            if axis.guarded:
                yield name, fixed(axis.place)

    def vector(self, places: tuple[Sums, ...], term: Sums, *, divided: bool) -> t.Expr:
        """Return four elements of a term, whose parts are `term`, at four `places`."""
        read, elements = self._read, list[t.Expr]()
        for place in places:
            if read is None:
                elements.append(t.call(self._function(divided), *place, *term))
                continue
            sums = [a + b for a, b in zip(place, term, strict=True)]
            if any(axis.guarded for axis in read.axes):
                elements.append(t.call(self._function(divided), *sums))
            else:
                elements.append(self._builder.buffer(read.tensor).load(sums[0]))
        return t.Call(wgsl_type(self._factor.type, LANES), tuple(elements))

    # The function

    def _function(self, divided: bool) -> str:
        """Return the name of the function for one element, which is declared at first use."""
        if divided in self._declared:
            return self._declared[divided]
        s = self._builder
        function = self._declared[divided] = s.fresh(f"{self._name}_element")
        body: list[t.Stmt] = []
        if self._read is None:
            indices = [*self._indices[False], *self._indices[True]]
            names = [s.name(index.name) for index in indices]
            at: dict[ir.Index, t.Expr] = dict(
                zip(indices, map(t.Ident, names), strict=True)
            )
            value = Lowerer(s, at, body, label=self._name).lower(self._factor).expr
        else:
            names, value = self._element(self._read, body, divided)
        body.append(t.Return(value))
        parameters = tuple((name, "u32") for name in names)
        about = f"An element of the operand {self._name}."
        type_ = wgsl_type(self._factor.type)
        declared = wgsl.Function(function, parameters, type_, tuple(body), about)
        s.declare(f"function {function}", declared)
        return function

    def _element(
        self, read: WindowRead, body: list[t.Stmt], divided: bool
    ) -> tuple[list[str], t.Expr]:
        """Return the parameters and the value of the function of a read that may be beyond an axis.

        There the address is 0, and so is the element.
        """
        s, buffer = self._builder, self._builder.buffer(read.tensor)
        # Words of the compiler and of the user may be the same: a space for each keeps them apart.
        names = [s.name("start", "address")]
        at, inside = list[t.Expr](), list[t.Expr]()
        for shown, axis in zip(_axis_names(read), read.axes, strict=True):
            if not axis.guarded:
                at.append(t.ZERO)
                continue
            space = "place" if shown == axis.extent else "place by number"
            name = s.name(shown, space)
            names.append(name)
            place: t.Expr = t.Ident(name)
            if divided and axis.divisor is not None:
                place, divides = self._quotient(name, axis.divisor, body)
                inside.append(divides)
            # A negative place is a large u32.
            inside.append(place < s.extent(axis.extent))
            at.append(place)
        extents = tuple(axis.extent for axis in read.axes)
        address = t.Ident(names[0]) + row_major(s, extents, at)
        is_inside = t.Ident(s.name("is_inside", "condition"))
        body.append(t.Let(is_inside.name, t.all_of(*inside)))
        element = buffer.load(t.call("select", t.ZERO, address, is_inside))
        zero = t.Literal("0.0")
        return names, t.call("select", zero, element, is_inside)

    def _quotient(
        self, name: str, divisor: ir.Expr, body: list[t.Stmt]
    ) -> tuple[t.Expr, t.Expr]:
        """Return a place divided by an integer, and the condition that it has no remainder."""
        s = self._builder
        own = {name: Value(t.call("i32", t.Ident(name)))}
        lowerer = Lowerer(s, {}, body, locals=own, label=self._name)
        place = ir.LocalValue(name, Scalar.I32)
        rest = ir.Binary("%", place, divisor, Scalar.I32)
        quotient = ir.Binary("/", place, divisor, Scalar.I32)
        named = t.Ident(s.name(f"{name}_divided", "quotient"))
        body.append(t.Let(named.name, t.call("u32", lowerer.lower(quotient).expr)))
        return named, t.Binary("==", lowerer.lower(rest).expr, t.Literal("0"))


def _axis_names(read: WindowRead) -> list[str]:
    """Return the names of the places on the axes: those of the axes, if they have different ones."""
    extents = [axis.extent for axis in read.axes]
    return [
        x if isinstance(x, str) and extents.count(x) == 1 else f"place_{number}"
        for number, x in enumerate(extents)
    ]
