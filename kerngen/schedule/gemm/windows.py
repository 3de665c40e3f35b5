"""Factors of a product that are read in windows, such as the image of a convolution.

`x[n, q, i * step + u, j * step + v]` depends on several indices of the result, here n, i
and j, and on several of the reduction, q, u and v.  One counter goes over each of the two
groups, and finding the indices of a number takes divisions.  So the indices of the result are
found once, before the loop over terms; those of the terms are counted up in it, like the
digits of a clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import final

from kerngen.ir.nodes import Index
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.positions import places
from kerngen.schedule.lowering.values import LANES
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
        self.name = name
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
        self.name = name
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
