"""Factors of a product that are read in windows, such as the image of a convolution.

`x[n, q, i * step + u, j * step + v]` depends on several indices of the result, here n, i
and j, and on several of the reduction, q, u and v.  One counter goes over each of the two
groups, and finding the indices of a number takes divisions.  So the indices of the result are
found once, before the loop over terms; those of the terms are counted up in it, like the
digits of a clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import final

from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Binary, Constant, Expr, Index, UniformValue
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk
from kerngen.schedule.gemm.pointwise import pointwise_of
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.per_element import places
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t


@final
class Neighbours:
    """Four positions in the row-major order of several indices, and the index values of each.

    Position 7 of indices n < 2, i < 2 and j < 3 is n 1, i 0, j 1.  A position beyond the last
    one is replaced by the last one.
    """

    def __init__(
        self, builder: ShaderBuilder, group: tuple[Index, ...], name: str, gap: int
    ) -> None:
        """Name the indices of each; they lie `gap` apart."""
        self._gap = gap
        self._builder = builder
        self._group = group
        self._flat = [t.Ident(builder.fresh(f"{name}_place_{n}")) for n in range(LANES)]
        self.at = [
            {
                index: t.Ident(builder.fresh(f"{name}_{index.name}_{n}"))
                for index in group
            }
            for n in range(LANES)
        ]

    def find(self, first: t.Expr) -> Iterator[t.Stmt]:
        """Yield `let`s of the index values at position `first`, and at its three neighbours."""
        s = self._builder
        last = t.Binary("-", s.size(self._group), t.ONE)
        for n, (flat, named) in enumerate(zip(self._flat, self.at, strict=True)):
            yield t.Let(flat.name, t.call("min", first + n * self._gap, last))
            for index, value in places(s, self._group, flat).items():
                yield t.Let(named[index].name, value)


@final
class Digits:
    """The index values of a term, whose number grows by `step` from turn to turn.

    The indices are digits of the term's number, of which the last one changes fastest.  With
    indices q, u and v, the digits of the step are `step_q`, `step_u` and `step_v`:

        q += step_q; u += step_u; v += step_v;
        if v >= v_length { v -= v_length; u += 1; }
        if u >= u_length { u -= u_length; q += 1; }
    """

    def __init__(
        self, builder: ShaderBuilder, over: tuple[Index, ...], name: str, step: int
    ) -> None:
        """Name the indices, and the digits of the step."""
        self._builder = builder
        self._over = over
        self._step = step
        self._named = {i: t.Ident(builder.fresh(f"{name}_{i.name}")) for i in over}
        self._steps = {i: t.Ident(builder.fresh(f"{name}_step_{i.name}")) for i in over}

    @property
    def at(self) -> dict[Index, t.Expr]:
        """The index values of the current term; past the last one, those of another."""
        first = self._over[0]
        last = t.Binary("-", self._builder.extent(first.extent), t.ONE)
        return {**self._named, first: t.call("min", self._named[first], last)}

    def declare(self) -> Iterator[t.Stmt]:
        """Yield the digits of the step, and declarations of the variables of the indices."""
        for index, value in places(
            self._builder, self._over, t.u32(self._step)
        ).items():
            yield t.Let(self._steps[index].name, value)
            yield t.Var(self._named[index].name, None, "u32")

    def begin(self, term: t.Expr) -> Iterator[t.Stmt]:
        """Yield assignments of the first term's index values, found by divisions."""
        for index, value in places(self._builder, self._over, term).items():
            yield t.Assign(self._named[index], value)

    def advance(self) -> Iterator[t.Stmt]:
        """Yield statements that go to the term that is `step` further on, without divisions."""
        for index in self._over:
            yield t.Assign(self._named[index], self._steps[index], "+=")
        inner_first = [*reversed(self._over)]
        for index, outer in pairwise(inner_first):
            digit, extent = self._named[index], self._builder.extent(index.extent)
            carry = (
                t.Assign(digit, t.Binary("-", digit, extent)),
                t.Assign(self._named[outer], t.ONE, "+="),
            )
            yield t.If(digit >= extent, carry)


