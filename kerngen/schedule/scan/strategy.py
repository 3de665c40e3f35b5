"""Strategy `scan`: prefix and suffix reductions, and affine recurrences.

    y[j] = sum[p when p <= j] x[p]     a prefix: y[j] = y[j - 1] + x[j]
    h[t] = a[t] * h[t - 1] + b[t]      an affine recurrence

A row is all elements along the index that is scanned, j or t.  Neighbouring lanes read
neighbouring memory.  Where memory is contiguous along a row, several lanes share the row:
`rows.py`.  Where it is contiguous across rows, each lane scans a row of its own:
`across.py`.  Affine recurrences are at the end of this file, and in `affine_tiles.py`.

Few and long rows are cut into parts: a first dispatch stores the total of each part, and
a second one scans the parts, each beginning with the totals of the parts before it.  No
workgroup waits for another one of its dispatch, as WebGPU does not promise that both run
at the same time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.staging.stages import Write
from kerngen.ir.types import Scalar
from kerngen.plan import size as host
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import value_bytes
from kerngen.schedule.lowering.joining import by_subgroups
from kerngen.schedule.lowering.positions import linear_group
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.recurrence.blocks import in_vectors, turns_of
from kerngen.schedule.recurrence.strategy import row_shader
from kerngen.schedule.recurrence.turn import loop_of
from kerngen.schedule.scalar_only import why_not_scalar_only
from kerngen.schedule.scan.across import lower_across
from kerngen.schedule.scan.affine_form import affine_step
from kerngen.schedule.scan.affine_tiles import (
    INVOCATIONS,
    JOINED_STEP,
    NO_STEP,
    STEPS,
    AffineTiles,
)
from kerngen.schedule.scan.form import fits_prefixes, scan_in
from kerngen.schedule.scan.rows import PartOfRow, ScannedRows
from kerngen.schedule.scan.shape import ALONE, LONG_ROW, MANY_ROWS, MAX_PARTS, Cut
from kerngen.schedule.sizes import domain_size, extent_size
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t


def fits_scan(task: Task) -> str:
    """Return why `scan` does not fit the stage, or "" if it does."""
    if task.stage.loop is not None:
        return fits_affine(task)
    return why_not_scalar_only(task.stage) or fits_prefixes(task)


def scan_options(options: Options) -> Hashable:
    """Return the options `lanes`, `subgroups` and `redo`, or their defaults.

    Schedules for which these are equal share their shaders.
    """
    return options.get("lanes"), by_subgroups(options), _redoes(options)


def _redoes(options: Options) -> bool:
    """Return whether the schedule has `redo(1)`, for affine recurrences alone."""
    return options.get("redo", (0,)) == (1,)


def suits_scan(task: Task, options: Options) -> str:
    """Return why a stage that `scan` fits does not suit the options, or "" if it does."""
    # Without the option, any power of two passes the first check.
    (lanes,) = options.get("lanes", (2,))
    if lanes & (lanes - 1):
        return f"{lanes} lanes are not a power of two"
    if task.stage.loop is not None:
        if by_subgroups(options):
            return "no subgroup joins steps"
        return suits_redo(task) if _redoes(options) else ""
    if _redoes(options):
        return "prefixes have no factors that grow"
    if "lanes" in options and lanes < ALONE and by_subgroups(options):
        return f"rows of fewer than {ALONE} lanes share a workgroup, not subgroups"
    if runs_across(task) and options:
        return "memory runs across its rows, and each lane scans one of its own"
    return ""


def runs_across(task: Task) -> bool:
    """Whether memory is contiguous across the rows that are scanned."""
    return scan_in(task).index != task.domain[-1]


def lower_scan(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: by whether rows are many, long, and can be read as vectors."""
    (lanes,) = options.get("lanes", (None,))
    if task.stage.loop is not None:
        yield from lower_affine(task, lanes, redo=_redoes(options))
        return
    if runs_across(task):
        yield from lower_across(task)
        return
    yield from ScannedRows(task, by_subgroups(options)).variants(lanes)


