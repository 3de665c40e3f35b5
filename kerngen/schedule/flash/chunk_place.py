"""The place of a workgroup in a chunk of stored gradients: heads, queries and addresses.

A chunk is an array [head, key, query] with the queries contiguous: `chunks.heads` heads, of
`chunks.lines` keys and `chunks.queries` queries each.  All heads are cut into parts of
`chunks.heads`, and the queries of a head into `rounds`: chunk number c has the queries of
round c % rounds, of the heads of part c / rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.types import Scalar
from kerngen.plan.size import Size
from kerngen.schedule.flash.chunks import Chunks
from kerngen.schedule.gemm.tiling import VECTOR
from kerngen.schedule.lowering.builder import ShaderBuilder, StorageBinding
from kerngen.schedule.lowering.values import COMPONENTS
from kerngen.schedule.sizes import to_wgsl
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class ChunkPlace:
    """The WGSL variables of a workgroup's place in a chunk.

    - `buffer`, `numbers`: the bindings of the chunk, and of the statistics of rows
    - `head`: the workgroup's head within the chunk
    - `first`, `queries`: the number of the chunk's first query, and how many queries it has
    """

    chunks: Chunks
    buffer: StorageBinding
    numbers: StorageBinding
    head: t.Ident
    first: t.Ident
    queries: t.Ident

    @classmethod
    def of(cls, shader: ShaderBuilder, chunks: Chunks, *, written: bool) -> ChunkPlace:
        """Bind the buffers, and choose names; `written` if the shader stores the chunk."""
        buffer = shader.scratch(chunks.name, Scalar.F32, written=written)
        head, first, queries = (
            t.Ident(shader.fresh(x)) for x in ("head", "first_query", "queries")
        )
        numbers = shader.scratch(chunks.numbers.name, Scalar.F32, written=False)
        return cls(chunks, buffer, numbers, head, first, queries)

    @property
    def heads(self) -> Size:
        """How many heads a chunk has."""
        return self.chunks.heads

    @property
    def is_first(self) -> t.Expr:
        """The WGSL condition that the chunk has the first queries of its heads."""
        return self.first.equals(0)

    def place(
        self, shader: ShaderBuilder, body: list[t.Stmt], head: t.Expr, heads: t.Expr
    ) -> t.Expr:
        """Append the variables of the chunk to `body`; return the number among all heads.

        `head` is the workgroup's head within the chunk, which has `heads`.  In WGSL:

            let chunk = u32(row_numbers[...]);
            let first_query = chunk % rounds * queries;
            let whole_head = chunk / rounds * heads + head;

        The WGSL returns early in workgroups past the last of all heads; those past the chunk's
        own must have returned before.
        """
        chunk, rounds, whole = (
            t.Ident(shader.fresh(x)) for x in ("chunk", "rounds", "whole_head")
        )
        # `rounds` is computed with the variable `queries`, not with its formula again.
        known = {self.chunks.queries: self.queries}
        number = self.numbers.element(to_wgsl(self.chunks.counter, shader))
        body += [
            t.Let(self.head.name, head),
            t.Let(chunk.name, t.call("u32", number)),
            t.Let(self.queries.name, to_wgsl(self.chunks.queries, shader)),
            t.Let(rounds.name, to_wgsl(self.chunks.rounds, shader, known)),
            t.Let(self.first.name, chunk % rounds * self.queries),
            t.Let(whole.name, chunk // rounds * heads + self.head),
        ]
        all_heads = shader.size(self.chunks.taker.tiles.batch)
        body.append(t.If(whole >= all_heads, (t.Return(),)))
        return whole

    def part_of(
        self,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        ends: tuple[t.Expr, t.Expr],
    ) -> tuple[t.Expr, t.Expr]:
        """Append variables for the part of the queries `ends[0]` to `ends[1]` in the chunk.

        Return the begin and the end of that part.
        """
        begin, end = (t.Ident(shader.fresh(x)) for x in ("chunk_begin", "chunk_end"))
        first: t.Expr = self.first
        if ends[0] != t.ZERO:
            first = t.call("max", ends[0], first)
        last = t.call("min", ends[1], self.first + self.queries)
        body += [t.Let(begin.name, first), t.Let(end.name, last)]
        return begin, end

    def store(
        self, shader: ShaderBuilder, key: t.Expr, query: t.Expr, value: t.Ident
    ) -> tuple[t.Stmt, ...]:
        """Return statements that store a key's gradients for four queries, from `query` on."""
        line = self.head * to_wgsl(self.chunks.lines, shader) + key
        within = t.Binary("-", query, self.first)
        if self.buffer.lanes > 1:
            at = line * (self.queries // VECTOR) + within // VECTOR
            return (self.buffer.store(at, value),)
        start = t.Ident(shader.fresh("start"))
        stores = (
            self.buffer.store(start + n, t.Member(value, component))
            for n, component in enumerate(COMPONENTS)
        )
        return (t.Let(start.name, line * self.queries + within), *stores)
