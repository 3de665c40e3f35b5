"""Sort the terms of a keyed reduction by the numbers of their bins: a stable radix sort.

A term is moved as two words: its bin's number (`keys`), and its own number or its value
(`items`).  Terms of one bin keep their order, so that a sum has the same bits each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kerngen.ir.analysis.reads import loads
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.types import Scalar
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.sort.passes import SortItems, count_scratch, sort_passes
from kerngen.shader import tree as t

FIRST: Final = ("keys", "items")
"""The scratch buffers that the first pass reads, and every other pass after it."""

SECOND: Final = ("keys_2", "items_2")
"""The scratch buffers that the first pass writes."""


def moves_values(found: Scatter) -> bool:
    """Whether the sort moves the values of the terms, instead of their numbers.

    A value of 32 bits takes no more memory than a term's number, and need not be read in
    random order after the sort: 2^26 such reads took as long as the sort.  The dispatch
    that computes the keys then computes the values, too, if it can bind all tensors.
    """
    # The 3 buffers are keys, items and `filled`.
    read = {load.tensor for load in loads(found.body)}
    read |= {load.tensor for key in found.keys for load in loads(key.value)}
    read |= {load.tensor for guard in found.guards for load in loads(guard)}
    is_word = isinstance(found.reduce.type, Scalar)
    return not found.columns and is_word and len(read) + 3 <= MAX_TENSORS


def sort_scratch(found: Scatter) -> tuple[Scratch, ...]:
    """Return the scratch buffers of the sort: keys and items, both twice, and digit counts."""
    task, terms = found.task, found.term_count
    pairs = (Scratch(task.scratch_name(name), terms) for name in (*FIRST, *SECOND))
    return (*pairs, *count_scratch(_terms(found, 0)))


def sorting(found: Scatter, passes: int) -> Iterator[DispatchShader]:
    """Yield the dispatches of `passes` radix passes; `sorted_into` names the last buffers."""
    return sort_passes(partial(_terms, found), (FIRST, SECOND), passes)


def sorted_into(found: Scatter, passes: int) -> dict[str, str]:
    """Return for each name of a buffer that joining shaders read the one with the sorted terms.

    These shaders name the buffers of `FIRST`; an odd number of passes ends in `SECOND`.
    """
    task, target = found.task, (FIRST, SECOND)[passes % 2]
    pairs = zip(FIRST, target, strict=True)
    return {task.scratch_name(a): task.scratch_name(b) for a, b in pairs}


def _terms(found: Scatter, number: int) -> SortItems:
    """Return how the pass of a number reads and writes a term's two words.

    In the first pass the items are not read if they are the terms' numbers: those are 0, 1,
    2 and so on.
    """
    by_number = number == 0 and not moves_values(found)

    def read(
        shader: ShaderBuilder, block: list[t.Stmt], term: t.Expr, word: int
    ) -> t.Expr:
        del block
        if by_number and word == 1:
            return term
        return shader.scratch(FIRST[word], Scalar.U32, written=False).load(term)

    def write(
        shader: ShaderBuilder, place: t.Expr, word: int, value: t.Expr
    ) -> tuple[t.Stmt, ...]:
        to = shader.scratch(SECOND[word], Scalar.U32, written=True)
        return (to.store(place, value),)

    def key(shader: ShaderBuilder, block: list[t.Stmt], word: t.Expr) -> t.Expr:
        del shader, block
        return word

    variant = ".first" if by_number else ""
    return SortItems(found.task, found.term_count, 2, read, key, write, variant)
