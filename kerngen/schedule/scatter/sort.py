"""Sort the terms of a keyed reduction by the numbers of their bins, by radix.

Terms of one bin keep their order, so that sums come out the same each time.
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
SECOND: Final = ("keys_2", "items_2")
"""The scratch buffers that terms are moved between: their keys, and their numbers."""


def moves_values(found: Scatter) -> bool:
    """Whether the sort moves the terms' own bits, instead of their numbers.

    A number of 32 bits takes no more memory than that of its term, and need not be read
    where it happened to be: 2^26 reads in random order took as long as the sort.  The
    terms are then computed beside their keys, if one dispatch can bind what both read.
    """
    read = {load.tensor for load in loads(found.body)}
    read |= {load.tensor for key in found.keys for load in loads(key.value)}
    read |= {load.tensor for guard in found.guards for load in loads(guard)}
    is_word = isinstance(found.reduce.type, Scalar)
    return not found.columns and is_word and len(read) + 3 <= MAX_TENSORS


def sort_scratch(found: Scatter) -> tuple[Scratch, ...]:
    """Return the buffers of the sort."""
    task, terms = found.task, found.term_count
    pairs = (Scratch(task.scratch_name(name), terms) for name in (*FIRST, *SECOND))
    return (*pairs, *count_scratch(_terms(found, 0)))


def sorting(found: Scatter, passes: int) -> Iterator[DispatchShader]:
    """Yield the dispatches of `passes` radix passes into `sorted_into`."""
    return sort_passes(partial(_terms, found), (FIRST, SECOND), passes)


def sorted_into(found: Scatter, passes: int) -> dict[str, str]:
    """Return the buffers with the sorted terms, by the names that shaders use."""
    task, target = found.task, (FIRST, SECOND)[passes % 2]
    pairs = zip(FIRST, target, strict=True)
    return {task.scratch_name(a): task.scratch_name(b) for a, b in pairs}


def _terms(found: Scatter, number: int) -> SortItems:
    """Return the terms of a pass: at first they are in the order of their numbers.

    Those are the items unless these are the terms themselves.
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
