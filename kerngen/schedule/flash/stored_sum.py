"""The shaders of chunks besides the pass that makes them: the sum of dq, and the counter.

dq of a chunk's queries is a product of the stored gradients of scores and the keys, with the
loop of `tile_pass.py` for products, and no loop over keys around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.types import Scalar
from kerngen.plan.size import Literal, Size, ceil_div
from kerngen.schedule.contraction import Contraction
from kerngen.schedule.flash.attention import SUM
from kerngen.schedule.flash.chunk_place import ChunkPlace
from kerngen.schedule.flash.chunks import Chunks
from kerngen.schedule.flash.key_bounds import KeyBounds, mask_of
from kerngen.schedule.flash.tile_pass import (
    KeyPass,
    TileProduct,
    keys_in_vectors,
    values_in_vectors,
    weighted_values,
)
from kerngen.schedule.flash.tiling import FlashTiling
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.sizes import extent_size, to_wgsl
from kerngen.schedule.task import Task
from kerngen.shader import tree as t

_QUERIES: Final = "queries of a chunk"
_KEYS: Final = "keys of a chunk"
_HEADS: Final = "heads of a chunk"
"""The names of the lengths of a chunk's axes; no dim has a name with a space."""


def counting_shader(task: Task, chunks: Chunks, *, first: int) -> DispatchShader:
    """Return the shader of one invocation that counts the chunks.

    `first` is the value of its override FIRST: with 1 it sets the count to 0, else it adds 1:

        row_numbers[place] = select(row_numbers[place] + 1.0, 0.0, FIRST == 1u);
    """
    s = ShaderBuilder(replace(task, label=f"{task.label}.count"), {})
    buffer = s.scratch(chunks.numbers.name, Scalar.F32, written=True)
    place = t.Ident(s.fresh("place"))
    following = buffer.load(place) + t.Literal("1.0")
    is_first = s.override("FIRST", first).equals(1)
    none = t.Literal("0.0")
    body: list[t.Stmt] = [
        t.Let(place.name, to_wgsl(chunks.counter, s)),
        buffer.store(place, t.call("select", following, none, is_first)),
    ]
    return s.finish(
        body,
        groups=Literal(1),
        workgroup_size=1,
        summary="one invocation counts the chunks of stored gradients.",
    )


@final
class StoredSumShader(KeyPass):
    """Builds the shader of dq: the product of a chunk's stored gradients and the keys."""

    def __init__(
        self, task: Task, chunks: Chunks, tiling: FlashTiling, *, whole: bool
    ) -> None:
        """Declare the tiles."""
        # The chunk as a tensor [head, key, query], read at the indices of a product whose rows
        # are the queries of the chunk.
        self.sum, tiles = chunks.sum, chunks.taker.tiles
        row = ir.Index(task.scratch_name("stored_row"), _QUERIES)
        self.head = ir.Index(task.scratch_name("stored_head"), _HEADS)
        stored = (self.head, tiles.key, row)
        extents = (_HEADS, _KEYS, _QUERIES)
        tensor = ir.Tensor(chunks.name, Scalar.F32, extents, ir.Role.LET)
        weights = ir.Load(tensor, tuple(map(ir.IndexValue, stored)))
        column = self.sum.column
        found = weighted_values(self.sum.value, tiles.key, column, row)
        self.found: Contraction = replace(found, left=weights)
        wide = values_in_vectors(self.sum.value, tiles.key, column, self.sum.finish)
        ends = row, column
        wide.add(chunks.name)
        whole_keys = keys_in_vectors((), ((self.sum.value, column),), tiles.key)
        super().__init__(
            task,
            tiling,
            ends,
            tiles.batch,
            wide,
            whole=whole,
            whole_keys=whole_keys,
            summed=tiles.key,
        )
        self.builder.set_length(_QUERIES, to_wgsl(chunks.queries, self.builder))
        self.builder.set_length(_KEYS, to_wgsl(chunks.lines, self.builder))
        self.builder.set_length(_HEADS, to_wgsl(chunks.heads, self.builder))
        self.chunks = ChunkPlace.of(self.builder, chunks, written=False)
        query, keys = self.operands(self.found)
        sums = RegisterTile(self.builder, self.rows, self.found, query, keys, "acc")
        self.product = TileProduct(self.found, query, keys, sums)
        self.name_places()

    @property
    def row_count(self) -> Size:
        """How many rows all tiles have together: the queries of a chunk."""
        assert self.chunks, "set when it is made"
        return self.chunks.chunks.queries

    def shader(self) -> DispatchShader:
        """Build and return the shader."""
        t_, column = self.tiling, self.sum.column
        self._place()
        query, keys, sums = self.product.rows, self.product.keys, self.product.sums
        query.origin, keys.origin = self.tile_row, self.tile_column
        own_column, own_row = sums.own_place()
        sums.put(self.column, self.row)
        self.body += [
            t.Blank(),
            t.Let(self.column.name, own_column),
            t.Let(self.row.name, own_row),
        ]
        for operand in (query, keys):
            self.body += [*operand.place(self.at), *operand.declare()]
        self.body += [*sums.declare(), t.Blank()]
        self.body += self.multiply(self.product, self.begin, self.end)
        self.body += [t.Blank(), *self._finish()]
        terms = extent_size(self.found.last.extent)
        return self.builder.finish(
            self.body,
            groups=self.tile_count((column,)),
            workgroup_size=self.rows.invocations,
            summary=(
                f"one workgroup per {t_.queries} rows of a chunk and {t_.columns} "
                f"columns; the weights are stored."
            ),
            variant=".".join(
                (self.sum.finish.name, *(() if self.whole else ("edge",)))
            ),
            trips=ceil_div(terms, t_.terms),
        )

    def _place(self) -> None:
        """Write the workgroup's tile, and which keys its rows have."""
        s, chunks = self.builder, self.chunks
        assert chunks, "set above"
        taker = chunks.chunks.taker
        self.result_row = taker.tiles.row
        bounds = KeyBounds.of_mask(
            mask_of(self.sum.weight), self.result_row, taker.tiles.key
        )
        self.place_tile((self.sum.column,), bounds)
        self.first_row = self.let("first_row", chunks.first + self.tile_row)
        count = s.extent(self.result_row.extent)
        self.body.append(t.If(self.first_row >= count, (t.Return(),)))
        self.at[self.head] = chunks.head
        end = t.call("min", self.first_row + self.tiling.queries, count)
        ends = self.first_row, t.Binary("-", end, t.ONE)
        self.begin, self.end = bounds.write(s, self.body, ends, self.tiling.terms)

    def _finish(self) -> list[t.Stmt]:
        """Do the stage's steps with every sum."""
        finish, column = self.sum.finish, self.sum.column
        wide = self.whole and finish.domain[-1] == column

        def sums(given: tuple[t.Ident, ...]) -> Mapping[str, Value]:
            return {SUM.name: Value(given[0], wide=wide)}

        name = self.declare_steps(
            "finish",
            finish,
            (self.result_row, column),
            "What becomes of a sum, or of four neighbouring ones.",
            {"weighted": wgsl_type(Scalar.F32, LANES if wide else 1)},
            sums,
            column if wide else None,
        )
        return self.finished(name, finish.domain, column, self.product.sums)
