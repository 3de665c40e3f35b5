"""Strategy `scan` along memory: all lanes of a workgroup share a row, or several rows.

The shape, `ScanShape`, follows from the length of the rows:

    up to 16, 128, 512      1, 8, 32 lanes for a row, several rows in a workgroup
    up to 2,048             64 lanes, a workgroup for each row
    longer                  256 lanes, a workgroup for each row
    over 8,192, few rows    the same, but a workgroup for each part of a row

The first three lengths are a quarter where elements are read one by one (`edge`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from kerngen.ir.nodes import Index
from kerngen.plan.size import ALWAYS, NEVER, Guard, Literal, Size, all_of, ceil_div
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.blocks import Blocks, accumulate_blocks
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import (
    own_total,
    reduction_label,
    value_bytes,
)
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.joining import Joiner
from kerngen.schedule.lowering.positions import linear_group, unravel
from kerngen.schedule.lowering.steps import (
    last_extents,
    tensors_in_runs,
    vector_tensors,
)
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scan.form import Scan, scan_in
from kerngen.schedule.scan.shape import (
    LONG_ROW,
    MANY_ROWS,
    MAX_PARTS,
    MEDIUM,
    MEDIUM_ROW,
    RUNS,
    Cut,
    ScanShape,
    shapes,
)
from kerngen.schedule.scan.tile import RowPart, ScanTerms, TileWriter
from kerngen.schedule.sizes import (
    all_divisible,
    at_most,
    domain_size,
    extent_size,
    loop_trips,
    to_wgsl,
)
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


@final
@dataclass(frozen=True, slots=True)
class ScannedRows:
    """A scan along memory; with `subgroups`, lanes exchange totals by subgroup operations."""

    task: Task
    subgroups: bool

    @property
    def scan(self) -> Scan:
        """The stage's scan: its reduction, its direction and its index."""
        return scan_in(self.task)

    @property
    def rows(self) -> tuple[Index, ...]:
        """The indices of the rows: those of the domain but the one that is scanned."""
        return tuple(x for x in self.task.domain if x != self.scan.index)

    def variants(self, lanes: int | None) -> Iterator[Variant]:
        """Yield the variants in order of preference: vectors first, then short rows first.

        `lanes` is the schedule's option of this name, None without it.
        """
        names = self._vectors()
        extents = last_extents(self.task.stage, self.task.values, names)
        aligned = all_divisible((self.scan.index.extent, *extents), LANES)
        for shape in shapes(lanes, alone=not self.rows):
            when, read = (ALWAYS, set[str]()) if shape.width == 1 else (aligned, names)
            if (shape.width > 1 and not names) or when == NEVER:
                continue
            # A schedule's few lanes take rows of any length, in a loop over tiles.
            if lanes and shape.rows > 1:
                yield Variant(_shared(shape), when, (self._whole(shape, read),))
            else:
                few = lanes is None and shape.lanes == MEDIUM
                yield from (self._of_medium if few else self._of_shape)(
                    shape, when, read
                )

    def _of_shape(
        self, shape: ScanShape, when: Guard, names: set[str]
    ) -> Iterator[Variant]:
        """Yield the variants of a shape, each for the calls that the one before leaves.

        Where rows share a workgroup, that is one variant, for rows of up to a tile.  Else
        it is one for whole rows, and one for few and long rows in parts.
        """
        if shape.rows > 1:
            short = all_of(when, at_most((self.scan.index,), shape.tile))
            if short != NEVER:
                shader = self._whole(shape, names, is_short=True)
                yield Variant(_name(shape), short, (shader,))
            return
        whole = self.cut(shape).is_needless(LONG_ROW, self.rows, MANY_ROWS)
        if (wanted := all_of(when, whole)) != NEVER:
            yield Variant(_name(shape), wanted, (self._whole(shape, names),))
        if whole != ALWAYS:
            yield self._in_parts(shape, when, names)

    def _of_medium(
        self, shape: ScanShape, when: Guard, names: set[str]
    ) -> Iterator[Variant]:
        """Yield the variants for rows of medium length, a workgroup for each."""
        medium = all_of(when, at_most((self.scan.index,), MEDIUM_ROW))
        if medium != NEVER:
            name = f"{_file_name(shape)}_upto{MEDIUM_ROW}"
            yield Variant(name, medium, (self._whole(shape, names, name=name),))

    def _vectors(self) -> set[str]:
        """Return the tensors that are read or written by vectors along a row.

        There are none unless the rows of all of them are as long as those of the scan.
        """
        scan, stage, values = self.scan, self.task.stage, self.task.values
        terms = tensors_in_runs((scan.term,), scan.own)
        names = terms | vector_tensors(stage, values, scan.index)
        extents = last_extents(stage, values, names)
        is_whole = all(extent == scan.index.extent for extent in extents)
        return names if is_whole else set()

    # One dispatch

    def _whole(
        self,
        shape: ScanShape,
        names: set[str],
        *,
        is_short: bool = False,
        name: str = "",
    ) -> DispatchShader:
        """Return the shader that scans whole rows, of one tile each if they are short."""
        shader = ShaderBuilder(self.task, dict.fromkeys(names, LANES))
        row = t.Ident(shader.fresh("row"))
        number, total = linear_group(shader), shader.size(self.rows)
        place: t.Expr = shader.lane
        lanes = t.u32(shape.lanes)
        body: list[t.Stmt] = []
        inside = None
        if shape.rows > 1:
            # How many lanes a row has is a pipeline's constant: one shader for all lengths.
            #     let own = lane % LANES;
            #     let row = group * (256u / LANES) + lane / LANES;
            lanes = shader.override("LANES", shape.lanes)
            number = number * (t.u32(shape.workgroup) // lanes) + shader.lane // lanes
            place = shader.let(body, "own", shader.lane % lanes)
            inside = row < total
        body.append(t.Let(row.name, number))
        if shape.rows == 1:
            # All lanes return together; rows that share a workgroup must come to barriers.
            body.append(t.If(row >= total, (t.Return(),)))
        to = self._lowerer(shader, body, row)
        length = shader.extent(self.scan.index.extent)
        line = RowPart(t.ZERO, length, length, place, inside, is_short)
        self._writer(to, shape, lanes).write(line)
        shared = (
            "LANES of a workgroup per row" if shape.rows > 1 else "a workgroup per row"
        )
        return shader.finish(
            body,
            groups=ceil_div(domain_size(self.rows), shape.rows),
            workgroup_size=shape.workgroup,
            summary=f"{shared}, read once.",
            variant=name
            or (_file_name(shape) if is_short or shape.rows == 1 else _shared(shape)),
            trips=self._trips(ceil_div(self._length, shape.tile)),
        )

    # Two dispatches

    def _in_parts(self, shape: ScanShape, when: Guard, names: set[str]) -> Variant:
        """Return the variant that cuts rows into parts: two shaders, and a buffer of totals."""
        shaders = self._totals(shape, names), self._behind(shape, names)
        # Sizes of scratch buffers are in words of four bytes.
        words = value_bytes(self.scan.reduce.type) // 4
        length = domain_size(self.rows) * self.cut(shape).count * words
        scratch = Scratch(self.task.scratch_name("parts"), length)
        return Variant(f"parts_{_name(shape)}", when, shaders, (scratch,))

    def _totals(self, shape: ScanShape, names: set[str]) -> DispatchShader:
        """Return the first shader of two: it stores the total of each part.

        In WGSL:

            for (var place = start + lane * 4u; place < end; place += 4096u) {
                ...
                total += term + term1 + (term2 + term3);
            }
            let whole = row_sum(total.x + total.y + (total.z + total.w), lane);
            if (lane == 0u) { parts[group] = whole; }
        """
        shader = ShaderBuilder(self.task, dict.fromkeys(names, LANES))
        body, scan = list[t.Stmt](), self.scan
        part = PartOfRow.named(shader, body, self.cut(shape), self.rows)
        terms = self._terms(self._lowerer(shader, body, part.row), shape)
        length, width = shader.extent(scan.index.extent), shape.width

        def term(place: t.Ident, block: list[t.Stmt]) -> t.Expr:
            return terms.term(terms.element(place, length), block)

        # Each lane adds up its runs of the part, four runs in a turn.
        total = t.Ident(shader.fresh("total"))
        blocks = Blocks(
            shader.fresh("place"),
            start=part.start + shader.lane * width,
            end=part.end,
            step=shape.step,
            turn=t.u32(shape.tile),
            at_once=RUNS,
        )
        reduced = scan.reduce.kind, scan.reduce.type, width
        body += accumulate_blocks(shader, total, reduced, blocks, term)
        # The lanes join their totals, and lane 0 stores the part's.
        whole = t.Ident(shader.fresh("whole"))
        own = own_total(scan.reduce, total, width)
        body.append(t.Let(whole.name, self._joined(shader, shape, own)))
        parts = shader.scratch("parts", scan.reduce.type, written=True)
        store = parts.store(part.group, whole)
        body.append(t.If(shader.lane.equals(0), (store,)))
        return shader.finish(
            body,
            groups=domain_size(self.rows) * self.cut(shape).count,
            workgroup_size=shape.workgroup,
            summary="first of two dispatches: the total of each part of a row.",
            variant=f"totals_{_name(shape)}",
            trips=self._trips(ceil_div(self.cut(shape).length, shape.tile)),
        )

    def _behind(self, shape: ScanShape, names: set[str]) -> DispatchShader:
        """Return the second shader of two: it scans each part behind those before it.

        All lanes of a workgroup add up the totals of the row's earlier parts first, four at
        a time: the sum is `carried` when the scan begins.
        """
        shader = ShaderBuilder(self.task, dict.fromkeys(names, LANES))
        body, reduce = list[t.Stmt](), self.scan.reduce
        part = PartOfRow.named(shader, body, self.cut(shape), self.rows)
        to = self._lowerer(shader, body, part.row)
        parts = shader.scratch("parts", reduce.type, written=False)
        first = part.row * part.count
        # `carried`: the sum of the totals of the row's parts before this one.
        total = t.Ident(shader.fresh("total"))
        blocks = Blocks(
            shader.fresh("earlier"),
            start=shader.lane,
            end=part.number,
            step=shape.lanes,
            turn=t.u32(shape.lanes * RUNS),
            at_once=RUNS,
        )
        body += accumulate_blocks(
            shader,
            total,
            (reduce.kind, reduce.type, 1),
            blocks,
            lambda at, _: parts.load(first + at),
        )
        carried = self._joined(shader, shape, total)
        # The scan itself, as for whole rows, but from `start` to `end`.
        length = shader.extent(self.scan.index.extent)
        line = RowPart(part.start, part.end, length, shader.lane)
        self._writer(to, shape, t.u32(shape.lanes)).write(line, carried)
        tiles = ceil_div(self.cut(shape).length, shape.tile)
        return shader.finish(
            body,
            groups=domain_size(self.rows) * self.cut(shape).count,
            workgroup_size=shape.workgroup,
            summary="second of two dispatches: each part behind those before it.",
            variant=f"behind_{_name(shape)}",
            trips=self._trips(tiles + ceil_div(MAX_PARTS, shape.lanes * RUNS)),
        )

    # Shared by one and two dispatches

    @property
    def _length(self) -> Size:
        return extent_size(self.scan.index.extent)

    def cut(self, shape: ScanShape) -> Cut:
        """Return how rows are cut into parts where they are few and long."""
        return Cut(self.scan.index, shape.tile, Literal(MAX_PARTS))

    def _writer(self, to: Lowerer, shape: ScanShape, lanes: t.Expr) -> TileWriter:
        terms = self._terms(to, shape)
        return TileWriter(terms, shape, lanes, subgroups=self.subgroups)

    def _terms(self, to: Lowerer, shape: ScanShape) -> ScanTerms:
        vector = self.scan.index if shape.width > 1 else None
        return ScanTerms(to, self.scan, vector)

    def _lowerer(
        self, shader: ShaderBuilder, body: list[t.Stmt], row: t.Expr
    ) -> Lowerer:
        at = unravel(shader, body, self.rows, row) if self.rows else {}
        return Lowerer(shader, at, body, label=reduction_label(self.task))

    def _joined(self, shader: ShaderBuilder, shape: ScanShape, own: t.Expr) -> t.Expr:
        """Return the total over all lanes of a workgroup, which every lane has."""
        lanes, reduce = shape.lanes, self.scan.reduce
        joiner = Joiner(shader, lanes, lanes, subgroups=self.subgroups)
        return joiner.joined(reduce.kind, reduce.type, own)

    def _trips(self, tiles: Size) -> Size:
        return loop_trips(self.task, {self.scan.reduce: tiles})


def _name(shape: ScanShape) -> str:
    """Return the name of a shape's variant: `aligned`, `edge_upto32`."""
    name = _file_name(shape)
    return f"{name}{shape.tile}" if shape.rows > 1 else name


def _shared(shape: ScanShape) -> str:
    """Return the name of the variant for several short rows in a workgroup."""
    return "aligned_shared" if shape.width > 1 else "edge_shared"


def _file_name(shape: ScanShape) -> str:
    """Return the name of a shape's file, the same for all numbers of lanes."""
    name = "aligned" if shape.width > 1 else "edge"
    return f"{name}_upto" if shape.rows > 1 else name


# The part of a row that a workgroup scans.


@final
@dataclass(frozen=True, slots=True)
class PartOfRow:
    """The part of a row that a workgroup scans, as the names of the shader's variables.

    - `group`: the number of the workgroup, and of the part among those of all rows
    - `row`: the number of the row, which has `count` parts
    - `number`: the part's number in its row
    - `start`, `end`: where the part begins and ends in the row
    """

    group: t.Ident
    row: t.Ident
    number: t.Ident
    count: t.Ident
    start: t.Ident
    end: t.Ident

    @classmethod
    def named(
        cls,
        shader: ShaderBuilder,
        body: list[t.Stmt],
        cut: Cut,
        rows: tuple[Index, ...],
    ) -> PartOfRow:
        """Append the part's variables to `body`, and a return of workgroups past the last part.

        In WGSL:

            let size = max((u.n + 8388607u) >> 23u, 1u) * 4096u;    // 2048 parts at most
            let count = (u.n + size - 1u) / size;
            let group = workgroup.y * grid.x + workgroup.x;
            if (group >= u.m * count) { return; }
            let row = group / count;
            let part = group % count;
            let start = part * size;
            let end = min(start + size, u.n);
        """
        group, row, number, count, start, end, size = (
            t.Ident(shader.fresh(name))
            for name in ("group", "row", "part", "count", "start", "end", "size")
        )
        known = {cut.length: size}
        length = shader.extent(cut.index.extent)
        body += [
            t.Let(size.name, to_wgsl(cut.length, shader)),
            t.Let(count.name, to_wgsl(cut.count, shader, known)),
            t.Let(group.name, linear_group(shader)),
            t.If(group >= shader.size(rows) * count, (t.Return(),)),
            t.Let(row.name, group // count),
            t.Let(number.name, group % count),
            t.Let(start.name, number * size),
            t.Let(end.name, t.call("min", start + size, length)),
        ]
        return cls(group, row, number, count, start, end)