# Affine recurrences, `h[t] = factor * h[t - 1] + term`: lanes share a row, eight steps each.
#
# Several such steps joined are one step of the same form.  A workgroup scans a row tile by
# tile, in three phases:
#
#     tile       lane 0: steps 0 to 7    lane 1: steps 8 to 15    ...
#     1. join    lane 0: s0              lane 1: s1               each lane's eight steps as one
#     2. scan    lane 0: nothing         lane 1: s0               what is before the lane's own
#     3. steps   h[0], h[1], ...         h[8], h[9], ...          a loop, from the state of 2.
#
# Few and long rows are cut into parts, in two dispatches.  The order in which steps are
# joined is fixed.


_CLEARED: Final = t.Evaluate(t.Call("storageBarrier", ()))
"""Waits until lane 0 has cleared the row's flag, before other lanes of it may set it."""


def fits_affine(task: Task) -> str:
    """Return why `scan` can't run a stage as an affine recurrence, or "" if it can."""
    found = affine_step(task.stage)
    return found if isinstance(found, str) else ""


def suits_redo(task: Task) -> str:
    """Return why rows can't be computed again, as the option `redo` does, or ""."""
    written = {s.tensor for s in turns_of(task.stage) if isinstance(s, Write)}
    over = sorted(each.name for each in written & task.stage.tensors_read)
    return f"'{over[0]}' is written over, and can't be read again" if over else ""


def lower_affine(task: Task, lanes: int | None, *, redo: bool) -> Iterator[Variant]:
    """Yield the variants: with reads in vectors first, and for whole rows or their parts.

    With `redo`, a last dispatch computes rows again, by a loop over the steps, if their
    joined factors come to more than 2 or a state is not finite: `AffineTiles` sets a flag
    for each such row, in the scratch buffer `wild`.
    """
    for variant in _variants(task, lanes, redo=redo):
        yield _with_redo(task, variant) if redo else variant


def _with_redo(task: Task, variant: Variant) -> Variant:
    """Return a variant with a last dispatch, which computes the flagged rows again."""
    # One flag of 32 bits for each row.
    again = row_shader(task, set(), _unless_wild)
    wild = Scratch(task.scratch_name("wild"), domain_size(task.stage.others))
    shaders, scratch = (*variant.shaders, again), (*variant.scratch, wild)
    return replace(variant, shaders=shaders, scratch=scratch)


def _unless_wild(shader: ShaderBuilder, row: t.Expr) -> list[t.Stmt]:
    """Return the statement that skips a row without a flag.

    In WGSL:

        if (wild[row] == 0u) { return; }
    """
    wild = shader.scratch("wild", Scalar.U32, written=False)
    return [t.If(wild.load(row).equals(0), (t.Return(),))]


def _cut(task: Task, lanes: int | None) -> Cut:
    """Return how long rows are cut into parts: whole tiles of `lanes` times eight steps."""
    index = task.stage.domain[loop_of(task.stage).axis]
    return Cut(index, (lanes or INVOCATIONS) * STEPS, host.Literal(MAX_PARTS))


