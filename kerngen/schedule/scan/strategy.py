"""Strategy `scan`: prefix and suffix reductions, each result from the one before.

So are recurrences of which a step is `a * h[t - 1] + b`, see `scan_affine`.

Lanes lie along memory.  Where that is the scan's own direction they share a row, see
`scan_rows`; where memory runs across the rows each has one of its own, see `scan_across`.

Rows that are few and long are cut into parts: a first dispatch leaves the total of each
part, and a second one scans the parts, each behind the totals of those before it.  No part
waits for another one of the same dispatch: WebGPU does not promise that both run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kerngen.schedule.lowering.joining import by_subgroups
from kerngen.schedule.program import Variant
from kerngen.schedule.scalar_only import why_not_scalar_only
from kerngen.schedule.scan.across import lower_across
from kerngen.schedule.scan.affine import fits_affine, lower_affine, suits_redo
from kerngen.schedule.scan.form import fits_prefixes, scan_in
from kerngen.schedule.scan.rows import ScannedRows
from kerngen.schedule.scan.shape import ALONE
from kerngen.schedule.task import Options, Task


def fits_scan(task: Task) -> str:
    """Return why `scan` does not fit the stage, or "" if it does."""
    if task.stage.loop is not None:
        return fits_affine(task)
    return why_not_scalar_only(task.stage) or fits_prefixes(task)


def scan_options(options: Options) -> Hashable:
    """Return a schedule's options with defaults: the number of lanes, and subgroups."""
    return options.get("lanes"), by_subgroups(options), _redoes(options)


def _redoes(options: Options) -> bool:
    return options.get("redo", (0,)) == (1,)


def suits_scan(task: Task, options: Options) -> str:
    """Return why a scan does not suit the options, or "" if it does."""
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
    """Yield the variants, by the number, length and alignment of rows."""
    (lanes,) = options.get("lanes", (None,))
    if task.stage.loop is not None:
        yield from lower_affine(task, lanes, redo=_redoes(options))
        return
    if runs_across(task):
        yield from lower_across(task)
        return
    yield from ScannedRows(task, by_subgroups(options)).variants(lanes)
