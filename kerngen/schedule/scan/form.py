"""Recognise prefix and suffix reductions: `y[i] = sum[j when j <= i] x[j]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.analysis.conditions import conditional, unconditional
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.nodes import Expr, Index, Reduce
from kerngen.ir.staging.keyed import Prefix, bounding_index, prefix_of
from kerngen.ir.staging.stages import Stage
from kerngen.schedule.task import Task


@final
@dataclass(frozen=True)
class Scan:
    """A scan: `y[i] = sum[j when j <= i] x[j]`, a reduction of each prefix or suffix.

    - `reduce`: the reduction, as the stage has it
    - `index`, `own`: the index of results, i, and that of terms, j
    - `term`: what is reduced, x[j]
    - `is_backward`: the terms are taken from the last one on, as in `j >= i`
    - `is_exclusive`: a result is without the term of its own place, as in `j < i`
    """

    reduce: Reduce
    index: Index
    own: Index
    term: Expr
    is_backward: bool
    is_exclusive: bool


@cached_on_instance
def scan_of(stage: Stage) -> Scan | str:
    """Return a stage's scan, or the reason why it is none, as the end of a sentence."""
    reduce = stage.reduction
    if reduce is None:
        return "the stage holds no reduction"
    prefix = prefix_of(conditional(reduce))
    if prefix is None:
        return _why_no_prefix(conditional(reduce))
    (own,) = reduce.indices
    if own.extent != prefix.index.extent:
        lengths = f"'{own.name}' and '{prefix.index.name}'"
        return f"{lengths} range over different lengths"
    # `j <= i` has distance 0, `j < i` 1.  Others, as `j <= i + 2`, are no scans here.
    distance = _distance(prefix)
    if distance not in {0, 1}:
        return f"a part does not end at '{prefix.index.name}', or right before it"
    term = unconditional(prefix.reduce).body
    is_exclusive = distance == 1
    return Scan(reduce, prefix.index, own, term, prefix.is_suffix, is_exclusive)


def _why_no_prefix(reduce: Reduce) -> str:
    """Return the reason why a reduction is none of prefixes or suffixes."""
    index = bounding_index(reduce)
    if index is None:
        return (
            "it holds no reduction of a prefix or a suffix, as 'sum[j when j <= i]' is"
        )
    if reduce.finds_place:
        return "a place is not known from the one before"
    return f"it reads '{index.name}' for more than where a prefix or a suffix ends"


def fits_prefixes(task: Task) -> str:
    """Return why a stage is no scan of prefixes or suffixes, or "" if it is."""
    found = scan_of(task.stage)
    return found if isinstance(found, str) else ""


def scan_in(task: Task) -> Scan:
    """Return the stage's scan; the caller has checked that there is one."""
    found = scan_of(task.stage)
    assert isinstance(found, Scan), found
    return found


def _distance(prefix: Prefix) -> int | None:
    """Return how far before its result a prefix ends, or None if that is no literal.

    0 for `j <= i` and `j >= i`, 1 for `j < i` and `j > i`: of a suffix the terms are
    counted from the last one.
    """
    shift = as_literal(prefix.shift)
    if shift is None:
        return None
    return shift if prefix.is_suffix else -shift