def _variants(task: Task, lanes: int | None, *, redo: bool) -> Iterator[Variant]:
    """Yield the variants in order of preference: the host takes the first that suits.

    These are `aligned`, `parts_aligned`, `edge` and `parts_edge`.
    """
    stage, lanes = task.stage, lanes or INVOCATIONS
    index = stage.domain[loop_of(stage).axis]
    names, aligned = in_vectors(stage), host.divides(LANES, extent_size(index.extent))
    # `aligned` reads vectors of four, where the row's length is a multiple of four.
    ways: list[tuple[str, host.Guard, set[str]]] = [("edge", host.ALWAYS, set())]
    if names and aligned != host.NEVER:
        ways.insert(0, ("aligned", aligned, names))
    cut = _cut(task, lanes)
    for name, when, read in ways:
        whole = cut.is_needless(LONG_ROW, stage.others, MANY_ROWS)
        if (wanted := host.all_of(when, whole)) != host.NEVER:
            yield Variant(
                name, wanted, (_of_whole_rows(task, cut, lanes, read, redo=redo),)
            )
        if whole != host.ALWAYS:
            shaders = (
                _of_totals(task, cut, lanes, read, redo=redo),
                _behind(task, cut, lanes, read, redo=redo),
            )
            # The joined step of each part, in words of four bytes: a vec3f has four.
            length = (
                domain_size(stage.others) * cut.count * (value_bytes(JOINED_STEP) // 4)
            )
            scratch = Scratch(task.scratch_name("parts"), length)
            yield Variant(f"parts_{name}", when, shaders, (scratch,))


def _of_whole_rows(
    task: Task, cut: Cut, lanes: int, names: set[str], *, redo: bool
) -> DispatchShader:
    """Return the shader that scans whole rows, a workgroup each.

    In WGSL:

        let row = workgroup.y * grid.x + workgroup.x;
        if (row >= u.m) { return; }
        for (var first = 0u; first < u.n; first += 512u) { ... }    // a tile
    """
    to = AffineTiles.start(task, lanes, names, redo=redo)
    row, body = t.Ident(to.shader.fresh("row")), to.body
    body.append(t.Let(row.name, linear_group(to.shader)))
    body.append(t.If(row >= to.shader.size(task.stage.others), (t.Return(),)))
    length = to.shader.extent(cut.index.extent)
    if redo:
        to.note_nothing(row)
        to.body.append(_CLEARED)
    to.enter(row)
    to.write(t.ZERO, length, None)
    to.note(row)
    return to.finish(cut, f"a workgroup per row, {STEPS} steps a lane.", "")


def _of_totals(
    task: Task, cut: Cut, lanes: int, names: set[str], *, redo: bool
) -> DispatchShader:
    """Return the first shader of two: it joins all steps of a part, and stores that step."""
    to = AffineTiles.start(task, lanes, names)
    part = PartOfRow.named(to.shader, to.body, cut, to.stage.others)
    to.enter(part.row)
    total = to.join(part.start, part.end)
    parts = to.shader.scratch("parts", JOINED_STEP, written=True)
    store = parts.store(part.group, total)
    to.body.append(t.If(to.shader.lane.equals(0), (store,)))
    if redo:
        # The second dispatch sets flags, so they are cleared in this one.
        to.note_nothing(part.row)
    summary = "first of two dispatches: all steps of a part as one."
    return to.finish(cut, summary, "totals_")


def _behind(
    task: Task, cut: Cut, lanes: int, names: set[str], *, redo: bool
) -> DispatchShader:
    """Return the second shader of two: it scans each part, behind those before it.

    The lanes join the steps of all earlier parts first, a stretch of neighbours each, as
    joining does not commute:

        let each = (part + 63u) / 64u;
        let first = min(lane * each, part);
        var own = vec3f(1.0, 0.0, 0.0);
        for (var earlier = first; earlier < min(first + each, part); earlier++) {
            own = affine_then(own, parts[row * count + earlier]);
        }
    """
    to = AffineTiles.start(task, lanes, names, redo=redo)
    part = PartOfRow.named(to.shader, to.body, cut, to.stage.others)
    to.enter(part.row)
    shader = to.shader
    parts = shader.scratch("parts", JOINED_STEP, written=False)
    own, each, first, at = (
        t.Ident(shader.fresh(name)) for name in ("own", "each", "first", "earlier")
    )
    end = t.call("min", first + each, part.number)
    load = parts.load(part.row * part.count + at)
    to.body.extend(
        (
            t.Let(each.name, (part.number + (lanes - 1)) // lanes),
            t.Let(first.name, t.call("min", shader.lane * each, part.number)),
            t.Var(own.name, NO_STEP),
            t.count_up(at.name, first, end, 1, t.Assign(own, to.then(own, load))),
        )
    )
    # A row begins with the state 0, so the state behind all earlier parts is the term of
    # their joined step, y.
    _, whole = to.scan(own, to.body)
    carried = t.Ident(shader.fresh("carried"))
    to.body.extend((t.Let(carried.name, t.Member(whole, "y")), t.BARRIER))
    to.write(part.start, part.end, carried)
    to.note(part.row)
    return to.finish(
        cut, "second of two dispatches: each part behind those before.", "behind_"
    )