@final
class WindowReader:
    """Builds the reads of a factor's vectors: four calls of a WGSL function for one element.

    A factor that divides by integers of the call has a second function, for divisors of 1,
    and one read in windows has another, for windows of one element (`pointwise.py`):

        if (b_is_single) { b_load = vec4f(b_element(...), ...); }
        if (!b_is_single) { b_load = vec4f(b_element_(...), ...); }
    """

    def __init__(
        self,
        builder: ShaderBuilder,
        factor: Expr,
        name: str,
        over: tuple[Index, ...] = (),
    ) -> None:
        """Find the factor's special forms; functions are declared when they are called."""
        self._builder = builder
        self._factor = factor
        self._name = name
        self._declared: dict[Expr, str] = {}
        self._undivided = _undivided(factor)
        self._single = pointwise_of(self._undivided, over, builder.function)
        self._is_single = t.Ident(builder.fresh(f"{name}_is_single"))
        self._is_undivided = t.Ident(builder.fresh(f"{name}_is_undivided"))

    @property
    def _divides(self) -> bool:
        return self._undivided != self._factor

    def declare(self) -> Iterator[t.Stmt]:
        """Yield variables for the conditions under which the factor's special forms apply.

        They are the same in all invocations and turns, so that they are tested before the
        loop.
        """
        s, lowerer = self._builder, Lowerer(self._builder, {}, [])
        ones: list[t.Expr] = []
        if self._divides:
            divisors = sorted({*_divisors(self._factor)}, key=lambda each: each.name)
            ones = [t.call("u32", lowerer.lower(x).expr).equals(1) for x in divisors]
            yield t.Let(self._is_undivided.name, t.all_of(*ones))
            ones = [self._is_undivided]
        if self._single:
            found = self._single
            conditions = [
                *ones,
                *(
                    t.call("u32", lowerer.lower(x).expr).equals(n)
                    for x, n in found.numbers
                ),
                *(s.extent(extent).equals(1) for extent in found.single),
                *(t.Binary("<=", s.extent(a), s.extent(b)) for a, b in found.within),
            ]
            yield t.Let(self._is_single.name, t.all_of(*conditions))

    def cases(self) -> Iterator[tuple[Expr, t.Expr | None]]:
        """Yield each form of the factor with its condition; None if there is only one form."""
        others: list[t.Expr] = []
        if self._single:
            yield self._single.element, self._is_single
            others.append(t.Unary("!", self._is_single))
        if self._divides:
            yield self._undivided, t.all_of(*others, self._is_undivided)
            others = [t.Unary("!", self._is_undivided)]
        yield self._factor, t.all_of(*others) if others else None

    def vector(
        self,
        form: Expr,
        batch: Mapping[Index, t.Expr],
        neighbours: Neighbours,
        term: Mapping[Index, t.Expr],
    ) -> t.Expr:
        """Return four elements of a term, at `neighbours`, read by a form of the factor."""
        used = free_indices(self._factor)
        each = [{**batch, **at, **term} for at in neighbours.at]
        indices = [index for index in each[0] if index in used]
        function = self._declared.get(form) or self._declare(form, indices)
        elements = (t.call(function, *(at[i] for i in indices)) for at in each)
        return t.Call(wgsl_type(form.type, LANES), tuple(elements))

    def _declare(self, form: Expr, indices: list[Index]) -> str:
        s = self._builder
        function = self._declared[form] = s.fresh(f"{self._name}_element")
        named = {index: s.name(index.name) for index in indices}
        body: list[t.Stmt] = []
        at: dict[Index, t.Expr] = {i: t.Ident(name) for i, name in named.items()}
        value = Lowerer(s, at, body, label=self._name).lower(form).expr
        body.append(t.Return(value))
        parameters = tuple((name, "u32") for name in named.values())
        about = f"An element of the operand {self._name}."
        s.declare(
            f"function {function}",
            wgsl.Function(
                function, parameters, wgsl_type(form.type), tuple(body), about
            ),
        )
        return function


def _divisors(factor: Expr) -> Iterator[UniformValue]:
    """Yield the integers of the call that a factor divides by.

    In the gradient of a convolution that is the stride, which mostly is 1: divisions would
    take as long as the product.
    """
    for node in walk(factor):
        if isinstance(node, Binary) and node.op in ("/", "%"):
            integer = node.type in (Scalar.I32, Scalar.U32)
            if integer and isinstance(node.right, UniformValue):
                yield node.right


def _undivided(factor: Expr) -> Expr:
    """Return a factor with all divisors replaced by 1."""
    own = {*_divisors(factor)}

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Binary) and expr.right in own:
            if expr.op == "/":
                return visit(expr.left)
            if expr.op == "%" and isinstance(expr.type, Scalar):
                return Constant(0, expr.type)
        return map_children(expr, visit)

    return visit(factor)
