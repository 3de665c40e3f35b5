"""The scan of the totals of lanes that share a row, for four runs at once.

Either in steps over workgroup memory, or by subgroups where the adapter has them:

    at first   a  b   c   d    e     f     ...
    step 1     a  ab  abc abcd bcde  cdef  ...
    step 2     a  ab  abc abcd abcde abcdef ...

WGSL has no `max` or `min` over the lanes before, so subgroups take such steps, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from kerngen.ir.nodes import Reduce, ReduceKind
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import value_bytes
from kerngen.schedule.lowering.identities import accumulate, combine, identity
from kerngen.schedule.lowering.joining import JOINED
from kerngen.schedule.scan.shape import RUNS, Shape
from kerngen.shader import tree as t


@final
class LaneScan:
    """Writes the scan over lanes: totals `before` a lane, and of the `whole`."""

    def __init__(
        self,
        shader: ShaderBuilder,
        reduce: Reduce,
        shape: Shape,
        lanes: t.Expr,
        *,
        subgroups: bool,
    ) -> None:
        """Scan with `shader` over `lanes` lanes; subgroups only scan a whole workgroup."""
        self._shader = shader
        self._shape = shape
        self._count = lanes
        self._kind: ReduceKind = reduce.kind
        self._type = reduce.type
        self._subgroups = subgroups and shape.rows == 1
        self.before, self.whole, self._total, self._side, self._apart = (
            t.Ident(shader.fresh(name))
            for name in ("before", "whole", "total", "side", "apart")
        )
        self._shared = self._declare()

    def write(self, totals: t.Expr, place: t.Expr) -> Iterator[t.Stmt]:
        """Yield the scan of all lanes' totals; `place` is the lane's number in its row.

        Before the next scan a barrier is needed: others may still read.
        """
        yield t.Var(self._total.name, totals)
        yield from self._by_subgroups() if self._subgroups else self._in_steps(place)

    @property
    def _nothing(self) -> t.Expr:
        return identity(self._shader, self._kind, self._type, RUNS)

    def _declare(self) -> t.Expr:
        """Declare two sides of workgroup memory: a step reads one and writes the other."""
        count = self._shape.workgroup * (1 if self._subgroups else 2)
        type_ = f"array<{wgsl_type(self._type, RUNS)}, {count}>"
        size = count * RUNS * value_bytes(self._type)
        return self._shader.workgroup_array("totals", type_, size)

    def _in_steps(self, place: t.Expr) -> Iterator[t.Stmt]:
        total, side, apart = self._total, self._side, self._apart
        lane, shared, all_lanes = self._shader.lane, self._shared, self._shape.workgroup
        mine = side + lane

        def take(distance: t.Expr) -> t.Stmt:
            other = shared[t.Binary("-", mine, distance)]
            taken = accumulate(self._kind, total, other)
            return t.If(place >= distance, (taken,))

        step = (
            t.Assign(shared[mine], total),
            t.BARRIER,
            *(take(apart * number) for number in range(1, JOINED)),
            t.Assign(side, t.Binary("-", t.u32(all_lanes), side)),
        )
        yield t.Var(side.name, t.ZERO)
        yield t.For(
            apart.name,
            t.ONE,
            apart < self._count,
            t.Assign(apart, t.u32(JOINED), "*="),
            step,
        )
        yield t.Assign(shared[mine], total)
        yield t.BARRIER
        yield t.Var(self.before.name, self._nothing)
        earlier = t.Assign(self.before, shared[t.Binary("-", mine, t.ONE)])
        yield t.If(place > 0, (earlier,))
        last = t.Binary("-", mine + self._count, place + 1)
        yield t.Let(self.whole.name, shared[last])

    def _by_subgroups(self) -> Iterator[t.Stmt]:
        total, apart, kind = self._total, self._apart, self._kind
        shader, shared = self._shader, self._shared
        size, place = shader.subgroup
        moved, number = (t.Ident(shader.fresh(name)) for name in ("moved", "number"))
        step = (
            t.Let(moved.name, t.call("subgroupShuffleUp", total, apart)),
            t.If(place >= apart, (accumulate(kind, total, moved),)),
        )
        yield t.For(
            apart.name,
            t.ONE,
            apart < size,
            t.Assign(apart, t.ONE, "<<="),
            step,
        )
        own = shader.lane // size
        lanes = self._shape.lanes
        last = t.Binary("-", t.call("min", size, lanes), t.ONE)
        yield t.If(place.equals(last), (t.Assign(shared[own], total),))
        yield t.BARRIER
        yield t.Let(moved.name, t.call("subgroupShuffleUp", total, t.ONE))
        yield t.Var(self.before.name, self._nothing)
        yield t.Var(self.whole.name, self._nothing)
        take = accumulate(kind, self.whole, shared[number])
        mine = t.If(number.equals(own), (t.Assign(self.before, self.whole),))
        count = (size + (lanes - 1)) // size
        yield t.count_up(number.name, 0, count, 1, mine, take)
        inside = t.Assign(self.before, combine(kind, self.before, moved))
        yield t.If(place > 0, (inside,))
