"""Strategy `scatter`: reductions by key, where each term goes to the bin of its key.

    counts[k] = sum[i when x[i] == u32(k)] 1

For n terms and k bins, the work grows with n and not with n * k.  There are two ways, and
in both the same call gives the same bits each time:

- integers, and `max` and `min` of f32: atomic operations on the bins, whose result is the
  same in any order (`atomics.py`);
- all others: the terms are sorted by key, then those of each bin are joined (`lists.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.schedule.program import Variant
from kerngen.schedule.scatter.atomics import has_word, lower_atomics
from kerngen.schedule.scatter.lists import lower_lists
from kerngen.schedule.scatter.runs import BUFFERS
from kerngen.schedule.scatter.shape import Scatter, scatter_of
from kerngen.schedule.task import Options, Task


def fits_scatter(task: Task) -> str:
    """Return why `scatter` does not fit the stage, or "" if it does."""
    found = scatter_of(task)
    return found if isinstance(found, str) else _refused(found, by_lists(found))


def suits_scatter(task: Task, options: Options) -> str:
    """Return why a stage that `scatter` fits does not suit the options, or "" if it does."""
    found = scatter_of(task)
    if not isinstance(found, Scatter):
        return ""
    must, sorts = by_lists(found), _flag(options, "lists", 0)
    if must and "lists" in options and not sorts:
        return (
            f"no atomic operation does this '{found.reduce.kind}': its terms are sorted"
        )
    if (must or sorts) and _flag(options, "private", 0):
        return "sorted lists have no bins of workgroups"
    return _refused(found, sorts) if sorts else ""


def _refused(found: Scatter, sorts: int) -> str:
    """Return the reason if a dispatch would bind too many buffers, or "" if none would.

    A sort binds keys and `filled` beside the tensors of the keys, `BUFFERS` beside those of
    the terms, and keys, bins and `filled` beside those of the results; atomics bind their
    bins.
    """
    keys, terms, rest = found.read_of_keys, found.read_of_terms, found.beside
    if sorts:
        most = max(len(keys) + 2, len(terms) + BUFFERS, len(rest) + 3)
    else:
        most = max(len(keys | terms), len(rest)) + 1
    if most <= MAX_TENSORS:
        return ""
    return f"a dispatch would bind {most} buffers, of which WebGPU offers {MAX_TENSORS}"


def scatter_options(options: Options) -> Hashable:
    """Return the options `lists` and `private`, or their defaults.

    Schedules for which these are equal share their shaders.
    """
    return _flag(options, "lists", 0), _flag(options, "private", 1)


def lower_scatter(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: by sorted lists, or by atomic operations."""
    found = scatter_of(task)
    assert isinstance(found, Scatter), found
    if by_lists(found) or _flag(options, "lists", 0):
        return lower_lists(found)
    return lower_atomics(found, private=bool(_flag(options, "private", 1)))


def by_lists(found: Scatter) -> bool:
    """Whether the terms have to be sorted: no atomic operation computes the reduction."""
    return not has_word(found.reduce.kind, found.reduce.type)


def _flag(options: Options, name: str, default: int) -> int:
    return options.get(name, (default,))[0]
