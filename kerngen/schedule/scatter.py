"""Strategy `scatter`: each term of a keyed reduction goes to the one bin that its key chooses.

    counts[k] = sum[i when x[i] == u32(k)] 1

The work is n, not n * k.  Two ways, both with the same bits each time:

- integers, and `max` and `min` of f32: invocations change bins by atomic operations,
  which give the same in any order (`scatter_atomics.py`);
- all else: terms are sorted by key, and each bin joins its own (`scatter_lists.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kerngen.schedule.program import Variant
from kerngen.schedule.scatter_atomics import lower_atomics
from kerngen.schedule.scatter_lists import lower_lists
from kerngen.schedule.scatter_shape import Scatter, scatter_of
from kerngen.schedule.scatter_words import has_word
from kerngen.schedule.task import Options, Task


def fits_scatter(task: Task) -> str:
    """Say why `scatter` does not fit the stage; empty if it does."""
    found = scatter_of(task)
    return found if isinstance(found, str) else ""


def scatter_options(options: Options) -> Hashable:
    """Return what options come to."""
    return _flag(options, "lists", 0), _flag(options, "private", 1)


def lower_scatter(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the variants: by sorted lists, or by atomic operations."""
    found = scatter_of(task)
    assert isinstance(found, Scatter), found
    if by_lists(found) or _flag(options, "lists", 0):
        return lower_lists(found)
    return lower_atomics(found, private=bool(_flag(options, "private", 1)))


def by_lists(found: Scatter) -> bool:
    """Whether no atomic operation does the reduction, so that its terms are sorted."""
    return not has_word(found.reduce.kind, found.reduce.type)


def _flag(options: Options, name: str, default: int) -> int:
    return options.get(name, (default,))[0]
